"""Alice_and_Bob: a batched grid task with a sparse team reward.

A wall surrounds 8 × 8 free cells. Keys lie in the two top corners and goals in the two bottom corners. Goal ``g``
latches when one agent stands on it while the other agent stands on key ``g``, which lies in the same column. The team
receives its only reward, 1, when both goals are latched. In the crossed form key ``g`` belongs to the goal of the other
column.

Cells are numbered row by row over the 10 × 10 board. The whole batch moves with a few array operations; nothing loops
over environments.
"""

import json
from typing import Final

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor

from apexrl.arrays import Bools, Floats32, Ints
from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv, StateDict
from hmasd.envs.extras import step_extras

SIDE: Final = 10
"""Cells along each side of the board, the wall included."""
N_CELLS: Final = SIDE * SIDE
N_AGENTS: Final = 2
N_ACTIONS: Final = 5
"""Up, down, left, right, stay."""

_MOVES: Final[Ints] = np.array([(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)], dtype=np.int64)
"""Change of (row, column) for each action."""

KEYS: Final[Ints] = np.array([1 * SIDE + 1, 1 * SIDE + SIDE - 2], dtype=np.int64)
GOALS: Final[Ints] = np.array([(SIDE - 2) * SIDE + 1, (SIDE - 2) * SIDE + SIDE - 2], dtype=np.int64)

# Codes of cells in observations and states, on one scale from 0 to 1. An agent hides the cell that it stands on.
FREE: Final = 0.0
WALL: Final = 1.0
KEY: Final = 0.3
GOAL: Final = 0.5
LATCHED: Final = 0.15
AGENT: Final[Floats32] = np.array([0.7, 0.85], dtype=np.float32)


def _empty_board() -> Floats32:
    """Return the cell codes of a board without agents and without latched goals, ``(100,)``."""
    board = np.full((SIDE, SIDE), WALL, dtype=np.float32)
    board[1:-1, 1:-1] = FREE
    flat = board.reshape(-1)
    flat[KEYS] = KEY
    flat[GOALS] = GOAL
    return flat


def _successors() -> Ints:
    """Return the cell that each action leads to from each cell, ``(100, 5)``; walls block."""
    rows, columns = np.divmod(np.arange(N_CELLS), SIDE)
    next_rows = np.clip(rows[:, None] + _MOVES[:, 0], 1, SIDE - 2)
    next_columns = np.clip(columns[:, None] + _MOVES[:, 1], 1, SIDE - 2)
    return next_rows * SIDE + next_columns


def _inside() -> Ints:
    """Return the 64 cells that an agent may stand on."""
    return (np.arange(1, SIDE - 1)[:, None] * SIDE + np.arange(1, SIDE - 1)).reshape(-1)


def _coordinates() -> Floats32:
    """Return (row, column) of each cell, scaled to [-1, 1] over the free cells, ``(100, 2)``."""
    middle = (SIDE - 1) / 2
    rows, columns = np.divmod(np.arange(N_CELLS), SIDE)
    scaled = (np.stack([rows, columns], axis=1) - middle) / (middle - 1)
    return scaled.astype(np.float32)


_SUCCESSOR: Final = _successors()
INSIDE: Final = _inside()
_COORDINATES: Final = _coordinates()
_WINDOW: Final[Ints] = np.array([-SIDE - 1, -SIDE, -SIDE + 1, -1, 0, 1, SIDE - 1, SIDE, SIDE + 1])
"""Offsets of the 3 × 3 cells around an agent."""


class AliceAndBobEnv(MultiAgentVecEnv):
    """A batch of boards.

    An observation has 11 numbers: the codes of the 3 × 3 cells around the agent and its own (row, column). The state
    is the codes of all 100 cells. Both agents receive 1 when the second goal latches, which terminates the episode,
    and 0 otherwise.

    Args:
        num_envs: Number of boards.
        max_steps: Time limit of an episode; reaching it truncates.
        seed: Seed of the starting cells until :meth:`reset` gives another.
        crossed: Whether each key belongs to the goal of the other column.
    """

    def __init__(self, num_envs: int, *, max_steps: int = 100, seed: int = 0, crossed: bool = False) -> None:
        if num_envs < 1 or max_steps < 1:
            raise ValueError(f"num_envs={num_envs} and max_steps={max_steps} must both be at least 1")
        self.num_envs = num_envs
        self.num_agents = N_AGENTS
        self.agent_names = ["alice", "bob"]
        self.device = torch.device("cpu")
        self.observation_space = Box(-1.0, 1.0, (_WINDOW.size + 2,), np.float32)
        self.action_space = Discrete(N_ACTIONS)
        self.state_space = Box(0.0, 1.0, (N_CELLS,), np.float32)
        self.max_steps = max_steps
        self._rng = np.random.default_rng(seed)
        self._empty = _empty_board()
        self._goals = GOALS[::-1] if crossed else GOALS
        self._rows = np.arange(num_envs)
        self._row_starts = self._rows[:, None] * N_CELLS
        self._cells = np.zeros((num_envs, N_AGENTS), dtype=np.int64)
        self._latched = np.zeros((num_envs, N_AGENTS), dtype=np.bool_)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._present = torch.ones(num_envs, N_AGENTS, dtype=torch.bool)

    def reset(self, seed: int | None = None) -> tuple[Tensor, MultiAgentExtras]:
        """Put all agents on random, distinct cells."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._reset_envs(self._rows)
        observation, state = self._observe()
        return torch.from_numpy(observation), {"state": torch.from_numpy(state), "agent_mask": self._present.clone()}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, MultiAgentExtras]:
        """Move, latch, reward, and reset finished boards; see :class:`apexrl.envs.MultiAgentVecEnv`."""
        self._cells = cells = _SUCCESSOR[self._cells, actions.numpy()]  # (E, 2)
        self._steps += 1
        # (E, 2 agents, 2 goals): the agent stands on the key and the other agent on its goal
        on_key = cells[:, :, None] == KEYS
        other_on_goal = cells[:, ::-1, None] == self._goals
        self._latched |= (on_key & other_on_goal).any(axis=1)  # (E, 2 goals), by key
        terminated = self._latched[:, 0] & self._latched[:, 1]
        truncated = (self._steps >= self.max_steps) & ~terminated
        dones = terminated | truncated
        rewards = np.repeat(terminated[:, None], N_AGENTS, axis=1).astype(np.float32)
        observation, state = self._observe()
        extras = step_extras(observation, state, terminated, truncated, self._present)
        if dones.any():
            self._reset_envs(np.flatnonzero(dones))
            observation, state = self._observe()
            extras["state"] = torch.from_numpy(state)
        return torch.from_numpy(observation), torch.from_numpy(rewards), torch.from_numpy(dones), extras

    @property
    def cells(self) -> Ints:
        """Cells that the agents stand on, ``(num_envs, 2)``."""
        return self._cells.copy()

    @property
    def latched(self) -> Bools:
        """Which goals are latched, ``(num_envs, 2)``."""
        return self._latched.copy()

    @property
    def supports_state(self) -> bool:
        """Boards, counters and the random stream are captured in full."""
        return True

    def state_dict(self) -> StateDict:
        """Return boards, counters and the random stream."""
        return {
            "cells": torch.from_numpy(self._cells.copy()),
            "latched": torch.from_numpy(self._latched.copy()),
            "steps": torch.from_numpy(self._steps.copy()),
            "rng": json.dumps(self._rng.bit_generator.state, sort_keys=True),  # plain text, so no pickled code
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore what :meth:`state_dict` returned.

        Raises:
            ValueError: The state is of a batch of another size.
        """
        cells = state["cells"].numpy().copy()
        if cells.shape != self._cells.shape:
            raise ValueError(
                f"the state is of {cells.shape[0]} boards and this batch has {self.num_envs}; "
                "build the batch with the same num_envs"
            )
        self._cells = cells
        self._latched = state["latched"].numpy().copy()
        self._steps = state["steps"].numpy().copy()
        self._rng.bit_generator.state = json.loads(state["rng"])

    def _reset_envs(self, envs: Ints) -> None:
        first = self._rng.integers(0, INSIDE.size, size=envs.size)
        # The second draw skips the first agent's cell, so every ordered pair of distinct cells is equally likely.
        second = (first + self._rng.integers(1, INSIDE.size, size=envs.size)) % INSIDE.size
        self._cells[envs, 0] = INSIDE[first]
        self._cells[envs, 1] = INSIDE[second]
        self._latched[envs] = False
        self._steps[envs] = 0

    def _observe(self) -> tuple[Floats32, Floats32]:
        """Return observations ``(E, 2, 11)`` and states ``(E, 100)``, in fresh memory."""
        # (E, 100) boards with goals, then agents
        state = np.empty((self.num_envs, N_CELLS), dtype=np.float32)
        state[:] = self._empty
        state[:, self._goals] = np.where(self._latched, np.float32(LATCHED), np.float32(GOAL))
        flat = state.reshape(-1)
        indices = self._row_starts + self._cells  # (E, 2) index of each agent's cell in the flat batch
        flat[indices] = AGENT
        # (E, 2, 11) the cells around each agent and its coordinates
        observation = np.empty((self.num_envs, N_AGENTS, _WINDOW.size + 2), dtype=np.float32)
        observation[:, :, : _WINDOW.size] = flat[indices[:, :, None] + _WINDOW]
        observation[:, :, _WINDOW.size :] = _COORDINATES[self._cells]
        return observation, state

"""Alice_and_Bob: two agents must stand on a key and on its goal at once, twice, to be paid once.

The whole batch moves with a handful of array operations, and nothing in it loops over environments.
"""

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from torch import Tensor

from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv, StateDict
from hmasd.envs.alice_and_bob.rules import (
    AGENT,
    COORDINATES,
    GOAL,
    GOALS,
    INSIDE,
    KEYS,
    LATCHED,
    N_ACTIONS,
    N_AGENTS,
    SIDE,
    SUCCESSOR,
    WINDOW,
    empty_board,
)
from hmasd.envs.random_state import generator_from_state, generator_state


class AliceAndBobEnv(MultiAgentVecEnv):
    """A batch of boards.

    An observation is the 3 × 3 cell codes around an agent and its own (row, column), 11 numbers; the state is the
    100 cell codes. Both agents receive 1 when the second goal latches, which ends the episode, and 0 otherwise.

    Args:
        num_envs: Number of boards.
        max_steps: Time limit of an episode; reaching it truncates.
        seed: Seed of the starting cells until :meth:`reset` gives another.
    """

    def __init__(self, num_envs: int, *, max_steps: int = 100, seed: int = 0) -> None:
        if num_envs < 1 or max_steps < 1:
            raise ValueError(f"num_envs={num_envs} and max_steps={max_steps} must both be at least 1")
        self.num_envs = num_envs
        self.num_agents = N_AGENTS
        self.agent_names = ["alice", "bob"]
        self.device = torch.device("cpu")
        self.observation_space = Box(-1.0, 1.0, (WINDOW.size + 2,), np.float32)
        self.action_space = Discrete(N_ACTIONS)
        self.state_space = Box(0.0, 1.0, (SIDE * SIDE,), np.float32)
        self.max_steps = max_steps
        self._rng = np.random.default_rng(seed)
        self._empty = empty_board()
        self._rows = np.arange(num_envs)
        self._row_starts = self._rows[:, None] * (SIDE * SIDE)
        self._cells = np.zeros((num_envs, N_AGENTS), dtype=np.int64)
        self._latched = np.zeros((num_envs, N_AGENTS), dtype=np.bool_)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._present = torch.ones(num_envs, N_AGENTS, dtype=torch.bool)

    def reset(self, seed: int | None = None) -> tuple[Tensor, MultiAgentExtras]:
        """Put all agents on random, distinct cells."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._restart(self._rows)
        observation, state = self._look()
        return torch.from_numpy(observation), {"state": torch.from_numpy(state), "agent_mask": self._present.clone()}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, MultiAgentExtras]:
        """Move, latch, pay, and reset the boards that are over; see :class:`apexrl.envs.MultiAgentVecEnv`."""
        self._cells = cells = SUCCESSOR[self._cells, actions.numpy()]
        self._steps += 1
        # (E, 2 goals): somebody on the key and the other on the goal of the same column.
        on_key = cells[:, :, None] == KEYS
        other_on_goal = cells[:, ::-1, None] == GOALS
        self._latched |= (on_key & other_on_goal).any(axis=1)
        terminated = self._latched[:, 0] & self._latched[:, 1]
        truncated = (self._steps >= self.max_steps) & ~terminated
        dones = terminated | truncated
        rewards = np.repeat(terminated[:, None], N_AGENTS, axis=1).astype(np.float32)
        observation, state = self._look()
        ended, cut = torch.from_numpy(terminated), torch.from_numpy(truncated)
        extras: MultiAgentExtras = {
            "state": torch.from_numpy(state),
            "agent_mask": self._present.clone(),
            "terminated": ended,
            "truncated": cut,
            "time_outs": cut,
            "agent_terminated": ended.unsqueeze(1).repeat(1, N_AGENTS),
            "agent_truncated": cut.unsqueeze(1).repeat(1, N_AGENTS),
        }
        if dones.any():
            extras["final_observation"] = torch.from_numpy(observation)
            extras["final_state"] = torch.from_numpy(state)
            extras["final_agent_mask"] = self._present.clone()
            self._restart(np.flatnonzero(dones))
            observation, state = self._look()
            extras["state"] = torch.from_numpy(state)
        return torch.from_numpy(observation), torch.from_numpy(rewards), torch.from_numpy(dones), extras

    @property
    def cells(self) -> NDArray[np.int64]:
        """Where the agents stand, as flat cell numbers ``(num_envs, 2)``."""
        return self._cells.copy()

    @property
    def latched(self) -> NDArray[np.bool_]:
        """Which goals are latched, ``(num_envs, 2)``."""
        return self._latched.copy()

    @property
    def supports_state(self) -> bool:
        """Boards, counters and the random stream are captured in full."""
        return True

    def state_dict(self) -> StateDict:
        """Boards, counters and the random stream."""
        return {
            "cells": torch.from_numpy(self._cells.copy()),
            "latched": torch.from_numpy(self._latched.copy()),
            "steps": torch.from_numpy(self._steps.copy()),
            "rng": generator_state(self._rng),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Go on from what :meth:`state_dict` gave."""
        cells = state["cells"].numpy().copy()
        if cells.shape != self._cells.shape:
            raise ValueError(
                f"the state is of {cells.shape[0]} boards and this batch has {self.num_envs}; "
                "build the batch with the same num_envs"
            )
        self._cells = cells
        self._latched = state["latched"].numpy().copy()
        self._steps = state["steps"].numpy().copy()
        self._rng = generator_from_state(state["rng"])

    def _restart(self, envs: NDArray[np.int64]) -> None:
        first = self._rng.integers(0, INSIDE.size, size=envs.size)
        # The second draw skips the first agent's cell, so every ordered pair of distinct cells is equally likely.
        second = (first + self._rng.integers(1, INSIDE.size, size=envs.size)) % INSIDE.size
        self._cells[envs, 0] = INSIDE[first]
        self._cells[envs, 1] = INSIDE[second]
        self._latched[envs] = False
        self._steps[envs] = 0

    def _look(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Observations ``(E, 2, 11)`` and states ``(E, 100)`` of the boards as they are, in fresh memory."""
        state = np.empty((self.num_envs, SIDE * SIDE), dtype=np.float32)
        state[:] = self._empty
        state[:, GOALS] = np.where(self._latched, np.float32(LATCHED), np.float32(GOAL))
        flat = state.reshape(-1)
        places = self._row_starts + self._cells
        flat[places] = AGENT
        observation = np.empty((self.num_envs, N_AGENTS, WINDOW.size + 2), dtype=np.float32)
        observation[:, :, : WINDOW.size] = flat[places[:, :, None] + WINDOW]
        observation[:, :, WINDOW.size :] = COORDINATES[self._cells]
        return observation, state

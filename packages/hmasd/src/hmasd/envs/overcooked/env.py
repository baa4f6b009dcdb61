"""Overcooked as a natively batched multi-agent environment."""

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor

from apexrl.arrays import Floats32, Ints
from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv, StateDict
from hmasd.envs.extras import step_extras
from hmasd.envs.overcooked.kitchens import (
    COOK_STEPS,
    COUNTER,
    FULL,
    IDLE_POT,
    LAYOUTS,
    N_ACTIONS,
    N_CONTENTS,
    N_COOKS,
    N_THINGS,
    READY_POT,
    Kitchens,
    Layout,
)

_ARRAYS = ("cells", "facing", "held", "contents", "cooked")
_N_DIRECTIONS = 4
_N_POT = FULL + 3
"""Numbers of a pot in observations: one-hot onions, share of the cooking time, ready."""


def _cook_codes(layout: Layout) -> Floats32:
    """Return the code of a cook by ``(cell · 4 + direction) · N_THINGS + hand``: three one-hot codes in a row."""
    n_cells = layout.terrain.size
    cell, rest = np.divmod(np.arange(n_cells * _N_DIRECTIONS * N_THINGS), _N_DIRECTIONS * N_THINGS)
    direction, hand = np.divmod(rest, N_THINGS)
    on_floor = (cell[:, None] == layout.floor).astype(np.float32)
    return np.concatenate([on_floor, np.eye(_N_DIRECTIONS)[direction], np.eye(N_THINGS)[hand]], 1, dtype=np.float32)


def _counter_codes() -> Floats32:
    """Return the code of each content of a counter ``(N_CONTENTS, 5)``: what lies on it, zeros for nothing."""
    codes = np.zeros((N_CONTENTS, N_THINGS - 1), dtype=np.float32)
    codes[COUNTER + 1 : COUNTER + N_THINGS] = np.eye(N_THINGS - 1)
    return codes


def _pot_codes() -> Floats32:
    """Return the code of each content of a pot ``(N_CONTENTS, 6)``, without the share of the cooking time."""
    codes = np.zeros((N_CONTENTS, _N_POT), dtype=np.float32)
    for content in range(IDLE_POT, N_CONTENTS):
        codes[content, (content - IDLE_POT) % (FULL + 1)] = 1.0
    codes[READY_POT:, -1] = 1.0
    return codes


_COUNTER_CODES = _counter_codes()
_POT_CODES = _pot_codes()


class OvercookedEnv(MultiAgentVecEnv):
    """A batch of kitchens; both cooks receive the value of each soup that either delivers.

    Observations are full: cell, direction and hand of the cook itself, then of the other, then pots, counters and time.
    The state is the first cook's observation. Episodes have a time limit and no other end.

    Args:
        num_envs: Number of kitchens.
        layout: ``cramped_room`` or ``coordination_ring``.
        max_steps: Time limit of an episode; reaching it truncates.
        old_dynamics: Whether a pot starts by itself with the third onion, and in no other way.
        reward_shaping: Weight of the package's shaped rewards of both cooks, which are added to the value of soups.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        layout: str = "cramped_room",
        max_steps: int = 400,
        old_dynamics: bool = False,
        reward_shaping: float = 0.0,
    ) -> None:
        if layout not in LAYOUTS:
            raise ValueError(f"there is no layout {layout!r}; choose one of: {', '.join(LAYOUTS)}")
        if num_envs < 1 or max_steps < 1:
            raise ValueError(f"num_envs={num_envs} and max_steps={max_steps} must both be at least 1")
        self.num_envs, self.num_agents, self.max_steps = num_envs, N_COOKS, max_steps
        self.reward_shaping = reward_shaping
        self.agent_names = ["cook_0", "cook_1"]
        self.device = torch.device("cpu")
        self.kitchens = Kitchens(LAYOUTS[layout], num_envs, old_dynamics=old_dynamics)
        self._cook_codes = _cook_codes(self.kitchens.layout)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._present = torch.ones(num_envs, N_COOKS, dtype=torch.bool)
        n_observation = self._observe()[0].shape[-1]
        self.observation_space = Box(0.0, 1.0, (n_observation,), np.float32)
        self.state_space = Box(0.0, 1.0, (n_observation,), np.float32)
        self.action_space = Discrete(N_ACTIONS)

    def reset(self, seed: int | None = None) -> tuple[Tensor, MultiAgentExtras]:
        """Start new episodes everywhere; nothing in them is random, so ``seed`` changes nothing."""
        self._reset_envs(np.arange(self.num_envs))
        observation, state = self._observe()
        return torch.from_numpy(observation), {"state": torch.from_numpy(state), "agent_mask": self._present.clone()}

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, MultiAgentExtras]:
        """Interact, move and cook; see :class:`apexrl.envs.MultiAgentVecEnv`."""
        outcome = self.kitchens.step(actions.numpy())
        self._steps += 1
        delivered, shaped = (
            np.repeat(each.sum(axis=1, keepdims=True), N_COOKS, axis=1)  # (E, 2)
            for each in (outcome.delivered, outcome.shaped)
        )
        team = torch.from_numpy(delivered + self.reward_shaping * shaped)
        dones = self._steps >= self.max_steps
        observation, state = self._observe()
        extras = step_extras(observation, state, np.zeros_like(dones), dones, self._present)
        extras["reward_components"] = {"delivered": torch.from_numpy(delivered), "shaped": torch.from_numpy(shaped)}
        if dones.any():
            self._reset_envs(np.flatnonzero(dones))
            observation, state = self._observe()
            extras["state"] = torch.from_numpy(state)
        return torch.from_numpy(observation), team, torch.from_numpy(dones), extras

    @property
    def supports_state(self) -> bool:
        """Kitchens and counters of steps are captured in full."""
        return True

    def state_dict(self) -> StateDict:
        """Return kitchens and steps."""
        arrays = {name: torch.from_numpy(getattr(self.kitchens, name).copy()) for name in _ARRAYS}
        return {**arrays, "steps": torch.from_numpy(self._steps.copy())}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore what :meth:`state_dict` returned.

        Raises:
            ValueError: The state is of a batch of another size or layout.
        """
        for name in _ARRAYS:
            shape = getattr(self.kitchens, name).shape
            if tuple(state[name].shape) != shape:
                raise ValueError(
                    f"{name} in the state has shape {tuple(state[name].shape)} and in this batch {shape}; "
                    "build the batch with the same num_envs and layout"
                )
        for name in _ARRAYS:
            setattr(self.kitchens, name, state[name].numpy().copy())
        self._steps = state["steps"].numpy().copy()

    def _reset_envs(self, envs: Ints) -> None:
        self.kitchens.reset(envs)
        self._steps[envs] = 0

    def _observe(self) -> tuple[Floats32, Floats32]:
        """Return observations ``(E, 2, d)`` and states ``(E, d)``, in fresh memory."""
        kitchens, n = self.kitchens, self.num_envs
        layout = kitchens.layout
        cooks = self._cook_codes[(kitchens.cells * _N_DIRECTIONS + kitchens.facing) * N_THINGS + kitchens.held]
        pots = _POT_CODES[kitchens.contents[:, layout.pots]]  # (E, P, 6)
        pots[..., -2] = kitchens.cooked / COOK_STEPS
        counters = _COUNTER_CODES[kitchens.contents[:, layout.counters]]  # (E, K, 5)
        width = cooks.shape[2]
        shared = np.concatenate(
            [pots.reshape(n, -1), counters.reshape(n, -1), (self._steps / self.max_steps)[:, None]],
            axis=1,
            dtype=np.float32,
        )
        observation = np.empty((n, N_COOKS, 2 * width + shared.shape[1]), dtype=np.float32)
        observation[:, :, :width] = cooks
        observation[:, :, width : 2 * width] = cooks[:, ::-1]
        observation[:, :, 2 * width :] = shared[:, None]
        return observation, observation[:, 0].copy()

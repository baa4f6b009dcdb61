"""The league on apexrl's contracts: many worlds at once, by day (`VecEnv`) or by round (`MultiAgentVecEnv`).

A state is the seeds and the answers so far, since a world that gets the same answers is the same world: loading one
plays it again up to there.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Final, Generic, TypeVar

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from apexrl.envs.multi_agent import MultiAgentExtras, MultiAgentVecEnv
from apexrl.envs.vec_env import EnvBatch, Extras, StateDict, VecEnv
from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.steering import LIMIT as ACTION_LIMIT
from litaagent_std.agents.online.views import DAY_VIEW, STATE_VIEW, THREAD_VIEW
from litaagent_std.hrl_xf.online.envs.stages import (
    DAY_NUMBERS,
    PLACES,
    ROUND_NUMBERS,
    SIDE_PLACES,
    DayStage,
    RoundStage,
    RoundStep,
)
from litaagent_std.hrl_xf.online.worlds import WorldPlan, training_seed
from litaagent_std.hrl_xf.rewards import DAY_TERMS, THREAD_TERMS, DayWeights, ThreadWeights
from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.features import LIMIT

__all__ = ["LeagueDayVecEnv", "LeagueRoundVecEnv"]

_CPU: Final = torch.device("cpu")
_SPAN: Final = 1 << 16
"""Worlds per environment and seed before seeds of two environments could meet."""


class _Worlds:
    """Which world each environment plays next."""

    def __init__(self, plan: WorldPlan, count: int) -> None:
        self.plan, self.count = plan, count
        self.base = plan.seed % (1 << 20)
        self.played = [0] * count

    def restart(self, seed: int | None) -> None:
        if seed is not None:
            self.base = int(np.random.SeedSequence(seed).generate_state(1)[0]) % (1 << 20)
            self.played = [0] * self.count

    def next(self, env: int) -> WorldPlan:
        self.played[env] += 1
        return self.current(env)

    def current(self, env: int) -> WorldPlan:
        return replace(self.plan, seed=training_seed(self.base, env * _SPAN + self.played[env]))


Stage = TypeVar("Stage", DayStage, RoundStage)
Told = TypeVar("Told")


class _ReplayedWorlds(EnvBatch, Generic[Stage, Told]):
    """Worlds side by side, each with the answers that it got so far: what days and rounds have in common.

    Args:
        plan: Of all worlds.
        worlds: How many.
    """

    num_envs: int

    def __init__(self, plan: WorldPlan, worlds: int) -> None:
        self.num_envs, self.device = worlds, _CPU
        self._worlds = _Worlds(plan, worlds)
        self._stages: list[Stage] = []
        self._answers: list[list[Floats32]] = []

    @abstractmethod
    def _make(self, plan: WorldPlan) -> Stage:
        """Return a world at its first decision."""

    @abstractmethod
    def _play(self, stage: Stage, row: Floats32) -> Told:
        """One decision in a world, and what it brought."""

    @property
    def supports_state(self) -> bool:
        """Worlds are played again from their answers."""
        return True

    def _restart(self, seed: int | None) -> None:
        """Start a new world everywhere."""
        self._worlds.restart(seed)
        self._close_all()
        self._stages = [self._open(env) for env in range(self._worlds.count)]
        self._answers = [[] for _ in self._stages]

    def _open(self, env: int) -> Stage:
        """Return the next world of an environment in which there is anything to decide."""
        while True:
            stage = self._make(self._worlds.next(env))
            if not stage.over:
                return stage

    def _advance(self, rows: Floats32) -> tuple[list[Told], Tensor]:
        """One decision in every world; worlds that are over make room for the next ones.

        Returns:
            What each decision brought, and which worlds it ended.
        """
        told, over = [], torch.zeros(len(self._stages), dtype=torch.bool)
        for env, stage in enumerate(self._stages):
            told.append(self._play(stage, rows[env]))
            self._answers[env].append(rows[env].copy())
            if stage.over:
                over[env] = True
                stage.close()
                self._stages[env], self._answers[env] = self._open(env), []
        return told, over

    def state_dict(self) -> StateDict:
        """Seeds, and the answers of the worlds under way."""
        return {
            "base": self._worlds.base,
            "played": list(self._worlds.played),
            "answers": [torch.from_numpy(np.array(one, np.float32)) for one in self._answers],
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Plays the worlds again up to where they were."""
        self._close_all()
        self._worlds.base, self._worlds.played = int(state["base"]), [int(n) for n in state["played"]]
        self._stages = [self._make(self._worlds.current(env)) for env in range(self._worlds.count)]
        self._answers = [[row.numpy().copy() for row in one] for one in state["answers"]]
        for stage, answers in zip(self._stages, self._answers, strict=True):
            for row in answers:
                self._play(stage, row)

    def _close_all(self) -> None:
        for stage in self._stages:
            stage.close()

    def close(self) -> None:
        """Leaves all worlds."""
        self._close_all()
        self._stages = []


class LeagueDayVecEnv(_ReplayedWorlds[DayStage, dict[str, list[float]]], VecEnv):
    """Worlds by days: L2's task. One seat of each world is ours, so that the rows are independent.

    Args:
        worlds: Worlds at once.
        plan: Days, levels and opponents of all worlds; its seed decides the first worlds.
        weights: Of the reward's terms.

    Raises:
        ValueError: If the plan has several seats.
    """

    def __init__(self, worlds: int, plan: WorldPlan | None = None, weights: DayWeights | None = None) -> None:
        plan = plan or WorldPlan(seed=0)
        if plan.seats != 1:
            raise ValueError(
                f"seats={plan.seats}: seats of one world are no independent environments; use "
                "apexrl.envs.PettingZooVecEnv on parallel_env(seats=...) for several"
            )
        super().__init__(plan, worlds)
        self.observation_space = Box(-LIMIT, LIMIT, (len(DAY_VIEW),), np.float32)
        self.action_space = Box(-ACTION_LIMIT, ACTION_LIMIT, (DAY_NUMBERS,), np.float32)
        self._weights = weights or DayWeights()

    def _make(self, plan: WorldPlan) -> DayStage:
        return DayStage(plan, self._weights)

    def _play(self, stage: DayStage, row: Floats32) -> dict[str, list[float]]:
        return stage.step(row[None])  # one seat

    def reset(self, seed: int | None = None) -> tuple[Tensor, Extras]:
        """Start a new world everywhere."""
        self._restart(seed)
        return self._views(), {}

    def _views(self) -> Tensor:
        return torch.from_numpy(np.concatenate([stage.views for stage in self._stages]))

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Extras]:
        """One day of decisions in every world."""
        rows = actions.detach().to("cpu", torch.float32).numpy().copy()
        finals = self._views()
        told, dones = self._advance(rows)
        parts = {name: np.array([one[name][0] for one in told], np.float32) for name in (*DAY_TERMS, "reward")}
        rewards = parts.pop("reward")
        extras: Extras = {
            "terminated": dones.clone(),
            "truncated": torch.zeros_like(dones),
            "time_outs": torch.zeros_like(dones),
            "reward_components": {name: torch.from_numpy(values) for name, values in parts.items()},
        }
        if bool(dones.any()):
            extras["final_observation"] = finals  # the last morning that there was; nothing follows a world's end
        return self._views(), torch.from_numpy(rewards), dones, extras


class LeagueRoundVecEnv(_ReplayedWorlds[RoundStage, RoundStep], MultiAgentVecEnv):
    """Worlds by rounds: L3's and L4's task. An agent is a place for a thread; its trajectory is one negotiation.

    Args:
        worlds: Worlds at once.
        plan: Days, levels and opponents of all worlds; one seat is ours.
        day_weights: Of the day's terms, shared by the threads of the day's last round.
        thread_weights: Of the threads' own terms.
        policies: Decides the days; zeros without.
    """

    def __init__(
        self,
        worlds: int,
        plan: WorldPlan | None = None,
        day_weights: DayWeights | None = None,
        thread_weights: ThreadWeights | None = None,
        policies: PolicySet | None = None,
    ) -> None:
        super().__init__(replace(plan or WorldPlan(seed=0), seats=1), worlds)
        self.num_agents = PLACES
        self.agent_names = [f"{side}_{n}" for side in ("supplier", "consumer") for n in range(SIDE_PLACES)]
        self.observation_space = Box(-LIMIT, LIMIT, (len(THREAD_VIEW),), np.float32)
        self.action_space = Box(-ACTION_LIMIT, ACTION_LIMIT, (ROUND_NUMBERS,), np.float32)
        self.state_space = Box(-LIMIT, LIMIT, (len(STATE_VIEW),), np.float32)
        self._weights = (day_weights, thread_weights, policies)

    def _make(self, plan: WorldPlan) -> RoundStage:
        return RoundStage(plan, *self._weights)

    def _play(self, stage: RoundStage, row: Floats32) -> RoundStep:
        return stage.step(row)

    def reset(self, seed: int | None = None) -> tuple[Tensor, MultiAgentExtras]:
        """Start a new world everywhere."""
        self._restart(seed)
        return self._views(), self._present()

    def _views(self) -> Tensor:
        return torch.from_numpy(np.stack([stage.views for stage in self._stages]))

    def _present(self) -> MultiAgentExtras:
        return {
            "state": torch.from_numpy(np.stack([stage.state for stage in self._stages])),
            "agent_mask": torch.from_numpy(np.stack([stage.mask for stage in self._stages])),
        }

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, MultiAgentExtras]:
        """One round in every world."""
        rows = actions.detach().to("cpu", torch.float32).numpy().copy()
        seen, before = self._views(), self._present()
        brought, over = self._advance(rows)
        parts: dict[str, Tensor] = {
            name: torch.from_numpy(np.stack([one.terms[name] for one in brought])) for name in THREAD_TERMS
        }
        extras: MultiAgentExtras = {
            **self._present(),
            "terminated": over.clone(),
            "truncated": torch.zeros_like(over),
            "time_outs": torch.zeros_like(over),
            "agent_terminated": torch.from_numpy(np.stack([one.ended for one in brought])),
            "agent_truncated": torch.zeros(self.num_envs, PLACES, dtype=torch.bool),
            "reward_components": parts,
            "final_observation": seen,
            "final_state": before["state"],
            "final_agent_mask": before["agent_mask"],
        }
        return self._views(), torch.from_numpy(np.stack([one.rewards for one in brought])), over, extras

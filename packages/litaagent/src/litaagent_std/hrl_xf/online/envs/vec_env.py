"""The league as vectorised environments: many worlds at once, by day (`VecEnv`) or by round (`MultiAgentVecEnv`).

The state is the seeds and the actions so far: worlds are deterministic, so loading a state replays these actions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import torch
from gymnasium.spaces import Box, MultiDiscrete
from torch import Tensor

from apexrl.envs.multi_agent import MultiAgentExtras, MultiAgentVecEnv
from apexrl.envs.vec_env import EnvBatch, Extras, StateDict, VecEnv
from litaagent_std.hrl_xf.online.envs.layers import ActionKind
from litaagent_std.hrl_xf.online.envs.stages import (
    DAY_ACTION_SIZE,
    RAW_SIZES,
    ROUND_ACTION_SIZE,
    SLOTS_PER_SIDE,
    THREAD_SLOTS,
    DayStage,
    DayStages,
    RoundStage,
    RoundStages,
    RoundStep,
)
from litaagent_std.hrl_xf.online.envs.steering import LIMIT as ACTION_LIMIT
from litaagent_std.hrl_xf.online.envs.views import DAY_VIEW, STATE_VIEW, THREAD_VIEW
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.worlds import WorldPlan, training_seed
from litaagent_std.hrl_xf.rewards import DAY_TERMS, THREAD_TERMS, DayWeights, ThreadWeights
from litaagent_std.policy.arrays import Array
from litaagent_std.policy.features import LIMIT

__all__ = ["LeagueDayVecEnv", "LeagueRoundVecEnv"]

_CPU: Final = torch.device("cpu")
_SPAN: Final = 1 << 16
"""World indices per environment and seed, so that no two environments share a seed."""


class _Worlds:
    """The sequence of worlds of each environment."""

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
Result = TypeVar("Result")


class _Driver(Protocol[Stage, Result]):
    """`DayStages` or `RoundStages`."""

    def start(self, plans: Sequence[WorldPlan]) -> list[Stage]:
        """Start worlds."""

    def step(self, stages: Sequence[Stage], actions: Sequence[Array]) -> list[Result]:
        """Make one decision in each of some worlds."""

    def stop(self, stage: Stage) -> None:
        """Stop a world."""


class _LockstepWorlds(EnvBatch, Generic[Stage, Result]):
    """Parallel worlds in lockstep, each with its actions so far: the common part of days and rounds.

    Args:
        plan: Plan of all worlds.
        worlds: Number of worlds.
        driver: Steps the worlds.
    """

    num_envs: int

    def __init__(self, plan: WorldPlan, worlds: int, driver: _Driver[Stage, Result]) -> None:
        self.num_envs, self.device = worlds, _CPU
        self._worlds = _Worlds(plan, worlds)
        self._driver: _Driver[Stage, Result] = driver
        self._stages: dict[int, Stage] = {}
        self._actions: list[list[Array]] = [[] for _ in range(worlds)]

    @abstractmethod
    def _action(self, row: Array) -> Array:
        """Return an environment's action as the driver takes it."""

    @property
    def supports_state(self) -> bool:
        """True: worlds are replayed from their actions."""
        return True

    @property
    def _all(self) -> list[Stage]:
        return [self._stages[env] for env in range(self.num_envs)]

    def _restart(self, seed: int | None) -> None:
        """Start a new world in every environment."""
        self._worlds.restart(seed)
        self.close()
        self._open(range(self.num_envs))

    def _open(self, envs: Sequence[int]) -> None:
        """Start the next world that has a decision in some environments, all of them together."""
        while envs:
            for env, stage in zip(envs, self._driver.start([self._worlds.next(env) for env in envs]), strict=True):
                self._stages[env], self._actions[env] = stage, []
            over = [env for env in envs if self._stages[env].over]
            self._stop(over)
            envs = over

    def _stop(self, envs: Sequence[int]) -> None:
        for env in envs:
            self._driver.stop(self._stages.pop(env))

    def _advance(self, rows: Array) -> tuple[list[Result], Tensor]:
        """Make one decision in every world; worlds that are over are replaced by the next ones.

        Returns:
            The result of each decision, and which worlds it ended.
        """
        results = self._driver.step(self._all, [self._action(row) for row in rows])
        for actions, row in zip(self._actions, rows, strict=True):
            actions.append(row.copy())
        over = [env for env, stage in enumerate(self._all) if stage.over]
        self._stop(over)
        self._open(over)
        ended = torch.zeros(self.num_envs, dtype=torch.bool)
        ended[over] = True
        return results, ended

    def state_dict(self) -> StateDict:
        """Return the seeds, and the actions in the present worlds."""
        return {
            "base": self._worlds.base,
            "played": list(self._worlds.played),
            "answers": [torch.from_numpy(np.array(actions, np.float32)) for actions in self._actions],
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Replay the worlds up to where they were."""
        self.close()
        self._worlds.base, self._worlds.played = int(state["base"]), [int(n) for n in state["played"]]
        started = self._driver.start([self._worlds.current(env) for env in range(self.num_envs)])
        self._stages = dict(enumerate(started))
        self._actions = [[row.numpy().copy() for row in actions] for actions in state["answers"]]
        for step in range(max(map(len, self._actions))):
            envs = [env for env, actions in enumerate(self._actions) if step < len(actions)]
            rows = [self._action(self._actions[env][step]) for env in envs]
            self._driver.step([self._stages[env] for env in envs], rows)

    def close(self) -> None:
        """Stop all worlds."""
        self._stop(list(self._stages))


class LeagueDayVecEnv(_LockstepWorlds[DayStage, dict[str, list[float]]], VecEnv):
    """Worlds by days: L2's task. One seat of each world is ours, so that environments are independent.

    Args:
        worlds: Number of parallel worlds.
        plan: Days, levels and opponents of all worlds; its seed decides the first worlds.
        weights: Weights of the reward terms.

    Raises:
        ValueError: If the plan has several seats.
    """

    def __init__(self, worlds: int, plan: WorldPlan | None = None, weights: DayWeights | None = None) -> None:
        plan = plan or WorldPlan(seed=0)
        if plan.seats != 1:
            raise ValueError(
                f"seats={plan.seats}: seats of one world are not independent environments; use "
                "apexrl.envs.PettingZooVecEnv on parallel_env(seats=...) for several"
            )
        super().__init__(plan, worlds, DayStages(weights))
        self.observation_space = Box(-LIMIT, LIMIT, (len(DAY_VIEW),), np.float32)
        self.action_space = Box(-ACTION_LIMIT, ACTION_LIMIT, (DAY_ACTION_SIZE,), np.float32)

    def _action(self, row: Array) -> Array:
        return row[None]  # one seat

    def reset(self, seed: int | None = None) -> tuple[Tensor, Extras]:
        """Start a new world in every environment."""
        self._restart(seed)
        return self._views(), {}

    def _views(self) -> Tensor:
        return torch.from_numpy(np.concatenate([stage.views for stage in self._all]))

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, Extras]:
        """Play one decision day in every world."""
        rows = actions.detach().to("cpu", torch.float32).numpy().copy()
        finals = self._views()
        results, dones = self._advance(rows)
        # [worlds] by term
        parts = {name: np.array([terms[name][0] for terms in results], np.float32) for name in (*DAY_TERMS, "reward")}
        rewards = parts.pop("reward")
        extras: Extras = {
            "terminated": dones.clone(),
            "truncated": torch.zeros_like(dones),
            "time_outs": torch.zeros_like(dones),
            "reward_components": {name: torch.from_numpy(values) for name, values in parts.items()},
        }
        if bool(dones.any()):
            extras["final_observation"] = finals  # the last observation before the world ended
        return self._views(), torch.from_numpy(rewards), dones, extras


class LeagueRoundVecEnv(_LockstepWorlds[RoundStage, RoundStep], MultiAgentVecEnv):
    """Worlds by rounds: L3's and L4's task. An agent is a slot for a thread; its trajectory is one negotiation.

    Args:
        worlds: Number of parallel worlds.
        plan: Days, levels and opponents of all worlds; one seat is ours.
        day_weights: Weights of the day's terms, shared by the threads of the day's last round.
        thread_weights: Weights of the threads' own terms.
        policies: Networks whose L2 decides the days; if None, the heuristic does.
        actions: ``residual`` changes the heuristic's decision in a thread; ``raw`` is the decision itself: accept,
            counter or end, the units less one, the days until delivery, the price above the lowest legal one.
    """

    def __init__(
        self,
        worlds: int,
        plan: WorldPlan | None = None,
        day_weights: DayWeights | None = None,
        thread_weights: ThreadWeights | None = None,
        policies: Hierarchy | None = None,
        actions: ActionKind = "residual",
    ) -> None:
        driver = RoundStages(day_weights, thread_weights, policies, actions)
        super().__init__(replace(plan or WorldPlan(seed=0), seats=1), worlds, driver)
        self.num_agents = THREAD_SLOTS
        self.agent_names = [f"{side}_{n}" for side in ("supplier", "consumer") for n in range(SLOTS_PER_SIDE)]
        self.observation_space = Box(-LIMIT, LIMIT, (len(THREAD_VIEW),), np.float32)
        self.action_space = (
            MultiDiscrete(list(RAW_SIZES))
            if actions == "raw"
            else Box(-ACTION_LIMIT, ACTION_LIMIT, (ROUND_ACTION_SIZE,), np.float32)
        )
        self.state_space = Box(-LIMIT, LIMIT, (len(STATE_VIEW),), np.float32)

    def _action(self, row: Array) -> Array:
        return row

    def reset(self, seed: int | None = None) -> tuple[Tensor, MultiAgentExtras]:
        """Start a new world in every environment."""
        self._restart(seed)
        return self._views(), self._present()

    def _views(self) -> Tensor:
        return torch.from_numpy(np.stack([stage.views for stage in self._all]))

    def _present(self) -> MultiAgentExtras:
        return {
            "state": torch.from_numpy(np.stack([stage.state for stage in self._all])),
            "agent_mask": torch.from_numpy(np.stack([stage.mask for stage in self._all])),
        }

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, MultiAgentExtras]:
        """Play one round in every world."""
        rows = actions.detach().to("cpu", torch.float32).numpy().copy()
        views, before = self._views(), self._present()
        results, over = self._advance(rows)
        parts: dict[str, Tensor] = {
            name: torch.from_numpy(np.stack([result.terms[name] for result in results])) for name in THREAD_TERMS
        }
        extras: MultiAgentExtras = {
            **self._present(),
            "terminated": over.clone(),
            "truncated": torch.zeros_like(over),
            "time_outs": torch.zeros_like(over),
            "agent_terminated": torch.from_numpy(np.stack([result.ended for result in results])),
            "agent_truncated": torch.zeros(self.num_envs, THREAD_SLOTS, dtype=torch.bool),
            "reward_components": parts,
            "final_observation": views,
            "final_state": before["state"],
            "final_agent_mask": before["agent_mask"],
        }
        return self._views(), torch.from_numpy(np.stack([result.rewards for result in results])), over, extras

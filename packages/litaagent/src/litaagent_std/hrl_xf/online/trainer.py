"""The loop: snapshot v → a quota of worlds under v → barrier → update → v + 1.

Everything random comes from the run's seed and the number of the update, and everything that changes is in the
checkpoint, so a run that was killed goes on exactly as if it had not been.

Glossary: a *world* is played from its first day to its last; the *quota* is the number of worlds per update; a
*version* is what all transitions of an update were made by; *good* is the version to go back to, *best* the one that
the arena's gate has let through.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.collect.env_group import one_thread
from apexrl.execution import Executor
from apexrl.runs.atomic import ensure_folder, write_bytes
from apexrl.runs.checkpoints.checkpoint import Schema
from apexrl.runs.errors import ConfigurationError
from apexrl.runs.metrics.jsonl import JsonlFile
from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.weights import save
from litaagent_std.hrl_xf.online.config import OnlineConfig
from litaagent_std.hrl_xf.online.gate import judge
from litaagent_std.hrl_xf.online.jobs import Job, play_jobs
from litaagent_std.hrl_xf.online.methods.evolution import EvolutionMethod
from litaagent_std.hrl_xf.online.methods.methods import GradientMethod, Method
from litaagent_std.hrl_xf.online.methods.surface import SurfaceMethod
from litaagent_std.hrl_xf.online.monitor import Monitor, WindowStatistics, window_statistics
from litaagent_std.hrl_xf.online.opponents import OpponentPool
from litaagent_std.hrl_xf.online.rollout import WorldRollout
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.hrl_xf.rewards import DAY_TERMS, THREAD_TERMS, day_reward, thread_reward
from litaagent_std.policy.parameters import LEVELS
from litaagent_std.world.setup import AgentSpec

__all__ = ["SCHEMA", "Trainer"]

logger = logging.getLogger(__name__)

SCHEMA: Final = Schema(name="litaagent.online", version=1)
_DRAWS: Final = 200
"""Worlds drawn in search of one with our seats at the right places."""
_WORLDS_PER_DRAW: Final = 1 << 24
"""Distance of the draws' numbers: more than the worlds of any run."""


class Trainer:
    """A run under way.

    Args:
        cfg: The run's options.
        executor: What plays worlds.
        folder: Where weights and the gates' worlds go.

    Attributes:
        update: Updates finished so far, those before a resume included.
        stopped: Why training is over before its last update; empty if it is not.
        seconds: CPU seconds so far, workers' included, by what they were spent on.
    """

    def __init__(self, cfg: OnlineConfig, executor: Executor, folder: Path) -> None:
        self.cfg, self.folder = cfg, folder
        self._executor = executor
        warm = None if cfg.warm is None else PolicySet.load(cfg.warm)
        self.method = method_of(cfg, warm)
        self.pool = OpponentPool(cfg.pool)
        self.monitor = Monitor(cfg.monitor)
        self.update = 0
        self.worlds = 0
        self.rollbacks = 0
        self.stopped = ""
        self.best: Path | None = cfg.warm
        self.seconds = {"world": 0.0, "inference": 0.0, "update": 0.0, "gate": 0.0}
        self._good: dict[str, Any] | None = None

    # -- one update

    def plans(self) -> list[WorldPlan]:
        """Return the worlds of the next update."""
        cfg = self.cfg
        luck = np.random.default_rng(np.random.SeedSequence([cfg.seed, 1, self.update]))
        first = self.update * cfg.worlds
        return [self._plan(number, self.pool.draw(luck)) for number in range(first, first + cfg.worlds)]

    def _plan(self, number: int, opponents: tuple[AgentSpec, ...]) -> WorldPlan:
        """Return the world of a number: the first that has all our seats at the places to learn for."""
        cfg = self.cfg
        for draw in range(_DRAWS):
            seed = training_seed(cfg.seed, number + draw * _WORLDS_PER_DRAW)
            plan = WorldPlan(seed=seed, days=cfg.days, levels=cfg.levels, seats=cfg.seats, opponents=opponents)
            if cfg.places == LEVELS or set(draw_world(plan).place.values()) <= set(cfg.places):
                return plan
        raise ConfigurationError(
            f"none of {_DRAWS} worlds with {cfg.seats} seats of ours has them all at {', '.join(cfg.places)}",
            "with --places, every seat of ours must be at one of them",
            "give fewer seats, more places, or a number of --levels that has them",
        )

    def step(self, done: Callable[[int], None] | None = None) -> dict[str, float]:
        """One update: collect under the present version, wait for all, learn.

        Returns:
            Metrics.
        """
        jobs = self.method.jobs(self.plans())
        rollouts = play_jobs(self._executor, jobs, self.cfg.day_rewards, time_limit=self.cfg.time_limit, done=done)
        began = time.process_time()
        with one_thread():
            metrics = self.method.update(jobs, rollouts)
        self.seconds["update"] += time.process_time() - began
        self.update += 1
        self.worlds += len(rollouts)
        sight = self._look(jobs, rollouts)
        metrics |= {f"play/{name}": getattr(sight, name) for name in WindowStatistics.__slots__}
        metrics |= {f"win_rate/{name}": rate for name, rate in self.pool.win_rates().items()}
        metrics |= self._rewards(jobs, rollouts)
        return metrics | self._counters(rollouts)

    def _look(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> WindowStatistics:
        pairs = list(zip(jobs, rollouts, strict=True))
        ours = [rollout for job, rollout in pairs if job.policies.nets]
        reference = {
            rollout.seed: {seat.seat: seat.score for seat in rollout.seats}
            for job, rollout in pairs
            if not job.policies.nets
        }
        for rollout in ours:
            for seat in rollout.seats:
                for name, won in seat.beaten.items():
                    self.pool.note(name, won=won)
        sight = window_statistics(ours, reference)
        advice = self.monitor.look(sight)
        if self.monitor.is_new_best or self._good is None:
            self._good = copy.deepcopy(self.method.state_dict())  # its tensors are the learner's own
        if advice == "roll back":
            self._roll_back()
        elif advice == "stop":
            self.stopped = f"no better window for {self.cfg.monitor.patience} updates"
        return sight

    def _roll_back(self) -> None:
        assert self._good is not None  # set with the first update
        version = self.method.version
        self.method.load_state_dict(self._good)
        self.method.rename(version)  # the version goes on counting: no two policies share a number
        self.rollbacks += 1
        logger.warning("update %d: the last window is worse than the best one; back to its version", self.update)

    def _rewards(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Return the mean reward of a day and of a thread, and its terms before they are weighted."""
        days, threads = _terms(jobs, rollouts)
        found = {"reward/day": day_reward(days, self.cfg.day_rewards)}
        found |= {f"reward/day_{name}": value for name, value in days.items()}
        if threads:
            found["reward/thread"] = thread_reward(threads, self.cfg.thread_rewards)
        return found | {f"reward/thread_{name}": value for name, value in threads.items()}

    def _counters(self, rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        inference = sum(rollout.seconds["inference"] for rollout in rollouts)
        self.seconds["inference"] += inference
        self.seconds["world"] += sum(rollout.seconds["total"] for rollout in rollouts) - inference
        decisions = sum(len(seat.days.day) for rollout in rollouts for seat in rollout.seats)
        counted = {"sync/version": self.method.version, "sync/worlds": self.worlds, "sync/days": decisions}
        spent = {f"time/cpu_{name}": value for name, value in self.seconds.items()}
        return {name: float(value) for name, value in counted.items()} | spent | {"sync/rollbacks": self.rollbacks}

    # -- weights and the gate

    def save_weights(self) -> Path:
        """Write the present policies and returns where."""
        policies = self.method.policies()
        path = ensure_folder(self.folder / "weights") / f"v{policies.version:05d}.npz"
        save(policies, path, updates=self.update, worlds=self.worlds, seed=self.cfg.seed, made_by="lita train-online")
        return path

    def after(self) -> dict[str, float]:
        """Return what is due between two updates: a past self, the gate."""
        cfg, found = self.cfg, dict[str, float]()
        if cfg.self_every and self.update % cfg.self_every == 0:
            self.pool.add_self(self.save_weights())
        if cfg.gate.every and self.update % cfg.gate.every == 0:
            found = self.ask_gate()
        return found

    def ask_gate(self) -> dict[str, float]:
        """Lets the arena decide whether the present policies become the best."""
        cfg, candidate = self.cfg, self.save_weights()
        verdict, told, seconds = judge(
            candidate,
            self.best,
            cfg.gate,
            name=f"online-{self.folder.name}-{cfg.seed}-{self.update}",
            opponents=self.pool.held_out,
            executor=self._executor,
            folder=self.folder / "gate",
            levels=cfg.levels,
            places=cfg.places,
            time_limit=cfg.time_limit,
        )
        self._record(told)
        if verdict.answer == "better":
            self.best = candidate
            write_bytes(self.folder / "best.npz", candidate.read_bytes())
        self.seconds["gate"] += seconds
        return {
            "gate/mean": verdict.mean,
            "gate/low": verdict.low,
            "gate/passed": float(verdict.answer == "better"),
            "time/cpu_gate": self.seconds["gate"],
        }

    def _record(self, told: Mapping[str, Any]) -> None:
        file = JsonlFile(self.folder / "gates.jsonl", self.update - 1)
        file.append({"step": self.update, **told})
        file.close()

    # -- going on

    def state_dict(self) -> dict[str, Any]:
        """Everything that the run needs to go on as if it had not stopped."""
        return {
            "method": self.method.state_dict(),
            "good": self._good,
            "pool": self.pool.state_dict(),
            "monitor": self.monitor.state_dict(),
            "update": self.update,
            "worlds": self.worlds,
            "rollbacks": self.rollbacks,
            "stopped": self.stopped,
            "best": None if self.best is None else str(self.best),
            "seconds": dict(self.seconds),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state_dict`."""
        self.method.load_state_dict(state["method"])
        self._good = None if state["good"] is None else dict(state["good"])
        self.pool.load_state_dict(state["pool"])
        self.monitor.load_state_dict(state["monitor"])
        self.update, self.worlds = int(state["update"]), int(state["worlds"])
        self.rollbacks, self.stopped = int(state["rollbacks"]), str(state["stopped"])
        self.best = None if state["best"] is None else Path(state["best"])
        self.seconds |= {name: float(value) for name, value in state["seconds"].items()}


def method_of(cfg: OnlineConfig, warm: PolicySet | None) -> Method:
    """Return the method that the options name."""
    if cfg.method == "es":
        return EvolutionMethod(cfg.evolution, cfg.seed, warm, cfg.places)
    if cfg.method == "surface":
        return SurfaceMethod(cfg.surface, cfg.seed, warm, cfg.places)
    return GradientMethod(cfg, warm)


def _terms(jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> tuple[dict[str, float], dict[str, float]]:
    """Means of all reward terms, over days and over threads; no terms of threads if rounds were not steered."""
    seats = [seat for job, rollout in zip(jobs, rollouts, strict=True) if job.policies.nets for seat in rollout.seats]
    days = {name: float(np.concatenate([seat.days.terms[name] for seat in seats]).mean()) for name in DAY_TERMS}
    rows = [seat.rounds for seat in seats if seat.rounds is not None and len(seat.rounds.day)]
    if not rows:
        return days, {}
    return days, {name: float(np.concatenate([one.terms[name] for one in rows]).mean()) for name in THREAD_TERMS}

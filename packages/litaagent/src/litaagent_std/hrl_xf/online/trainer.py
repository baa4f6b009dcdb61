"""What the run loop trains online: snapshot v → a quota of worlds under v → barrier → update → v + 1.

All randomness comes from the run's seed and the number of the update, and everything that changes is in the checkpoint,
so a run that was killed resumes to the last bit.

Glossary: a *world* is played from its first day to its last; the *quota* is the number of worlds per update; all
transitions of an update are of one *version* of the policies; *good* is the state for a roll-back, *best* the weights
that passed the arena's gate.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.agent.learner import Learner
from apexrl.collect.env_group import one_thread
from apexrl.configuration import to_mapping
from apexrl.execution import Executor
from apexrl.runs.atomic import ensure_folder, write_bytes
from apexrl.runs.errors import ConfigurationError
from apexrl.runs.metrics.jsonl import JsonlFile
from apexrl.runs.reading import reading
from litaagent_std.hrl_xf.online.config import FREE_FIELDS, OnlineConfig
from litaagent_std.hrl_xf.online.gate import evaluate_candidate
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.jobs import Job, play_jobs
from litaagent_std.hrl_xf.online.methods import make_method
from litaagent_std.hrl_xf.online.monitor import Monitor, WindowStatistics, window_statistics
from litaagent_std.hrl_xf.online.opponents import OpponentPool
from litaagent_std.hrl_xf.online.rollout import WorldRollout, check_rollouts
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, require_days, training_seed
from litaagent_std.hrl_xf.rewards import DAY_TERMS, THREAD_TERMS, day_reward, thread_reward
from litaagent_std.policy.parameters import LEVELS
from litaagent_std.world.setup import AgentSpec

__all__ = ["Trainer"]

logger = logging.getLogger(__name__)

_DRAWS: Final = 200
"""Draws until a world has all our seats at the levels to learn for."""
_WORLDS_PER_DRAW: Final = 1 << 24
"""Offset of world indices between two draws: more than the worlds of any run."""


class Trainer(Learner):
    """Training in the league: an iteration plays the worlds of one version and learns from them.

    Args:
        cfg: Options of the run.
        executor: Plays the worlds.
        folder: Folder for weights and the gate's worlds.

    Attributes:
        updates: Finished updates, those before a resume included.
        worlds: Worlds played so far.
        rollbacks: Roll-backs so far.
        best: Weights that passed the gate last; None before.
        seconds: CPU seconds so far by purpose, workers included.
    """

    name = "litaagent.online"
    unit = "updates"
    free = frozenset(FREE_FIELDS)

    def __init__(self, cfg: OnlineConfig, executor: Executor, folder: Path) -> None:
        require_days(cfg.days, cfg.levels, "--days")
        if cfg.gate.every:
            require_days(cfg.gate.days, cfg.levels, "--gate.days")
        self.cfg, self.folder = cfg, folder
        self._executor = executor
        with reading(cfg.warm or folder, ConfigurationError, "a warm start must fit this version", "name another file"):
            warm_start = None if cfg.warm is None else Hierarchy.load(cfg.warm)
        self.method = make_method(cfg, warm_start)
        self.pool = OpponentPool(cfg.pool)
        self.monitor = Monitor(cfg.monitor)
        self.updates = 0
        self.worlds = 0
        self.rollbacks = 0
        self.best: Path | None = cfg.warm
        self.seconds = {"world": 0.0, "policy": 0.0, "inference": 0.0, "update": 0.0, "gate": 0.0}
        self._good: dict[str, Any] | None = None
        self._played: tuple[list[Job], list[WorldRollout]] = ([], [])
        self._statistics: WindowStatistics  # of these worlds

    @property
    def config(self) -> Mapping[str, Any]:
        """The options, in plain values."""
        return to_mapping(self.cfg)

    @property
    def seed(self) -> int:
        """Seed of worlds, exploration, networks and opponents."""
        return self.cfg.seed

    # -- one update

    def plans(self) -> list[WorldPlan]:
        """Return the worlds of the next update."""
        cfg = self.cfg
        rng = np.random.default_rng(np.random.SeedSequence([cfg.seed, 1, self.updates]))
        first = self.updates * cfg.worlds
        return [self._plan(index, self.pool.draw(rng)) for index in range(first, first + cfg.worlds)]

    def _plan(self, index: int, opponents: tuple[AgentSpec, ...]) -> WorldPlan:
        """Return the world of an index: its first draw that has all our seats at the levels to learn for."""
        cfg = self.cfg
        for draw in range(_DRAWS):
            seed = training_seed(cfg.seed, index + draw * _WORLDS_PER_DRAW)
            plan = WorldPlan(seed=seed, days=cfg.days, levels=cfg.levels, seats=cfg.seats, opponents=opponents)
            if cfg.places == LEVELS or set(draw_world(plan).seat_levels.values()) <= set(cfg.places):
                return plan
        raise ConfigurationError(
            f"none of {_DRAWS} worlds with {cfg.seats} seats of ours has them all at {', '.join(cfg.places)}",
            "with --places, every seat of ours must be at one of these levels",
            "give fewer seats, more places, or a number of --levels that has them",
        )

    def collect(self) -> dict[str, float]:
        """Play worlds under the present version and wait for all of them; return metrics of play."""
        jobs = self.method.jobs(self.plans())
        rollouts = play_jobs(
            self._executor, jobs, self.cfg.day_rewards, group=self.cfg.lockstep, time_limit=self.cfg.time_limit
        )
        check_rollouts(rollouts)
        self._played = jobs, rollouts
        self.worlds += len(rollouts)
        for rollout in _ours(jobs, rollouts):
            for seat in rollout.seats:
                for name, won in seat.beaten.items():
                    self.pool.record_game(name, won=won)
        self._statistics = window_statistics(_ours(jobs, rollouts), _reference(jobs, rollouts))
        metrics = {f"play/{name}": getattr(self._statistics, name) for name in WindowStatistics.__slots__}
        metrics |= {f"win_rate/{name}": rate for name, rate in self.pool.win_rates().items()}
        return metrics | self._reward_metrics(jobs, rollouts)

    def update(self) -> dict[str, float]:
        """Learn from the worlds; then continue, roll back or stop as the monitor decides."""
        jobs, rollouts = self._played
        began = time.process_time()
        with one_thread():
            metrics = self.method.update(jobs, rollouts)
        self.seconds["update"] += time.process_time() - began
        self.updates += 1
        self._monitor_update(self._statistics)
        if self.cfg.self_every and self.updates % self.cfg.self_every == 0:
            self.pool.add_self(self.save_weights())
        return metrics | self._counters(rollouts)

    def _monitor_update(self, statistics: WindowStatistics) -> None:
        decision = self.monitor.update(statistics)
        if self.monitor.is_new_best or self._good is None:
            self._good = copy.deepcopy(self.method.state_dict())  # the state shares tensors with the learner
        if decision == "roll back":
            self._roll_back()
        elif decision == "stop":
            self.finished = f"no better window for {self.cfg.monitor.patience} updates"

    def _roll_back(self) -> None:
        assert self._good is not None  # set by the first update
        version = self.method.version
        self.method.load_state_dict(self._good)
        self.method.set_version(version)  # versions keep counting: no two policies share a number
        self.rollbacks += 1
        logger.warning(
            "update %d: the last window is worse than the best one; rolled back to its version", self.updates
        )

    def _reward_metrics(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Return the mean reward of a day and of a thread, and their terms without weights."""
        days, threads = _terms(jobs, rollouts)
        metrics = {"reward/day": day_reward(days, self.cfg.day_rewards)}
        metrics |= {f"reward/day_{name}": value for name, value in days.items()}
        if threads:
            metrics["reward/thread"] = thread_reward(threads, self.cfg.thread_rewards)
        return metrics | {f"reward/thread_{name}": value for name, value in threads.items()}

    def _counters(self, rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        parts = ("inference", "policy", "total")
        spent_on = {name: sum(rollout.seconds[name] for rollout in rollouts) for name in parts}
        self.seconds["inference"] += spent_on["inference"]
        self.seconds["policy"] += spent_on["policy"] - spent_on["inference"]
        self.seconds["world"] += spent_on["total"] - spent_on["policy"]
        decisions = sum(len(seat.days.day) for rollout in rollouts for seat in rollout.seats)
        counted = {"sync/version": self.method.version, "sync/worlds": self.worlds, "sync/days": decisions}
        spent = {f"time/cpu_{name}": value for name, value in self.seconds.items()}
        return {name: float(value) for name, value in counted.items()} | spent | {"sync/rollbacks": self.rollbacks}

    # -- weights and the gate

    def save_weights(self) -> Path:
        """Write the present networks and return their folder."""
        policies = self.method.policies()
        made = {"updates": self.updates, "worlds": self.worlds, "seed": self.cfg.seed, "made_by": "lita train-online"}
        return policies.save(ensure_folder(self.folder / "weights") / f"v{policies.version:05d}", **made)

    def evaluate(self, **options: Any) -> dict[str, float]:  # noqa: ANN401 - there are none
        """Run the gate: evaluate the present policies in the arena; they become the best if they win."""
        cfg, candidate = self.cfg, self.save_weights()
        verdict, record, seconds = evaluate_candidate(
            candidate,
            self.best,
            cfg.gate,
            name=f"online-{cfg.seed}-{self.updates}",
            opponents=self.pool.held_out,
            executor=self._executor,
            folder=self.folder / "gate",
            levels=cfg.levels,
            seat_levels=cfg.places,
            time_limit=cfg.time_limit,
        )
        self._append_gate(record)
        if verdict.answer == "better":
            self.best = candidate
            for file in candidate.glob("*.npz"):
                write_bytes(ensure_folder(self.folder / "best") / file.name, file.read_bytes())
        self.seconds["gate"] += seconds
        return {
            "gate/mean": verdict.mean,
            "gate/low": verdict.low,
            "gate/passed": float(verdict.answer == "better"),
            "time/cpu_gate": self.seconds["gate"],
        }

    def _append_gate(self, record: Mapping[str, Any]) -> None:
        file = JsonlFile(self.folder / "gates.jsonl", self.updates - 1)
        file.append({"step": self.updates, **record})
        file.close()

    # -- checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the run needs to resume exactly."""
        return {
            "method": self.method.state_dict(),
            "good": self._good,
            "pool": self.pool.state_dict(),
            "monitor": self.monitor.state_dict(),
            "update": self.updates,
            "worlds": self.worlds,
            "rollbacks": self.rollbacks,
            "stopped": self.finished or "",
            "best": None if self.best is None else str(self.best),
            "seconds": dict(self.seconds),
        }

    def counters(self, state: Mapping[str, Any]) -> tuple[int, int]:
        """Return the updates of a checkpoint, which are both iterations and progress."""
        return int(state["update"]), int(state["update"])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        self.method.load_state_dict(state["method"])
        self._good = None if state["good"] is None else dict(state["good"])
        self.pool.load_state_dict(state["pool"])
        self.monitor.load_state_dict(state["monitor"])
        self.updates, self.worlds = int(state["update"]), int(state["worlds"])
        self.rollbacks, self.finished = int(state["rollbacks"]), state["stopped"] or None
        self.best = None if state["best"] is None else Path(state["best"])
        self.seconds |= {name: float(value) for name, value in state["seconds"].items()}


def _ours(jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> list[WorldRollout]:
    """Return the worlds that were played with our networks."""
    return [rollout for job, rollout in zip(jobs, rollouts, strict=True) if job.policies.nets]


def _reference(jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[int, dict[int, float]]:
    """Return the scores of the reference policy by seed and seat."""
    return {
        rollout.seed: {seat.seat: seat.score for seat in rollout.seats}
        for job, rollout in zip(jobs, rollouts, strict=True)
        if not job.policies.nets
    }


def _terms(jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> tuple[dict[str, float], dict[str, float]]:
    """Return means of all reward terms over days and over threads; the latter are empty if there were no rounds."""
    seats = [seat for rollout in _ours(jobs, rollouts) for seat in rollout.seats]
    days = {name: float(np.concatenate([seat.days.terms[name] for seat in seats]).mean()) for name in DAY_TERMS}
    rows = [seat.rounds for seat in seats if seat.rounds is not None and len(seat.rounds.day)]
    if not rows:
        return days, {}
    return days, {name: float(np.concatenate([rounds.terms[name] for rounds in rows]).mean()) for name in THREAD_TERMS}

"""Evaluation of a student in held-out worlds: agreement with the teacher, scores and CPU time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from apexrl.statistics import paired_difference
from litaagent_std.arena.stopwatch import start, stop, timed_path
from litaagent_std.hrl_xf.online.distillation.shadow import Agreement, ShadowedAgent
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.opponents import LITA
from litaagent_std.hrl_xf.online.worlds import TrainingWorld, WorldPlan, draw_world
from litaagent_std.policy.networks.exploration import Exploration
from litaagent_std.policy.networks.inference import CoordinatorNetwork, DecisionNetwork, GoalNetwork
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec

__all__ = ["check_world", "summarize_checks"]

_SHADOWED: Final = "litaagent_std.hrl_xf.online.distillation.shadow.ShadowedAgent"
_REPEATS: Final = 5
"""Repetitions of the timing; the minimum counts, because other load only adds time."""


def check_world(plan: WorldPlan, teacher: Hierarchy, others: Mapping[str, Hierarchy]) -> dict[str, Any]:
    """Play a world with the teacher and its shadows, then with teacher and student alone; runs in a worker.

    Args:
        plan: The world; one seat is ours.
        teacher: Networks of the teacher.
        others: Networks to compare with it by name; one is the ``student``.

    Returns:
        Plain values: counts of agreement by name, scores, and CPU seconds under ``cpu``.
    """
    training_world = draw_world(plan)
    with TemporaryDirectory() as folder:
        files = {
            name: str(networks.save(Path(folder, name))) if networks.nets else None
            for name, networks in {"teacher": teacher, **others}.items()
        }
        shadowed = _shadowed(training_world, files["teacher"], {name: files[name] for name in others})
        scores, decisions = {}, {}
        for name in ("teacher", "student") if plan.seed % 2 else ("student", "teacher"):  # neither is always the first
            scores[name], decisions[name] = _timed(training_world, files[name])
    seconds = _inference_seconds({"teacher": teacher, "student": others["student"]}, shadowed.asked)
    return {
        "agreement": {name: asdict(counts) for name, counts in shadowed.agreement.items()},
        "scores": scores,
        "cpu": {"answers": seconds, "asked": shadowed.decisions, "decisions": decisions},
    }


def _shadowed(training_world: TrainingWorld, teacher: str | None, shadows: Mapping[str, str | None]) -> ShadowedAgent:
    world = FastWorld(
        training_world.with_ours(AgentSpec(_SHADOWED, {"teacher": teacher, "shadows": shadows})), defaults="native"
    )
    world.run()
    agent = world.seats[training_world.seats[0]].agent
    assert isinstance(agent, ShadowedAgent)
    return agent


def _timed(training_world: TrainingWorld, weights: str | None) -> tuple[float, dict[str, float]]:
    """Return the score of a seat, and the CPU seconds and number of its decisions."""
    world = FastWorld(training_world.with_ours(AgentSpec(timed_path(LITA), {"weights": weights})), defaults="native")
    start()
    try:
        world.run()
    finally:
        reading = stop()
    score = list(world.scores().values())[training_world.seats[0]]
    return float(score), {"seconds": reading.seconds, "calls": reading.calls}


def _inference_seconds(compared: Mapping[str, Hierarchy], asked: Exploration) -> dict[str, float]:
    """Return CPU seconds of the networks for everything that the teacher's were asked in a world."""
    seconds = dict.fromkeys(compared, float("inf"))
    for _ in range(_REPEATS):
        for name, networks in compared.items():
            nets = networks.nets
            goals = GoalNetwork(nets["l2"])
            decisions = DecisionNetwork(nets["l3"]).outputs if "l3" in nets else None
            weigher = CoordinatorNetwork(nets["l4"]) if "l4" in nets else None
            began = time.process_time()
            for day in asked.days:
                goals.latents(day.inputs)
            if decisions is not None:
                for threads in asked.rounds:
                    decisions(threads.inputs)
            if weigher is not None:
                for side in asked.weights:
                    weigher(side.threads, side.mask)
            seconds[name] = min(seconds[name], time.process_time() - began)
    return seconds


def summarize_checks(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise worlds: shares of equal decisions and goals, paired difference of scores, ratios of CPU time."""
    agreement = {}
    for name in checks[0]["agreement"]:
        total = Agreement()
        for check in checks:
            for field, value in check["agreement"][name].items():
                setattr(total, field, getattr(total, field) + value)
        agreement[name] = _shares(total)
    scores = {name: [check["scores"][name] for check in checks] for name in ("teacher", "student")}
    difference = paired_difference(scores["student"], scores["teacher"])
    return {
        "agreement": agreement,
        "score": {
            "worlds": difference.count,
            **{name: sum(values) / len(values) for name, values in scores.items()},
            "difference": difference.mean,
            "low": difference.low,
            "high": difference.high,
        },
        "cpu": _costs(checks),
    }


def _shares(counts: Agreement) -> dict[str, float]:
    return {
        "decisions": counts.threads,
        "same_kind": counts.kinds / max(1, counts.threads),
        "same_decision": counts.same / max(1, counts.threads),
        "same_goal_quantity": counts.same_quantities / max(1, counts.quantities),
        "goal_price_gap": counts.price_gap / max(1, counts.prices),
    }


def _costs(checks: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return microseconds of CPU time per decision: of the networks alone, and of the whole agent."""
    decisions = max(1, sum(check["cpu"]["asked"] for check in checks))
    networks = {
        name: 1e6 * sum(check["cpu"]["answers"][name] for check in checks) / decisions
        for name in ("teacher", "student")
    }
    whole = {}
    for name in ("teacher", "student"):
        spent = [check["cpu"]["decisions"][name] for check in checks]
        whole[name] = 1e6 * sum(world["seconds"] for world in spent) / max(1, sum(world["calls"] for world in spent))
    parts = {"networks_us": networks, "decision_us": whole}
    return {name: part | {"ratio": part["student"] / part["teacher"]} for name, part in parts.items()}

"""The gate: a candidate becomes the best only if it beats the best in the arena, on seeds that were never used."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any, Final

from apexrl.execution import Executor
from litaagent_std.arena.evaluation import Evaluation, Plan, evaluate
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.sequential import Verdict
from litaagent_std.arena.units import UnitStore
from litaagent_std.arena.worlds import Rules
from litaagent_std.hrl_xf.online.config import GateConfig
from litaagent_std.hrl_xf.online.opponents import weights_agent
from litaagent_std.policy.networks.weights import weights_path
from litaagent_std.policy.parameters import LEVELS, Level
from litaagent_std.tournament.competitors.names import Competitor
from litaagent_std.tournament.competitors.registry import BUILT_IN
from litaagent_std.world.setup import AgentSpec

__all__ = ["evaluate_candidate"]

SHIPPED: Final = "litaagent_std.agents.hrl.LitaAgentHRL"
"""The agent that the first candidate must beat."""


def evaluate_candidate(
    candidate: Path,
    best: Path | None,
    cfg: GateConfig,
    *,
    name: str,
    opponents: tuple[str, ...],
    executor: Executor,
    folder: Path,
    levels: int | None = None,
    seat_levels: tuple[Level, ...] = LEVELS,
    time_limit: float = 3600.0,
) -> tuple[Verdict, dict[str, Any], float]:
    """Compare a candidate with the best in paired worlds until the sequential test decides.

    Args:
        candidate: Weights of the candidate.
        best: Weights of the best; if None, the shipped agent.
        cfg: Worlds and lead.
        name: Name of the block of seeds; a new one for every evaluation.
        opponents: The other competitors: those held out from training.
        executor: Plays the worlds.
        folder: Folder of finished worlds.
        levels: Number of production levels; if None, the official range.
        seat_levels: Levels of the chain that the candidate and the best were trained for.
        time_limit: Seconds per world.

    Returns:
        The verdict, its record as plain values, and the CPU seconds of its worlds.
    """
    rules = Rules(opponents or (BUILT_IN["GreedyStd"],), days=cfg.days, levels=levels)
    incumbent = AgentSpec(SHIPPED) if best is None else weights_agent(weights_path(best))
    plan = Plan(
        Competitor("candidate", weights_agent(candidate)),
        (Competitor("best", incumbent),),
        rules,
        seed_block(f"gate:{name}"),
        cfg.worlds,
        cfg.lead,
        places=seat_levels,
    )
    # the worlds are this run's alone, so weights distinguish the agents, and nothing is played to fingerprint them
    store = UnitStore(folder / "units")
    evaluation: Evaluation = evaluate(plan, store, executor, time_limit=time_limit, code="of the run")
    verdict = evaluation.verdict("best")
    record = {
        "gate": name,
        "candidate": candidate.name,
        "best": "shipped" if best is None else best.name,
        "answer": verdict.answer,
        "worlds": verdict.worlds,
        "places": seat_levels,
        **{name: _finite(getattr(verdict, name)) for name in ("mean", "low", "high")},
        "failed": len(evaluation.failed),
    }
    seconds = sum(unit["cpu"]["world_seconds"] for units in evaluation.units.values() for unit in units.values())
    return verdict, record, seconds


def _finite(value: float) -> float | None:
    """Return a value for JSON; None for a bound that is not finite yet."""
    return value if isfinite(value) else None

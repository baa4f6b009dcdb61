"""The gate: a candidate becomes the best only if it beats the best in the arena, on worlds that nobody has seen."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any, Final

from apexrl.execution import Executor
from litaagent_std.arena.evaluation import Contestant, Evaluation, Plan, evaluate
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.sequential import Verdict
from litaagent_std.arena.units import UnitStore
from litaagent_std.arena.worlds import Rules
from litaagent_std.hrl_xf.online.config import GateConfig
from litaagent_std.hrl_xf.online.opponents import PAST_SELF
from litaagent_std.policy.parameters import LEVELS, Level
from litaagent_std.tournament.competitors.registry import BUILT_IN
from litaagent_std.world.setup import AgentSpec

__all__ = ["judge"]

SHIPPED: Final = "litaagent_std.agents.hrl.LitaAgentHRL"
"""The agent that the first candidate must beat."""


def judge(
    candidate: Path,
    best: Path | None,
    cfg: GateConfig,
    *,
    name: str,
    opponents: tuple[str, ...],
    executor: Executor,
    folder: Path,
    levels: int | None = None,
    places: tuple[Level, ...] = LEVELS,
    time_limit: float = 3600.0,
) -> tuple[Verdict, dict[str, Any], float]:
    """Compare a candidate with the best in paired worlds until the answer is clear.

    Args:
        candidate: Its weights.
        best: The best's weights; the shipped agent when None.
        cfg: Worlds and lead.
        name: Names the block of seeds; a new one for every judgement.
        opponents: Who sits in the other competitors' seats: those held out from training.
        executor: What plays.
        folder: Where finished worlds are kept.
        levels: Production levels; the official range when None.
        places: Places in the chain that the candidate and the best were trained for.
        time_limit: Seconds per world.

    Returns:
        The verdict, plain values for the record, and the CPU seconds of its worlds.
    """
    rules = Rules(opponents or (BUILT_IN["GreedyStd"],), days=cfg.days, levels=levels)
    incumbent = AgentSpec(SHIPPED) if best is None else AgentSpec(PAST_SELF, {"weights": str(best)})
    plan = Plan(
        Contestant("candidate", AgentSpec(PAST_SELF, {"weights": str(candidate)})),
        (Contestant("best", incumbent),),
        rules,
        seed_block(f"gate:{name}"),
        cfg.worlds,
        cfg.lead,
        places=places,
    )
    found: Evaluation = evaluate(plan, UnitStore(folder / "units"), executor, time_limit=time_limit)
    verdict = found.verdict("best")
    told = {
        "gate": name,
        "candidate": candidate.name,
        "best": "shipped" if best is None else best.name,
        "answer": verdict.answer,
        "worlds": verdict.worlds,
        "places": places,
        **{name: _finite(getattr(verdict, name)) for name in ("mean", "low", "high")},
        "failed": len(found.failed),
    }
    seconds = sum(unit["cpu"]["world_seconds"] for units in found.units.values() for unit in units.values())
    return verdict, told, seconds


def _finite(value: float) -> float | None:
    """Return a value as JSON holds it; None for an end that is not known yet."""
    return value if isfinite(value) else None

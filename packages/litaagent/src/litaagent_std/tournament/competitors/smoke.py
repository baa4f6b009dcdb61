"""A smoke check of competitors: does each play, and what does a day with it cost?"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

from litaagent_std.tournament.competitors.names import Competitor
from litaagent_std.world.events import ContractSigned, NegotiationRef, Outcome, WorldObserver
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, WorldSetup, official_setup

__all__ = ["SmokeResult", "check_competitor"]

_LEVELS: Final = 3


@dataclass(frozen=True, slots=True)
class SmokeResult:
    """What a competitor did in short worlds, once on each level.

    Attributes:
        competitor: Its name.
        score: Its mean score.
        offers: Legal offers that it made.
        contracts: Contracts that it concluded.
        errors: Exceptions that came out of it.
        ms_per_day: CPU milliseconds that it added to a day of the world, in the place of a native greedy agent.
    """

    competitor: str
    score: float
    offers: int
    contracts: int
    errors: int
    ms_per_day: float

    @property
    def ok(self) -> bool:
        """Whether it played: it made offers and raised nothing."""
        return self.offers > 0 and self.errors == 0


class _Watch(WorldObserver):
    """Counts what one seat does."""

    def __init__(self, seat: int) -> None:
        self._seat = seat
        self.offers = self.contracts = 0

    def on_offer(self, negotiation: NegotiationRef, round_: int, agent: str, offer: Outcome) -> None:
        """Count an offer of the seat."""
        self.offers += agent.startswith(f"{self._seat:02}")

    def on_contract(self, event: ContractSigned) -> None:
        """Count a contract of the seat."""
        ref = event.negotiation
        self.contracts += any(side.startswith(f"{self._seat:02}") for side in (ref.buyer, ref.seller))


def check_competitor(competitor: Competitor, *, days: int = 8, seed: int = 0) -> SmokeResult:
    """Plays a short world of three levels once from a seat of each level: some agents rest on some levels.

    Args:
        competitor: Who is checked.
        days: Days of each world.
        seed: Seed of the worlds.
    """
    setup = official_setup(seed, n_days=days, n_levels=_LEVELS)
    spec = replace(competitor.spec, competitor=True)
    spec.load()  # importing is no part of a day's cost
    seconds, scores, errors, offers, contracts = 0.0, 0.0, 0, 0, 0
    for level in range(_LEVELS):
        seat = next(index for index, factory in enumerate(setup.factories) if factory.level == level)
        greedy = setup.with_agents({seat: AgentSpec("scml.std.agents.greedy.GreedyStdAgent")})
        seconds -= _play(greedy, _Watch(seat), seat)[0]
        watch = _Watch(seat)
        spent, score, raised = _play(setup.with_agents({seat: spec}), watch, seat)
        seconds, scores, errors = seconds + spent, scores + score, errors + raised
        offers, contracts = offers + watch.offers, contracts + watch.contracts
    cost = seconds / (days * _LEVELS) * 1000
    return SmokeResult(competitor.name, scores / _LEVELS, offers, contracts, errors, cost)


def _play(setup: WorldSetup, watch: _Watch, seat: int) -> tuple[float, float, int]:
    """Return CPU seconds of a world, and score and exceptions of a seat."""
    started = time.process_time()
    with silence():
        end = run_world(setup, observers=[watch], defaults="native")
    seconds = time.process_time() - started
    [name] = [agent for agent in end.scores if agent.startswith(f"{seat:02}")]
    return seconds, end.scores[name], end.n_errors.get(name, 0)

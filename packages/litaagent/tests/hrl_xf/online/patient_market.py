"""A market with a known optimal strategy, for tests of learners.

One factory of ours sells to one patient buyer, for the same day only. The buyer offers the lowest legal price in every
round, and in its last two rounds accepts any offer. The heuristic seller concedes with time down to its reservation
price, so it sells cheaply, and the trading price falls; the optimal seller holds the highest legal price until the end.
The best possible result is the highest legal price for the output of all lines on every day; `best_score` computes it
without playing.
"""

from __future__ import annotations

from typing import Any, Final, cast

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.hrl_xf.online.worlds import OURS, TrainingWorld, training_world_of
from litaagent_std.policy.brain import Brain, Decision
from litaagent_std.policy.observation import Calendar, Observation, Offer, ThreadObservation
from litaagent_std.world.rules.prices import price_band
from litaagent_std.world.setup import AgentSpec, ExogenousContract, Factory, WorldSetup

__all__ = ["PatientBuyer", "best_score", "patient_market"]

LINES: Final = 10
DAYS: Final = 8
ROUNDS: Final = 6
PRICES: Final = (1, 40, 80)
COST: Final = 30
BALANCE: Final = 1000
_DECAY: Final = 0.9
_UNITS_BEFORE: Final = 50


class _PatientBrain:
    """Offer the lowest price for all lines, and accept any offer at the end."""

    def start_day(self, obs: Observation) -> None:
        """Set the day's offer."""
        assert obs.buy_agenda is not None  # the buyer is not at the first level
        self._cheap = Offer(LINES, obs.day, obs.buy_agenda.price_min)

    def propose(self, threads: list[ThreadObservation]) -> dict[str, Offer | None]:
        """Offer the lowest legal price for today."""
        return {thread.partner: self._cheap for thread in threads}

    def respond(self, threads: list[ThreadObservation]) -> dict[str, Decision]:
        """Insist on the lowest price until the last two rounds."""
        return {
            thread.partner: Decision("accept", thread.offer)
            if thread.round >= ROUNDS - 2
            else Decision("reject", self._cheap)
            for thread in threads
        }

    def contract(self, partner: str, *, buying: bool, offer: Offer) -> None:
        """Do nothing."""

    def thread_failed(self, partner: str) -> None:
        """Do nothing."""

    def end_day(self, calendar: Calendar) -> None:
        """Do nothing."""


class PatientBuyer(LitaAgentHRL):
    """The buyer of the market."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.brain = cast("Brain", _PatientBrain())


def patient_market(seed: int = 0, days: int = DAYS) -> TrainingWorld:
    """Return the market as a world with one seat of ours; nothing in it is random, so the seed changes nothing."""
    free = (0.0, 0.0)
    ours = Factory(0, COST, LINES, BALANCE, (0.5, 0.0), free)
    buyer = Factory(1, 1, LINES, 1_000_000, (0.1, 0.0), free)
    supply = [ExogenousContract(day, 0, LINES, 1, -1, 0) for day in range(days)]
    demand = [ExogenousContract(day, 2, LINES, 200, 1, -1) for day in range(days)]
    setup = WorldSetup(
        seed,
        days,
        PRICES,
        (ours, buyer),
        tuple(supply + demand),
        (AgentSpec(OURS, competitor=True), AgentSpec(f"{__name__}.PatientBuyer")),
        n_rounds=ROUNDS,
        horizon=0,
        neutral_names=True,
    )
    return training_world_of(setup)


def best_score(days: int = DAYS) -> float:
    """Return the score of a seller that gets the highest legal price for all its lines on every day.

    The trading price follows by the league's rule: tp' = (0.9·B·tp + q·p) / (0.9·B + q), B' = 0.9·B + q.
    """
    price, units, balance = float(PRICES[1]), float(_UNITS_BEFORE), float(BALANCE)
    for _ in range(days):
        highest = max(price_band(price, 0.1))
        balance += LINES * (highest - COST - 1)  # the input costs 1
        price = (_DECAY * units * price + LINES * highest) / (_DECAY * units + LINES)
        units = _DECAY * units + LINES
    return balance / BALANCE

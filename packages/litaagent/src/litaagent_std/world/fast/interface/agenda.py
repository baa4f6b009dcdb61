"""What is negotiated about a product on a day: shared by all its negotiations instead of rebuilt for each."""

from __future__ import annotations

from typing import Any

from negmas.outcomes import ContiguousIssue, DiscreteCartesianOutcomeSpace

from litaagent_std.world.reproducible.clock import relative_time
from litaagent_std.world.rules.contracts import Range

TIME_LIMIT = 60
"""Seconds that a negotiation may last in the league; virtual time never reaches them."""
NO_LIMIT = float("inf")


class Agenda:
    """A product's issues on a day.

    Args:
        quantities: Smallest and largest quantity.
        days: First and last day of delivery.
        prices: Lowest and highest unit price.
        n_rounds: Rounds of a negotiation.
        relative_times: Relative time by completed rounds (shared by all agendas of a world).
        for_agents: Whether hosted agents negotiate it, which need negmas' issue objects beside the ranges.

    Attributes:
        ranges: The ranges of quantity, delivery day and unit price.
        bounds: The same six integers in one tuple.
        issues: negmas' issues.
        outcome_space: negmas' outcome space.
        nmi_values: What the NMIs of all negotiations about the product have in common.
    """

    __slots__ = ("bounds", "issues", "n_rounds", "nmi_values", "outcome_space", "ranges", "relative_times")

    def __init__(
        self,
        quantities: Range,
        days: Range,
        prices: Range,
        n_rounds: int,
        relative_times: tuple[float, ...],
        for_agents: bool = True,
    ) -> None:
        self.ranges = (quantities, days, prices)
        self.bounds = (*quantities, *days, *prices)
        self.n_rounds = n_rounds
        self.relative_times = relative_times
        if for_agents:
            self._make_issues(quantities, days, prices)

    def _make_issues(self, quantities: Range, days: Range, prices: Range) -> None:
        self.issues = [
            ContiguousIssue(quantities, name="quantity"),
            ContiguousIssue(days, name="time"),
            ContiguousIssue(prices, name="unit_price"),
        ]
        self.outcome_space = DiscreteCartesianOutcomeSpace(tuple(self.issues), name="")
        size = 1
        for low, high in self.ranges:
            size *= high - low + 1
        self.nmi_values: dict[str, Any] = {
            "n_outcomes": size,
            "outcome_space": self.outcome_space,
            "issues": self.outcome_space.issues,
            "shared_n_steps": self.n_rounds,
            "n_steps": self.n_rounds,
            "shared_time_limit": TIME_LIMIT,
            "time_limit": TIME_LIMIT,
            "step_time_limit": NO_LIMIT,
        }


def relative_times(n_rounds: int) -> tuple[float, ...]:
    """Return the relative time after 0, 1, …, n_rounds + 1 rounds."""
    return tuple(relative_time(round_, n_rounds) for round_ in range(n_rounds + 2))

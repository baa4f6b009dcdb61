"""What the layers of our agent decided in one seat of one world, as plain data that a file can hold.

Records of a tournament hold what an agent did, not why. A replay (`seat_replay`) finds the reasons; this is its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter

__all__ = ["Choice", "Deal", "Goal", "SeatDecisions", "Side", "Terms", "decisions_from", "decisions_text"]

Terms = tuple[int, int, int]
"""An offer: quantity, delivery day and unit price."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """L2's goal of a side as it was at the first decision of a day.

    Attributes:
        day: The day of the decision.
        buying: The side.
        units: Units wanted by days until delivery, from today on.
        prices: The most to pay, or the least to ask, likewise.
    """

    day: int
    buying: bool
    units: tuple[int, ...]
    prices: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A decision about one thread in one round.

    Attributes:
        day: The day.
        round: The round of the thread.
        partner: The partner's id.
        buying: Whether we bought there.
        received: The partner's offer, if there was one.
        kind: ``accept``, ``reject`` or ``end``.
        offer: What left the agent: the counter-offer, or what was accepted.
        proposed: What the layers above L1 proposed.
        limit: Our limit price for the offer received.
        chance: How likely the partner was to take our proposal, as L3 saw it.
        alpha: L4's weight of the thread, if a learned layer played.
        because: The decision in words.
    """

    day: int
    round: int
    partner: str
    buying: bool
    received: Terms | None
    kind: str
    offer: Terms | None
    proposed: Terms | None
    limit: float | None
    chance: float | None
    alpha: float | None
    because: str

    @property
    def clipped(self) -> bool:
        """Whether L1 changed the proposal, or left nothing of it."""
        return self.kind != "accept" and self.proposed is not None and self.offer != self.proposed


@dataclass(frozen=True, kw_only=True, slots=True)
class Deal:
    """A contract that was signed.

    Attributes:
        day: The day on which it was signed.
        buying: Whether we bought.
        partner: The partner's id.
        quantity: Units.
        time: The delivery day.
        price: The unit price.
        goal_price: L2's goal price for that delivery day when the thread was last decided about; None if it never was.
    """

    day: int
    buying: bool
    partner: str
    quantity: int
    time: int
    price: int
    goal_price: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One side of a day in numbers.

    Attributes:
        wanted: Units of the goal, all delivery days together.
        signed: Units that were signed.
        received: Offers received, each once per round.
        accepted: Those that L4 chose to accept.
        rounds: Rounds in which there was a choice between two offers or more.
        alpha: Mean of L4's weights, if a learned layer played.
    """

    wanted: int
    signed: int
    received: int
    accepted: int
    rounds: int
    alpha: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SeatDecisions:
    """The result of a replay.

    Attributes:
        world: The world's number.
        seat: The seat.
        agent: The factory's id.
        agent_class: Name of the agent's class.
        layers: Which version of L2, L3 and L4 played.
        n_days: Days of the world.
        first_difference: The first day on which anyone in the replay acted otherwise than in the record; None when the
            replay is the record, turn by turn.
        same_world: Whether the replayed world was drawn as the recorded one was.
        interventions: How often L1 changed what the layers wanted, by day.
        goals: L2's goals by day and side.
        choices: Every decision in order.
        deals: Every contract in order.
    """

    world: int
    seat: int
    agent: str
    agent_class: str
    layers: tuple[str, str, str]
    n_days: int
    first_difference: int | None
    same_world: bool
    interventions: tuple[int, ...]
    goals: tuple[Goal, ...]
    choices: tuple[Choice, ...]
    deals: tuple[Deal, ...]

    @property
    def faithful(self) -> bool:
        """Whether the replay did what the record says."""
        return self.same_world and self.first_difference is None

    def sides(self, *, buying: bool) -> list[Side]:
        """Return one side day by day."""
        goals = {goal.day: sum(goal.units) for goal in self.goals if goal.buying == buying}
        deals, choices = _by_day(self.deals, buying), _by_day(self.choices, buying)
        return [_side(goals.get(day, 0), deals.get(day, []), choices.get(day, [])) for day in range(self.n_days)]


_Row = TypeVar("_Row", Choice, Deal)


def _by_day(rows: Sequence[_Row], buying: bool) -> dict[int, list[_Row]]:
    by_day: dict[int, list[_Row]] = {}
    for row in rows:
        if row.buying == buying:
            by_day.setdefault(row.day, []).append(row)
    return by_day


def _side(wanted: int, deals: Sequence[Deal], choices: Sequence[Choice]) -> Side:
    offered = [choice for choice in choices if choice.received is not None]
    offers_by_round: dict[int, int] = {}
    for choice in offered:
        offers_by_round[choice.round] = offers_by_round.get(choice.round, 0) + 1
    weights = [choice.alpha for choice in choices if choice.alpha is not None]
    return Side(
        wanted=wanted,
        signed=sum(deal.quantity for deal in deals),
        received=len(offered),
        accepted=sum(choice.kind == "accept" for choice in offered),
        rounds=sum(count > 1 for count in offers_by_round.values()),
        alpha=sum(weights) / len(weights) if weights else None,
    )


_ADAPTER: TypeAdapter[SeatDecisions] = TypeAdapter(SeatDecisions)


def decisions_text(decisions: SeatDecisions) -> bytes:
    """Return the decisions as JSON."""
    return _ADAPTER.dump_json(decisions)


def decisions_from(text: bytes) -> SeatDecisions:
    """Return the decisions that JSON holds.

    Raises:
        ValueError: If it holds something else.
    """
    return _ADAPTER.validate_json(text)

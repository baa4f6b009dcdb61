"""What the layers of our agent decided in one seat of one world, from a record that holds reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from litaagent_std.dashboard.warehouse import Row, Warehouse
from litaagent_std.policy.brain import DecisionRecord
from litaagent_std.policy.observation import Offer
from litaagent_std.records.reasons import goal_of, reason, seat_reasons
from litaagent_std.records.schema import REASON_TABLES

__all__ = ["Choice", "Deal", "Goal", "SeatDecisions", "Side", "Terms", "decisions_of"]

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
    """All decisions of a seat.

    Attributes:
        world: The world's number.
        seat: The seat.
        agent: The factory's id.
        agent_class: Name of the agent's class.
        layers: Which version of L2, L3 and L4 played.
        n_days: Days of the world.
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
    interventions: tuple[int, ...]
    goals: tuple[Goal, ...]
    choices: tuple[Choice, ...]
    deals: tuple[Deal, ...]

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


def decisions_of(store: Warehouse, world: int, seat: int) -> SeatDecisions | None:
    """Return the decisions of a seat; None if the record does not hold its reasons.

    Args:
        store: The tournament's records.
        world: The world.
        seat: The seat.
    """
    factories = store.ask("SELECT * FROM factories ORDER BY factory", ["factories"], world=world)
    names = [row["name"] for row in factories]
    own = {
        name: store.ask(f"SELECT * FROM {name} WHERE factory = ?", [name], [seat], world=world)
        for name in REASON_TABLES
    }
    reasons = seat_reasons(own, seat, names)
    if reasons is None:
        return None
    question = "SELECT * FROM contracts WHERE ? IN (buyer, seller) ORDER BY day, turn"
    return SeatDecisions(
        world=world,
        seat=seat,
        agent=names[seat],
        agent_class=factories[seat]["agent_type"].rsplit(".", 1)[-1],
        layers=reasons.layers,
        n_days=len(reasons.interventions),
        interventions=reasons.interventions,
        goals=_goals(reasons.decisions),
        choices=tuple(map(_choice, reasons.decisions)),
        deals=_deals(store.ask(question, ["contracts"], [seat], world=world), names, seat, reasons.decisions),
    )


def _goals(log: Sequence[DecisionRecord]) -> tuple[Goal, ...]:
    first: dict[tuple[int, bool], Goal] = {}
    for record in log:
        if (record.day, record.buying) not in first:
            goals = record.goals
            units, prices = (goals.q_buy, goals.p_buy) if record.buying else (goals.q_sell, goals.p_sell)
            first[record.day, record.buying] = Goal(day=record.day, buying=record.buying, units=units, prices=prices)
    return tuple(first.values())


def _choice(record: DecisionRecord) -> Choice:
    return Choice(
        day=record.day,
        round=record.round,
        partner=record.partner,
        buying=record.buying,
        received=_terms(record.received),
        kind=record.decision.kind,
        offer=_terms(record.decision.offer),
        proposed=_terms(record.proposed),
        limit=record.reservation,
        chance=record.acceptance,
        alpha=record.alpha,
        because=reason(record),
    )


def _terms(offer: Offer | None) -> Terms | None:
    return None if offer is None else (offer.quantity, offer.time, offer.price)


def _deals(
    contracts: Sequence[Row], names: Sequence[str], seat: int, log: Sequence[DecisionRecord]
) -> tuple[Deal, ...]:
    latest = {(record.day, record.partner): record for record in log}
    deals = []
    for row in contracts:
        buying = row["buyer"] == seat
        partner = names[row["seller" if buying else "buyer"]]
        record = latest.get((row["day"], partner))
        deals.append(
            Deal(
                day=row["day"],
                buying=buying,
                partner=partner,
                quantity=row["quantity"],
                time=row["time"],
                price=row["unit_price"],
                goal_price=None if record is None else goal_of(record, row["time"])[1],
            )
        )
    return tuple(deals)

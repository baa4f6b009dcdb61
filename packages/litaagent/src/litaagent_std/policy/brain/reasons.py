"""Why decisions were taken: a record of each, with what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints, true_rows
from ..l1.safety import legal
from ..l3.heuristic import Offers, archetypes
from ..l4.heuristic import limit_prices
from ..l4.view import SideView
from ..layers import SituationBatch
from ..observation import Offer, ThreadObservation
from ..plan import Bounds, Goals, PlanBatch
from .sides import Side

__all__ = ["Decision", "DecisionRecord", "record_round"]

Kind = Literal["accept", "reject", "end"]

_ALTERNATIVES = 3


class Decision(NamedTuple):
    """A thread's decision; a rejection carries the counter-offer."""

    kind: Kind
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """Why a decision was taken.

    Attributes:
        day: Today.
        round: The thread's round.
        partner: The partner.
        buying: Whether we buy.
        received: The partner's offer, if any.
        decision: Our decision.
        proposed: The proposal before the clip of L1.
        goals: L2's goals.
        bounds: L1's bounds.
        reservation: Our limit price for the delivery day of the offer received; None if there is no offer, or one
            outside the day's agenda.
        acceptance: Probability that the partner takes our proposal.
        alternatives: Other proposals within the goal, the best by expected revenue, with their probabilities.
        alpha: L4's weight of the thread; None when no learned L3 or L4 plays.
        types: Probability of each of `l3.ARCHETYPES` for the partner; None if there is no model of partners.
        urgency: Urgency of the side's goals for the delivery day of our proposal, or the greatest if there is none.
    """

    day: int
    round: int
    partner: str
    buying: bool
    received: Offer | None
    decision: Decision
    proposed: Offer | None
    goals: Goals
    bounds: Bounds
    reservation: float | None
    acceptance: float | None
    alternatives: tuple[tuple[Offer, float], ...]
    alpha: float | None = None
    types: tuple[float, ...] | None = None
    urgency: float = 0.0


def record_round(
    situation: SituationBatch,
    side: Side,
    view: SideView,
    final: PlanBatch,
    proposed: PlanBatch,
    alpha: Floats | None,
) -> list[DecisionRecord]:
    """Return the records of a round's decisions, one of each thread.

    Args:
        situation: The round, with the threads as a live agent made them.
        side: Its side.
        view: What the side knows of it.
        final: What leaves the agent.
        proposed: The proposals before L1.
        alpha: L4's weights, ``[M]``; None if no learned L3 or L4 plays.
    """
    threads, day = situation.threads, situation.day.obs.day[situation.threads.seat]
    judged = threads.answers & legal(threads.offer, situation.agenda[threads.seat])
    limits = np.full(len(threads), np.nan)
    if judged.any():
        limits[judged] = limit_prices(situation, view, true_rows(judged))
    rows = np.arange(len(threads))
    lead = final.offer[:, 1] - day
    chances = side.chance(situation, view, rows, lead, final.offer[:, 0], final.offer[:, 2])
    model = side.acceptance
    types = None if model is None else model.belief.weights(view.partner)
    urgency = situation.goals.side(selling=situation.selling)[2]
    records = []
    for row, thread in enumerate(situation.rows):
        seat = int(threads.seat[row])
        leads = situation.day.live[seat].horizon + 1
        decision = decision_of(final, row, thread.offer)
        counters = decision.kind == "reject"
        chance = float(chances[row]) if counters and not np.isnan(chances[row]) else None
        records.append(
            DecisionRecord(
                day=int(day[row]),
                round=thread.round,
                partner=thread.partner,
                buying=thread.buying,
                received=thread.offer,
                decision=decision,
                proposed=Offer(*proposed.offer[row].tolist()) if proposed.propose[row] else None,
                goals=situation.goals.row(seat, leads),
                bounds=situation.day.bounds.row(seat, leads),
                reservation=float(limits[row]) if judged[row] else None,
                acceptance=chance,
                alternatives=_alternatives(situation, side, view, row, decision.offer if counters else None),
                alpha=None if alpha is None else float(alpha[row]),
                types=None if types is None else tuple(types[row].tolist()),
                urgency=float(urgency[seat, lead[row]] if counters else urgency[seat].max()),
            )
        )
    return records


def decisions_of(plan: PlanBatch, threads: Sequence[ThreadObservation]) -> list[Decision]:
    """Return the decisions of live threads."""
    rows = zip(plan.accept.tolist(), plan.propose.tolist(), plan.offer.tolist(), threads, strict=True)
    return [
        Decision("accept", thread.offer) if accept else Decision("reject", Offer(*offer)) if propose else _END
        for accept, propose, offer, thread in rows
    ]


_END: Final = Decision("end")


def plan_of(decisions: Sequence[Decision]) -> PlanBatch:
    """Return decisions as a plan: the inverse of `decisions_of`."""
    plan = PlanBatch.none(len(decisions))
    for row, decision in enumerate(decisions):
        plan.accept[row], plan.propose[row] = decision.kind == "accept", decision.kind == "reject"
        if decision.kind == "reject" and decision.offer is not None:
            plan.offer[row] = decision.offer
    return plan


def decision_of(plan: PlanBatch, row: int, received: Offer | None) -> Decision:
    """Return the decision of one thread."""
    if plan.accept[row]:
        return Decision("accept", received)
    if plan.propose[row]:
        return Decision("reject", Offer(*plan.offer[row].tolist()))
    return Decision("end")


def _alternatives(
    situation: SituationBatch, side: Side, view: SideView, row: int, chosen: Offer | None
) -> tuple[tuple[Offer, float], ...]:
    """Return other offers within the goal, those of the greatest expected revenue, and their probabilities."""
    model, seat = side.acceptance, int(situation.threads.seat[row])
    if model is None:
        return ()
    offers = _every_offer(side, int(situation.seats[seat]))
    table = archetypes(offers, view.rounds.clock.take(np.array([row])), selling=side.selling)
    index = view.partner[[row]]
    weights = model.belief.weights(index).T
    chance = model.probabilities(index, weights, table, offers.lead, offers.quantity, offers.price)
    worth = offers.price if side.selling else -offers.price + 2 * int(offers.price.max())
    goal = situation.goals.side(selling=side.selling)[0][seat]
    day = int(situation.day.obs.day[seat])
    within: Bools = offers.quantity <= goal[offers.lead]
    if chosen is not None:
        within = within & ~(
            (offers.lead == chosen.time - day) & (offers.quantity == chosen.quantity) & (offers.price == chosen.price)
        )
    # [R] expected revenue of the offers within the goal
    score = np.where(within, chance * offers.quantity * worth, -1.0)
    order = [int(i) for i in np.argsort(-score, kind="stable")[:_ALTERNATIVES] if within[i]]
    return tuple(
        (Offer(int(offers.quantity[i]), day + int(offers.lead[i]), int(offers.price[i])), float(chance[i]))
        for i in order
    )


def _every_offer(side: Side, seat: int) -> Offers:
    """Return every offer that a factory would consider, by lead, quantity and price."""
    market = side.market.take(np.array([seat]))
    axes: list[Ints] = [
        np.arange(int(market.n_leads[0])),
        np.arange(int(market.quantity_min[0]), int(market.quantity_max[0]) + 1),
        np.arange(int(market.price_min[0]), int(market.price_max[0]) + 1),
    ]
    lead, quantity, price = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    return Offers(market, lead, quantity, price)

"""One side of a factory's day, buying or selling: which offers to accept and what to propose.

Buying and selling follow the same steps with opposite signs; the differences (the value of a unit, the cost of one
unit too many, which partners are solvent) are in the small methods at the end.
"""

from __future__ import annotations

import numpy as np

from .arrays import Bools, Floats
from .l1 import baseline
from .l3.heuristic import OfferGrid, PartnerModel, archetypes
from .l4.heuristic import Spreader
from .layers import Layers
from .memory import LEAVING_PRIOR, Memory, forecast_bankruptcy
from .observation import Observation, Offer, ThreadObservation
from .parameters import Parameters
from .partners.signature import LEFT_BEFORE, Frame, Signature
from .partners.types import PartnerTypes
from .plan import Bounds, Goals, Plan, best_subset, greedy_subset

__all__ = ["Side"]


class Side:
    """The buying or the selling side of one day.

    Args:
        obs: The day's observation.
        parameters: The level's parameters.
        layers: Which version of each layer plays.
        memory: Statistics across days; holds the acceptance models.
        selling: Which side this is.
        types: The network that names types of partners; default: the belief of the acceptance model.
    """

    def __init__(
        self,
        obs: Observation,
        parameters: Parameters,
        layers: Layers,
        memory: Memory,
        *,
        selling: bool,
        types: PartnerTypes | None = None,
    ) -> None:
        self.selling = selling
        self.agenda = obs.sell_agenda if selling else obs.buy_agenda
        self._obs, self._parameters, self._layers, self._memory = obs, parameters, layers, memory
        self._types = types
        self._frame: Frame | None = None  # of signatures, from the day's first round
        self._posteriors: dict[str, Floats] = {}
        leads = obs.horizon + 1
        self._outstanding: dict[str, tuple[Offer, float]] = {}
        self._grid = (
            None
            if self.agenda is None or layers.l3 == "baseline"
            else OfferGrid.of(self.agenda, obs.day, leads, obs.n_lines, selling=selling)
        )
        self._edge = obs.level == obs.n_levels - 2 if selling else obs.level == 1
        self._refused: dict[str, Bools] = {}
        self._cached: tuple[float, Floats] | None = None
        scale = obs.n_lines * (obs.price_out if selling else obs.price_in)
        self.budgets = [parameters.risk_budget * scale] * leads
        partners = obs.consumers if selling else obs.suppliers
        self._bankrupt_on = {partner.name: forecast_bankruptcy(partner) for partner in partners}

    def on_counter_offers(self, threads: list[ThreadObservation]) -> None:
        """Update beliefs: partners who made a counter-offer have rejected our proposal."""
        self._observe_types(threads)
        for thread in threads:
            pending = self._outstanding.pop(thread.partner, None)
            if pending is not None:
                self._update(thread.partner, *pending, accepted=False)
            if thread.offer is not None and self._types is None:
                self._model(thread.partner).observe_offer(large=thread.offer.quantity > self._obs.n_lines)

    def on_agreement(self, partner: str, offer: Offer) -> None:
        """Update beliefs from an agreement; only our own proposals show what the partner accepts."""
        pending = self._outstanding.pop(partner, None)
        if pending is not None and pending[0] == offer:
            self._update(partner, *pending, accepted=True)
        if self._types is not None:
            self._signature(partner).agree(offer)

    def on_failure(self, partner: str) -> None:
        """Update beliefs from a thread that ended without agreement while our proposal was outstanding."""
        pending = self._outstanding.pop(partner, None)
        if pending is not None:
            self._update(partner, *pending, accepted=False)
            self._memory.note_end(partner, selling=self.selling, left=pending[1] < LEFT_BEFORE)
            if self._types is not None:
                self._signature(partner).fail()

    def commit(self, threads: list[ThreadObservation], offers: dict[str, Offer | None]) -> None:
        """Remember our proposals that are outstanding now."""
        for thread in threads:
            offer = offers[thread.partner]
            if offer is not None and offer != thread.offer:
                time = baseline.progress(thread, proposing=True)
                self._outstanding[thread.partner] = (offer, time)
                if self._frame is not None:
                    self._signature(thread.partner).propose(self._frame, offer, time)

    def plan(self, threads: list[ThreadObservation], limits: Bounds, goals: Goals) -> Plan:
        """Decide which offers to accept and what to propose to the others."""
        accept, room = self._accept(threads, limits, goals, joint=self._layers.l4 != "greedy")
        rest = [thread for thread in threads if thread.partner not in accept]
        if self._grid is None:
            return Plan(accept, self._baseline_offers(rest, room, goals))
        return Plan(accept, self._spread(rest, room, accept, threads, limits, goals))

    def baseline_plan(self, threads: list[ThreadObservation], limits: Bounds, goals: Goals) -> Plan:
        """Return what L1's baseline would do, without any change of state."""
        accept, room = self._accept(threads, limits, goals, joint=False)
        rest = [thread for thread in threads if thread.partner not in accept]
        return Plan(accept, self._baseline_offers(rest, room, goals))

    def baseline_proposals(self, threads: list[ThreadObservation], goals: Goals) -> dict[str, Offer | None]:
        """Return what L1's baseline would propose to these threads if nothing were accepted."""
        return self._baseline_offers(threads, self._room(goals), goals)

    @property
    def outstanding(self) -> dict[str, Offer]:
        """Our proposals that are not answered yet."""
        return {partner: offer for partner, (offer, _) in self._outstanding.items()}

    def _pending_units(self) -> int:
        """Return the units of our outstanding proposals."""
        return sum(offer.quantity for offer, _ in self._outstanding.values())

    def _room(self, goals: Goals) -> list[int]:
        """Return the goal's units by lead, less our outstanding proposals."""
        room = list(goals.q_sell if self.selling else goals.q_buy)
        for offer, _ in self._outstanding.values():
            room[offer.time - self._obs.day] -= offer.quantity
        return room

    def _accept(
        self, threads: list[ThreadObservation], limits: Bounds, goals: Goals, *, joint: bool
    ) -> tuple[frozenset[str], list[int]]:
        """Return the partners whose offers to accept, and the room that they leave."""
        room = self._room(goals)
        by_lead: dict[int, list[tuple[ThreadObservation, Offer]]] = {}
        for thread in threads:
            if thread.offer is not None and self.agenda is not None and self.agenda.legal(thread.offer):
                by_lead.setdefault(thread.offer.time - self._obs.day, []).append((thread, thread.offer))
        accepted: set[str] = set()
        cash = limits.buy - self._pending_units()
        for lead, offered in sorted(by_lead.items()):
            quantities = [offer.quantity for _, offer in offered]
            values = [self._surplus(thread, offer, goals) for thread, offer in offered]
            free = min(room[lead], limits.lines[lead] if self.selling else cash)
            choose = best_subset if joint else greedy_subset
            chosen = choose(quantities, values, max(0, free))
            accepted |= {offered[index][0].partner for index in chosen}
            cash -= sum(quantities[index] for index in chosen)
            room[lead] -= sum(quantities[index] for index in chosen)
        return frozenset(accepted), room

    def _surplus(self, thread: ThreadObservation, offer: Offer, goals: Goals) -> float:
        """Return the value of an offer beyond our limit at this time, positive if acceptable."""
        limit = self.reservation(thread, offer, goals)
        surplus = offer.price - limit if self.selling else limit - offer.price
        if surplus < 0.0 or not self._solvent(thread.partner, offer.time):
            return -1.0
        return offer.quantity * (surplus + 0.01)

    def reservation(self, thread: ThreadObservation, offer: Offer, goals: Goals) -> float:
        """Return our limit price for an offer's delivery day at this time."""
        assert self.agenda is not None
        time = baseline.progress(thread, proposing=False)
        lead = offer.time - self._obs.day
        if not self.selling:
            return baseline.buy_reservation(goals, self.agenda, lead, time, self._parameters)
        patience = self._patience(thread.partner)
        return baseline.sell_reservation(goals, self.agenda, lead, time, self._parameters, patience)

    def _patience(self, partner: str) -> float:
        """Return how long to wait for a better price, from 0 to 1.

        A partner that often leaves early may leave in any round: while capacity goes unsold, its offers are
        accepted at once.
        """
        leaving = self._memory.leaving.get((self.selling, partner), LEAVING_PRIOR)
        return max(0.0, 1.0 - self._parameters.impatience * leaving * (1.0 - self._memory.full_rate))

    def _baseline_offers(
        self, threads: list[ThreadObservation], room: list[int], goals: Goals
    ) -> dict[str, Offer | None]:
        assert self.agenda is not None
        make = baseline.sell_offers if self.selling else baseline.buy_offers
        return make(threads, self.agenda, room, goals, self._parameters)

    def _spread(
        self,
        rest: list[ThreadObservation],
        room: list[int],
        accept: frozenset[str],
        threads: list[ThreadObservation],
        limits: Bounds,
        goals: Goals,
    ) -> dict[str, Offer | None]:
        grid = self._grid
        assert grid is not None
        assert self.agenda is not None
        taken = [0] * len(room)  # units accepted in this round, by lead
        for thread in threads:
            if thread.partner in accept and thread.offer is not None:
                taken[thread.offer.time - self._obs.day] += thread.offer.quantity
        # by lead: units that one more deal may hold at most
        lines = limits.lines if self.selling else (limits.buy,) * len(room)
        hard = [max(0, units - taken[lead]) for lead, units in enumerate(lines)]
        gain, cost = self._gain(grid, goals), self._excess_cost(grid)  # [n] per unit
        budgets = self.budgets if self._layers.l4 != "greedy" else [0.0] * len(room)
        spreader = Spreader(grid, room, hard, gain, cost, budgets)
        offers: dict[str, Offer | None] = {}
        cash = None if self.selling else limits.buy - self._pending_units() - sum(taken)
        for thread in rest:
            time = baseline.progress(thread, proposing=True)
            acceptance = self._probabilities(thread.partner, time)  # [n]
            allowed = self._allowed(grid, thread, goals, time)
            index = spreader.choose(acceptance, self._weight(grid, thread.partner, goals, time), allowed, cash)
            offers[thread.partner] = None if index is None else grid.offer(index, self._obs.day)
            if cash is not None and index is not None:
                cash -= int(grid.quantity[index])
        return offers

    def _allowed(self, grid: OfferGrid, thread: ThreadObservation, goals: Goals, time: float) -> Bools:
        """Return the offers that may be proposed in a thread: our limit price, and the partner's solvency, ``[n]``."""
        assert self.agenda is not None
        p, urgency = self._parameters, goals.urgency(selling=self.selling)
        # by lead: the later of the thread's time and the urgency
        times = [time] * (self._obs.horizon + 1) if urgency is None else [max(time, u) for u in urgency]
        if self.selling:
            floors = [
                baseline.sell_reservation(goals, self.agenda, lead, times[lead], p) for lead in range(len(goals.p_sell))
            ]
            last = self._bankrupt_on.get(thread.partner, np.inf) - p.bankruptcy_days
            solvent = (grid.lead == 0) | (grid.lead + self._obs.day <= last)
            return np.asarray((grid.price >= np.asarray(floors)[grid.lead] - 1e-9) & solvent)
        ceilings = [baseline.buy_reservation(goals, self.agenda, lead, 1.0, p) for lead in range(len(goals.p_buy))]
        soon = grid.today | (np.asarray(times)[grid.lead] >= 0.5)
        return np.asarray((grid.price <= np.asarray(ceilings)[grid.lead] + 1e-9) & soon)

    def _weight(self, grid: OfferGrid, partner: str, goals: Goals, time: float) -> float | Floats:
        """Return the weight of the probability of acceptance in the choice of a proposal: one, or of each offer."""
        p, urgency = self._parameters, goals.urgency(selling=self.selling)
        start = 1.0 - self._patience(partner) if self.selling else p.buy_urgency
        weight = p.model_weight * (start + (1.0 - start) * float(time**p.model_curve))
        return weight if urgency is None else np.maximum(weight, np.asarray(urgency)[grid.lead])

    def _gain(self, grid: OfferGrid, goals: Goals) -> Floats:
        """Return the gain per unit of each offer over the value of the unit, or of the capacity, ``[n]``."""
        assert self.agenda is not None
        if not self.selling:
            return np.asarray(goals.unit_value - grid.price, dtype=np.float64)
        return np.asarray(grid.price - np.asarray(goals.hold)[grid.lead], dtype=np.float64)

    def _excess_cost(self, grid: OfferGrid) -> Floats:
        """Return the cost of one unit too many at each offer: a sale's penalty, or an unused purchase, ``[n]``."""
        price = grid.price.astype(np.float64)
        if self.selling:
            return np.full_like(price, self.excess_cost(0.0))
        return np.asarray(price + self.excess_cost(0.0))

    def excess_cost(self, price: float) -> float:
        """Return the cost of one unit too many at a price: a sale's penalty, or a purchase and its storage."""
        if self.selling:
            return self._obs.shortfall_penalty_mean * self._obs.price_out
        return price + self._obs.storage_cost_mean * self._obs.price_in * min(10, self._obs.days_left)

    def _solvent(self, partner: str, time: int) -> bool:
        """Whether a partner is likely to be solvent at a delivery; a supplier's goods always arrive."""
        if not self.selling or time == self._obs.day:
            return True
        return time <= self._bankrupt_on.get(partner, np.inf) - self._parameters.bankruptcy_days

    def _model(self, partner: str) -> PartnerModel:
        models = self._memory.models
        key = (self.selling, partner)
        if key not in models:
            models[key] = PartnerModel(self._parameters.learn_rate)
        return models[key]

    def _signature(self, partner: str) -> Signature:
        signatures = self._memory.signatures
        key = (self.selling, partner)
        if key not in signatures:
            signatures[key] = Signature()
        return signatures[key]

    def _observe_types(self, threads: list[ThreadObservation]) -> None:
        """Update the signatures with a round's offers, and name the types of the round's partners, all at once."""
        if self._types is None or self.agenda is None:
            return
        obs, agenda, first = self._obs, self.agenda, threads[0]
        prices = (agenda.price_min, agenda.price_max)
        self._frame = Frame(obs.day, obs.horizon, obs.n_lines, *prices, first.n_rounds, self.selling)
        signatures = [self._signature(thread.partner) for thread in threads]
        for thread, signature in zip(threads, signatures, strict=True):
            if thread.offer is not None:
                signature.receive(self._frame, thread.offer, thread.round - thread.opens)
        posteriors = self._types.posterior(signatures, selling=self.selling, edge=self._edge, opens=first.opens)
        self._posteriors |= {thread.partner: row for thread, row in zip(threads, posteriors, strict=True)}

    def types(self, partner: str) -> Floats | None:
        """Return the probability of each of `l3.ARCHETYPES` for a partner, ``[4]``; None if there is no model."""
        return None if self._grid is None else self._belief(partner)

    def _belief(self, partner: str) -> Floats:
        """Return the weights of the archetypes: the network's as of the partner's last round, or the model's."""
        return self._model(partner).weights if self._types is None else self._posteriors[partner]

    def _archetypes(self, time: float) -> Floats:
        """Return the archetypes' probabilities at a time, ``[4, n]``; threads of a round share them."""
        assert self._grid is not None
        if self._cached is None or self._cached[0] != time:
            self._cached = (time, archetypes(self._grid, time, selling=self.selling, edge=self._edge))
        return self._cached[1]

    def _probabilities(self, partner: str, time: float) -> Floats:
        """Return the probability that a partner takes each offer, ``[n]``.

        Partners other than the random one rarely accept today what is no better than what they refused today.
        """
        weights, table = self._belief(partner), self._archetypes(time)  # [4], [4, n]
        # [n] mixture of the types that do not accept at random, added in a fixed order
        steady = weights[1] * table[1] + weights[2] * table[2] + weights[3] * table[3]
        refused = self._refused.get(partner)
        if refused is not None:
            steady = np.where(refused, 0.1 * steady, steady)
        return np.asarray(weights[0] * table[0] + steady)

    def _update(self, partner: str, offer: Offer, time: float, *, accepted: bool) -> None:
        if self._grid is None:
            return
        index = self._grid.index(offer, self._obs.day)
        if index is None:
            return
        refused = self._refused.get(partner)
        if self._types is None and (refused is None or not refused[index]):
            self._model(partner).observe_reply(self._archetypes(time)[:, index], accepted=accepted)
        if not accepted:
            worse = self._grid.no_better(offer, self._obs.day, selling=self.selling)
            self._refused[partner] = worse if refused is None else refused | worse

    def acceptance(self, thread: ThreadObservation, offer: Offer) -> float | None:
        """Return the probability that a partner takes an offer; None if there is no model."""
        index = None if self._grid is None else self._grid.index(offer, self._obs.day)
        if index is None:
            return None
        return float(self._probabilities(thread.partner, baseline.progress(thread, proposing=True))[index])

    def alternatives(
        self, thread: ThreadObservation, goals: Goals, chosen: Offer | None, count: int
    ) -> tuple[tuple[Offer, float], ...]:
        """Return other offers within the goal, those of the greatest expected revenue, and their probabilities."""
        if self._grid is None:
            return ()
        grid, taken = self._grid, None if chosen is None else self._grid.index(chosen, self._obs.day)
        acceptance = self._probabilities(thread.partner, baseline.progress(thread, proposing=True))
        worth = grid.price if self.selling else -grid.price + 2 * int(grid.price.max())
        within = grid.quantity <= np.asarray(goals.q_sell if self.selling else goals.q_buy)[grid.lead]
        if taken is not None:
            within[taken] = False
        # [n] expected revenue of the offers within the goal
        score = np.where(within, acceptance * grid.quantity * worth, -1.0)
        order = [int(index) for index in np.argsort(-score, kind="stable")[:count] if within[index]]
        return tuple((grid.offer(index, self._obs.day), float(acceptance[index])) for index in order)

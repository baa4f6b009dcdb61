"""The native `SyncRandomStdAgent`: it distributes its needs at random over its partners and decides for all at once."""

from __future__ import annotations

from collections.abc import Sequence

from litaagent_std.world.events import ACCEPT, END, REJECT, WAIT, Outcome
from litaagent_std.world.native.agent import Bounds, Limits, Link, NativeAgent, NativeSeat
from litaagent_std.world.native.draws import distribute, shuffle, words_of
from litaagent_std.world.native.sync_prices import Concession, SyncPrices

Needs = dict[int, int]
"""Units needed by day of delivery."""


class NativeSyncRandom(NativeAgent):
    """Waits for the offers of all partners, accepts what it needs, and distributes the rest over the other partners.

    Partners are in a set of ids wherever the agent object has one: the order of a set decides who gets which draw.
    """

    def __init__(self, seat: NativeSeat, n_days: int, n_levels: int, relative_times: Sequence[float]) -> None:
        super().__init__(seat, n_days, n_levels, relative_times)
        agent = seat.agent
        self._words = words_of(seat.stream.numpy)
        self._p_today: float = agent.ptoday
        self._concession = Concession(
            agent.today_exp,
            agent.future_exp,
            agent.fmin,
            [time**agent.today_exp for time in relative_times],
            [time**agent.future_exp for time in relative_times],
        )
        self._least_today = int(self.n_lines * agent.today_productivity)
        self._future_productivity: float = agent.future_productivity
        self._sorted: bool = agent.near or agent.far
        self._far: bool = agent.far
        self._today_concentration: float = agent.today_concentration
        self._future_concentration: float = agent.future_concentration
        self._least = [self._future_productivity * days for days in range(n_days + 1)]
        self._sides = [selling for selling, there in ((False, not self.is_first), (True, not self.is_last)) if there]
        self.reset()

    def set_bounds(self, bought: Bounds, sold: Bounds) -> None:
        """Set the bounds of today's negotiations, and the prices that follow from them."""
        super().set_bounds(bought, sold)
        self._prices = SyncPrices(self.today, self.n_days, self._concession, self.bought, self.sold)
        self._most = {False: self.bought[1], True: self.sold[1]}

    # -- the buffers of a synchronous controller

    def reset(self) -> None:
        """Forget yesterday's negotiations."""
        super().reset()
        self._offers: dict[str, Outcome] = {}
        self._steps: dict[str, int] = {}
        self._responses: dict[str, int] = {}
        self._proposals: dict[str, Outcome | None] = {}
        self._waits: dict[str, int] = {}
        self._has_proposed = False
        self._needs: tuple[Needs, Needs] | None = None

    def leave(self, pid: str) -> None:
        """Forget a negotiation that is over."""
        self.seat.n_active -= 1
        self._offers.pop(pid, None)
        self._steps.pop(pid, None)
        self._responses.pop(pid, None)
        self._proposals.pop(pid, None)
        self._waits.pop(pid, None)

    def conclude(self, link: Link, quantity: int, day: int, unit_price: int) -> None:
        """Register a contract, which changes the needs."""
        super().conclude(link, quantity, day, unit_price)
        self._needs = None

    def respond(self, link: Link, step: int, offer: Outcome) -> int:
        """Wait until all partners have made an offer, then decide for all of them."""
        pid = link.pid
        response = self._responses.pop(pid, WAIT)
        if response != WAIT:
            self._waits[pid] = 0
            return response
        self._offers[pid] = offer
        if pid not in self._steps:
            self._steps[pid] = step
        n_active = self.seat.n_active
        if len(self._offers) < n_active:
            waited = self._waits.get(pid, 0)
            if waited < n_active:
                self._waits[pid] = waited + 1
                return WAIT
        self._counter_all()
        if self.seat.notify_decision is not None:
            self.seat.notify_decision(self.seat.index)
        return self._responses.pop(pid, REJECT)

    def propose(self, link: Link, step: int) -> Outcome | None:
        """Return the proposal that was decided for the partner."""
        pid = link.pid
        if pid not in self._proposals:
            self._propose_first()
            if self.seat.notify_decision is not None:
                self.seat.notify_decision(self.seat.index)
        proposal = self._proposals.pop(pid, None)
        self._waits[pid] = 0
        self._responses.pop(pid, None)
        self._offers.pop(pid, None)
        self._steps.pop(pid, None)
        return proposal

    def _propose_first(self) -> None:
        # today's needs at the best price; partners that get no share are offered a future need
        distribution = self._spread_today(list(self.partners))
        today, best_sale, best_purchase = self.today, self.sold[5], self.bought[4]
        links = self.links
        proposals: dict[str, Outcome | None] = {
            pid: (quantity, today, best_sale if links[pid].selling else best_purchase)
            for pid, quantity in distribution.items()
            if quantity > 0
        }
        unused = {pid for pid, quantity in distribution.items() if quantity <= 0}
        if unused:
            proposals |= self._offer_future(list(unused))
        self._proposals = proposals
        self._has_proposed = True

    def _counter_all(self) -> None:
        if not self._has_proposed:
            self._propose_first()
        offers, responses, proposals, waits = self._offers, self._responses, self._proposals, self._waits
        accepted = self._choose(offers)
        rejected = {pid for pid in offers if pid not in accepted}
        counters = self._counter(rejected) if rejected else {}
        for pid in self.partners:
            if pid in accepted:
                responses[pid] = ACCEPT
                proposals[pid] = offers[pid]
            elif pid in counters:
                responses[pid] = REJECT
                proposals[pid] = counters[pid]
            else:  # no offer: negmas takes a missing response as the end
                responses[pid] = END
                proposals[pid] = None
            waits[pid] = 0
        self._offers, self._steps = {}, {}

    # -- what to accept and what to offer

    def limits(self, link: Link, step: int, day: int) -> Limits:
        """Return the need of a day and the price that it has conceded to, if nobody else offers for the same day."""
        selling, prices = link.selling, self._prices
        most = self._need(selling, day) - 1 if (prices.sells if selling else prices.buys) else 0
        return Limits(max(0, most), prices.worst(selling, day, step))

    def _need(self, selling: bool, day: int) -> int:
        """Return the units needed for a delivery day; less than that is accepted."""
        if day != self.today:
            purchases, sales = self._needs or self._future_needs()
            return (sales if selling else purchases).get(day, 0)
        need = self.surplus if selling else -self.surplus
        return max(need, self._least_today) if self.is_middle else need

    def _choose(self, offers: dict[str, Outcome]) -> set[str]:
        """Return the partners whose offers are needed and well priced, in order of arrival."""
        prices, links = self._prices, self.links
        taken: dict[tuple[bool, int], int] = {}
        accepted = set()
        for pid, (quantity, day, price) in offers.items():
            selling = links[pid].selling
            need = self._need(selling, day)
            if not 0 < quantity < need or not (prices.sells if selling else prices.buys):
                continue
            already = taken.get((selling, day), 0)
            if quantity < need - already and prices.is_acceptable(selling, price, day, self._steps[pid]):
                accepted.add(pid)
                taken[selling, day] = already + quantity
        return accepted

    def _counter(self, rejected: set[str]) -> dict[str, Outcome | None]:
        """Return counter-offers: today's needs distributed over some partners, a future need over the others."""
        distribution = self._spread_today(list(rejected))
        counters: dict[str, Outcome | None] = {}
        unused = set()
        today, links, steps, price_of = self.today, self.links, self._steps, self._prices.counter
        for pid, quantity in distribution.items():
            if quantity <= 0:
                unused.add(pid)
                continue
            price = price_of(links[pid].selling, steps[pid])
            counters[pid] = None if price is None else (quantity, today, price)
        if unused:
            counters |= self._offer_future(list(unused))
        return counters

    def _spread_today(self, partners: list[str]) -> dict[str, int]:
        """Distribute today's needs at random over most of the partners."""
        bits, uniform = self.bits, self.uniform
        shuffle(partners, bits)
        chosen = partners[: min(len(partners), max(1, int(self._p_today * len(partners))))]
        spread = dict.fromkeys(partners, 0)
        links = self.links
        for selling in self._sides:
            if self.is_middle:
                needs = self.n_lines
                active = [pid for pid in chosen if links[pid].selling is selling]
            else:  # all partners are on the same side
                needs = self.surplus if selling else -self.surplus
                active = chosen
            if not active or needs < 1:
                continue
            shuffle(active, bits)
            concentrated, equal = uniform() < self._today_concentration, uniform() > 0.5
            parts = distribute(needs, len(active), self._most[selling], concentrated, equal, True, bits, self._words)
            spread.update(zip(active, parts, strict=True))
        return spread

    def _offer_future(self, partners: list[str]) -> dict[str, Outcome | None]:
        """Distribute the need of one future day over partners that are not needed today."""
        offers: dict[str, Outcome | None] = dict.fromkeys(partners)
        purchases, sales = self._needs or self._future_needs()
        purchase_day = self._first_day(purchases) if purchases else None
        sale_day = self._first_day(sales) if sales else None
        if purchase_day is not None and self._prices.buys:
            self._spread_future(partners, False, purchase_day, purchases[purchase_day], offers)
        if sale_day is not None and self._prices.sells:
            self._spread_future(partners, True, sale_day, sales[sale_day], offers)
        return offers

    def _spread_future(
        self, partners: list[str], selling: bool, day: int, need: int, offers: dict[str, Outcome | None]
    ) -> None:
        if self.is_middle:
            links = self.links
            partners = [pid for pid in partners if links[pid].selling is selling]
            if not partners:
                return
        concentrated, equal = self.uniform() < self._future_concentration, self.uniform() > 0.5
        parts = distribute(need, len(partners), self._most[selling], concentrated, equal, False, self.bits, self._words)
        price = self._prices.offer(selling, day)
        if price is None:
            return
        for pid, quantity in zip(partners, parts, strict=True):
            if quantity > 0:
                offers[pid] = (quantity, day, price)

    def _first_day(self, needs: Needs) -> int:
        """Return the day that is served: the first one in the agent's order."""
        days = list(needs)
        if self._sorted:
            return max(days) if self._far else min(days)
        shuffle(days, self.bits)
        return days[0]

    def _future_needs(self) -> tuple[Needs, Needs]:
        """Compute the quantities still to buy and to sell by day, from tomorrow on."""
        today, n_days, least = self.today, self.n_days, self._least
        first, last = max(self.bought[2], today + 1), min(self.bought[3], n_days - 1)
        purchases: Needs = {}
        sales: Needs = {}
        # input that has arrived by a day, and output that is contracted from that day on
        supplied = self.inventory + sum(self.supplies[today:first])
        promised = sum(self.sales[first:])
        for day in range(first, last + 1):
            supplied += self.supplies[day]
            have: float = supplied + self.forced_in * (day - today) if self.is_first else supplied
            owe: float = promised + self.forced_out * (n_days - day) if self.is_last else promised
            # assume a minimum productivity of the days before and after
            have = max(least[day - today], have)
            owe = max(least[n_days - day], owe)
            if owe > have:
                if not self.is_first:
                    purchases[day] = int(owe - have)
            elif have > owe and (self.is_first or not self.is_last):
                sales[day] = int(have - owe)
            promised -= self.sales[day]
        self._needs = purchases, sales
        return self._needs

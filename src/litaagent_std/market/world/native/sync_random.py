"""The native `SyncRandomStdAgent`: spreads its needs at random over its partners, whom it answers all together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from litaagent_std.market.world.native.draws import distribute, shuffle, words_of
from litaagent_std.market.world.native.mind import ACCEPT, END, REJECT, WAIT, Link, Mind, Outcome

if TYPE_CHECKING:
    from litaagent_std.market.world.seats import Seat

Needs = dict[int, int]
"""Units needed by day of delivery."""


class SyncRandomMind(Mind):
    """Waits for the offers of all partners, accepts what it needs, and spreads the rest over the other partners.

    Partners are kept in sets of ids where the agent keeps them so: the order of a set decides who gets which draw.
    """

    def __init__(self, seat: Seat, n_days: int, n_levels: int, relative_times: Sequence[float]) -> None:
        super().__init__(seat, n_days, n_levels, relative_times)
        agent = seat.agent
        self._words = words_of(seat.stream.numpy)
        self._p_today: float = agent.ptoday
        self._today_exp: float = agent.today_exp
        self._future_exp: float = agent.future_exp
        self._future_margin: float = agent.fmin
        self._today_productivity: float = agent.today_productivity
        self._future_productivity: float = agent.future_productivity
        self._sorted: bool = agent.near or agent.far
        self._far: bool = agent.far
        self._today_concentration: float = agent.today_concentration
        self._future_concentration: float = agent.future_concentration
        self._powers = [time**self._future_exp for time in relative_times]
        self._today_powers = [time**self._today_exp for time in relative_times]
        self._least = [self._future_productivity * days for days in range(n_days + 1)]
        self.reset()

    # -- the books of a controller that answers all partners together

    def reset(self) -> None:
        """Forgets yesterday's negotiations."""
        super().reset()
        self._offers: dict[str, Outcome] = {}
        self._steps: dict[str, int] = {}
        self._responses: dict[str, int] = {}
        self._proposals: dict[str, Outcome | None] = {}
        self._waits: dict[str, int] = {}
        self._has_proposed = False
        self._needs: tuple[Needs, Needs] | None = None

    def leave(self, pid: str) -> None:
        """Forgets a negotiation that is over."""
        self.seat.n_active -= 1
        self._offers.pop(pid, None)
        self._steps.pop(pid, None)
        self._responses.pop(pid, None)
        self._proposals.pop(pid, None)
        self._waits.pop(pid, None)

    def conclude(self, link: Link, quantity: int, day: int, unit_price: int) -> None:
        """Books a contract, after which the needs are others."""
        super().conclude(link, quantity, day, unit_price)
        self._needs = None

    def respond(self, link: Link, step: int, offer: Outcome) -> int:
        """Waits until all partners have offered, then answers all of them."""
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
        self._answer_all()
        return self._responses.pop(pid, REJECT)

    def propose(self, link: Link, step: int) -> Outcome | None:
        """Returns what was decided for the partner."""
        pid = link.pid
        if pid not in self._proposals:
            self._propose_first()
        proposal = self._proposals.pop(pid, None)
        self._waits[pid] = 0
        self._responses.pop(pid, None)
        self._offers.pop(pid, None)
        self._steps.pop(pid, None)
        return proposal

    def _propose_first(self) -> None:
        distribution = self._spread_today(list(self.partners))
        today, best_sale, best_purchase = self.today, self.sold[5], self.bought[4]
        links = self.links
        proposals: dict[str, Outcome | None] = {
            pid: (quantity, today, best_sale if links[pid].selling else best_purchase)
            for pid, quantity in distribution.items()
            if quantity > 0
        }
        proposals |= self._offer_future(list({pid for pid, quantity in distribution.items() if quantity <= 0}))
        self._proposals = proposals
        self._has_proposed = True

    def _answer_all(self) -> None:
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
            else:  # it has not offered: negmas takes silence for the end
                responses[pid] = END
                proposals[pid] = None
            waits[pid] = 0
        self._offers, self._steps = {}, {}

    # -- what to accept and what to offer

    def _choose(self, offers: dict[str, Outcome]) -> set[str]:
        """Returns the partners whose offers are needed and well priced, taken in order of arrival."""
        today = self.today
        left = max(self.n_days - today, 1)
        lowest_sale, highest_sale, lowest_purchase, highest_purchase = self._price_limits()
        purchases, sales = self._future_needs()
        purchases, sales = (
            self._with_today(purchases, 0 if self.is_first else -self.surplus),
            self._with_today(sales, 0 if self.is_last else self.surplus),
        )
        accepted = set()
        for pid, (quantity, day, price) in offers.items():
            selling = self.links[pid].selling
            needs = sales if selling else purchases
            if not 0 < quantity < needs.get(day, 0):
                continue
            for_today = day == today
            power = self._today_powers[self._steps[pid]] if for_today else ((day - today) / left) ** self._future_exp
            if selling:
                if lowest_sale > highest_sale:
                    continue
                good = price + 0.0001 >= self._sale_price(power, lowest_sale, highest_sale, for_today)
            else:
                if lowest_purchase > highest_purchase:
                    continue
                high: float = highest_purchase
                if not for_today:
                    high = high - self._future_margin * (high - lowest_purchase)
                good = price - 0.0001 <= _purchase_price(power, lowest_purchase, high)
            if good:
                accepted.add(pid)
                needs[day] -= quantity
        return accepted

    def _with_today(self, needs: Needs, today: int) -> Needs:
        if self.is_middle:
            today = max(today, int(self.n_lines * self._today_productivity))
        return {**needs, self.today: today}

    def _counter(self, rejected: set[str]) -> dict[str, Outcome | None]:
        """Returns counter-offers: today's needs spread over some partners, a future need over the others."""
        distribution = self._spread_today(list(rejected))
        counters: dict[str, Outcome | None] = {}
        _, _, _, _, low_sale, high_sale = self.sold
        _, _, _, _, low_purchase, high_purchase = self.bought
        for pid, quantity in distribution.items():
            if quantity <= 0:
                continue
            power = self._powers[self._steps[pid]]
            if self.links[pid].selling:
                price = self._sale_price(power, low_sale, high_sale, False)
            else:
                price = _purchase_price(power, low_purchase, high_purchase)
            counters[pid] = _legal(quantity, self.today, price)
        return counters | self._offer_future(list({pid for pid, quantity in distribution.items() if quantity <= 0}))

    def _spread_today(self, partners: list[str]) -> dict[str, int]:
        """Distributes today's needs at random over most of the partners."""
        bits = self.bits
        shuffle(partners, bits)
        chosen = partners[: min(len(partners), max(1, int(self._p_today * len(partners))))]
        spread = dict.fromkeys(partners, 0)
        links = self.links
        for selling in (False, True):
            if self.is_middle:
                needs = self.n_lines
            else:
                needs = (0 if self.is_last else self.surplus) if selling else (0 if self.is_first else -self.surplus)
            active = [pid for pid in chosen if links[pid].selling is selling]
            if not active or needs < 1:
                continue
            shuffle(active, bits)
            concentrated = self.uniform() < self._today_concentration
            equal = self.uniform() > 0.5
            most = self.sold[1] if selling else self.bought[1]
            parts = distribute(
                needs,
                len(active),
                most,
                equal=equal,
                concentrated=concentrated,
                allow_zero=True,
                bits=bits,
                words=self._words,
            )
            spread.update(zip(active, parts, strict=True))
        return spread

    def _offer_future(self, partners: list[str]) -> dict[str, Outcome | None]:
        """Distributes the need of one future day over partners that are not needed today."""
        offers: dict[str, Outcome | None] = dict.fromkeys(partners)
        if not partners:
            return offers
        lowest_sale, highest_sale, lowest_purchase, highest_purchase = self._price_limits()
        purchases, sales = self._future_needs()
        purchase_day, sale_day = self._first_day(purchases), self._first_day(sales)
        links = self.links
        if purchase_day is not None and lowest_purchase <= highest_purchase:
            suppliers = [pid for pid in partners if not links[pid].selling]
            price = _purchase_price(self._nearness(purchase_day), lowest_purchase, highest_purchase)
            self._spread_future(suppliers, purchases[purchase_day], purchase_day, price, self.bought[1], offers)
        if sale_day is not None and lowest_sale <= highest_sale:
            consumers = [pid for pid in partners if links[pid].selling]
            price = self._sale_price(self._nearness(sale_day), lowest_sale, highest_sale, False)
            self._spread_future(consumers, sales[sale_day], sale_day, price, self.sold[1], offers)
        return offers

    def _spread_future(
        self, partners: list[str], need: int, day: int, price: float, most: int, offers: dict[str, Outcome | None]
    ) -> None:
        if not partners:
            return
        concentrated = self.uniform() < self._future_concentration
        equal = self.uniform() > 0.5
        parts = distribute(
            need,
            len(partners),
            most,
            equal=equal,
            concentrated=concentrated,
            allow_zero=False,
            bits=self.bits,
            words=self._words,
        )
        for pid, quantity in zip(partners, parts, strict=True):
            if quantity > 0:
                offers[pid] = _legal(quantity, day, price)

    def _first_day(self, needs: Needs) -> int | None:
        """Returns the day that is served first; the agent never comes to a second one."""
        if not needs:
            return None
        days = list(needs)
        if self._sorted:
            return max(days) if self._far else min(days)
        shuffle(days, self.bits)
        return days[0]

    def _future_needs(self) -> tuple[Needs, Needs]:
        """Returns what is still to buy and to sell by day, from tomorrow on."""
        if self._needs is not None:
            return self._needs
        today, n_days, least = self.today, self.n_days, self._least
        first, last = max(self.bought[2], today + 1), min(self.bought[3], n_days - 1)
        purchases: Needs = {}
        sales: Needs = {}
        supplied = self.inventory + sum(self.supplies[today:first])
        promised = sum(self.sales[first:])
        for day in range(first, last + 1):
            supplied += self.supplies[day]
            have: float = supplied + self.forced_in * (day - today) if self.is_first else supplied
            owe: float = promised + self.forced_out * (n_days - day) if self.is_last else promised
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

    # -- prices

    def _price_limits(self) -> tuple[int, int, int, int]:
        """Returns lowest and highest price of sales, then of purchases, such that neither loses money."""
        low_sale, high_sale = self.sold[4:]
        low_purchase, high_purchase = self.bought[4:]
        return max(low_sale, high_purchase), high_sale, low_purchase, min(high_purchase, low_sale)

    def _nearness(self, day: int) -> float:
        """Returns how near a day is, raised to the exponent of concession."""
        left = max(self.n_days - self.today, 1)
        nearness: float = (1 - max(0, min(1, (day - self.today) / left))) ** self._future_exp
        return nearness

    def _sale_price(self, power: float, low: float, high: float, for_today: bool) -> float:
        if not for_today:
            low = low + self._future_margin * (high - low)
        return max(low, min(high, int(0.5 + high - (high - low) * power)))


def _purchase_price(power: float, low: float, high: float) -> float:
    return max(low, min(high, int(low + (high - low) * power + 0.5)))


def _legal(quantity: int, day: int, price: float) -> Outcome | None:
    """Returns the offer as the world sees it: a price between two integers is no offer."""
    if price != int(price):
        return None
    return quantity, day, int(price)

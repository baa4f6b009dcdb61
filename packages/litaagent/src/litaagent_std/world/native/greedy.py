"""The native `GreedyStdAgent`: it offers what it needs and concedes from the best price to the best price seen."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from litaagent_std.world.events import ACCEPT, REJECT, Outcome
from litaagent_std.world.native.agent import Bounds, Limits, Link, NativeAgent, NativeSeat
from litaagent_std.world.native.draws import between, shuffle

_INFINITY = float("inf")


class NativeGreedy(NativeAgent):
    """Negotiates for today's need or, if there is none, for a share of the capacity of a random future day.

    The need of a factory in the middle of the chain is always the same share of its lines.
    """

    def __init__(self, seat: NativeSeat, n_days: int, n_levels: int, relative_times: Sequence[float]) -> None:
        super().__init__(seat, n_days, n_levels, relative_times)
        agent = seat.agent
        n_rounds = len(relative_times) - 2
        self._thresholds = [((n_rounds - step - 1) / (n_rounds - 1)) ** agent._e for step in range(n_rounds)]
        self._future_threshold: float = agent._future_threshold
        self._target: float = agent._production_target
        slacks: tuple[float, ...] = (
            agent._step_price_slack,
            agent._acc_price_slack,
            agent._opp_price_slack,
            agent._opp_acc_price_slack,
            agent._range_slack,
        )
        self._sale_factors = tuple(1 - slack for slack in slacks)
        self._purchase_factors = tuple(1 + slack for slack in slacks)
        self._best_sale_ever, self._best_purchase_ever = 0.0, _INFINITY
        self._best_sale, self._best_purchase = 0.0, _INFINITY
        self._memory_version = 0  # changes whenever a cached price range may have become invalid

    @staticmethod
    def can_play(seat: NativeSeat, n_days: int, n_rounds: int) -> bool:
        """Return whether the agent cannot raise in this world; an agent that can is hosted.

        Its concession needs two rounds, and with some numbers of lines it draws from an empty range on the last days.
        """
        share = seat.agent._production_target * seat.profile.n_lines
        return n_rounds > 1 and int(0.5 + share * (n_days - 1) / n_days) <= int(share) and share >= 1

    def set_bounds(self, bought: Bounds, sold: Bounds) -> None:
        """Set the bounds of today's negotiations."""
        super().set_bounds(bought, sold)
        self._memory_version += 1

    def before_step(self) -> None:
        """Forget yesterday's prices."""
        self._memory_version += 1
        self._best_sale, self._best_purchase = 0.0, _INFINITY
        for link in self.links.values():
            link.best_today = 0.0 if link.selling else _INFINITY

    def conclude(self, link: Link, quantity: int, day: int, unit_price: int) -> None:
        """Update the best prices of contracts."""
        super().conclude(link, quantity, day, unit_price)
        self._memory_version += 1
        if link.selling:
            self._best_sale_ever = max(unit_price, self._best_sale_ever)
            link.best_ever = max(unit_price, link.best_ever)
        else:
            self._best_purchase_ever = min(unit_price, self._best_purchase_ever)
            link.best_ever = min(unit_price, link.best_ever)

    def respond(self, link: Link, step: int, offer: Outcome) -> int:
        """Accept what is needed at a good price."""
        quantity, day, price = offer
        if quantity > self._most(link, day):
            return REJECT
        worst = self._worst(link, step, day)
        if day == self.today:
            self._update_best_today(link, price)
        return ACCEPT if (price >= worst if link.selling else price <= worst) else REJECT

    def limits(self, link: Link, step: int, day: int) -> Limits:
        """Return what it needs for a day, and the price that it has conceded to."""
        return Limits(self._most(link, day), self._worst(link, step, day))

    def _most(self, link: Link, day: int) -> int:
        """Return the most units that are needed for a day; negative for a day that is over."""
        if day == self.today:
            return floor(self._need(link))
        if day < self.today:
            return -1
        contracted = self.sales if link.selling else self.supplies
        return ceil(self._target * (self.n_lines - contracted[day])) - 1

    def _worst(self, link: Link, step: int, day: int) -> int:
        """Return the worst acceptable price: whole prices, so rounding the margin up excludes none."""
        today = day == self.today
        low, high = self._range(link, today)
        margin = ceil((self._thresholds[step] if today else self._future_threshold) * (high - low))
        return low + margin if link.selling else high - margin

    def _update_best_today(self, link: Link, price: int) -> None:
        """Update the best price that was offered for today."""
        best = max(price, self._best_sale) if link.selling else min(price, self._best_purchase)
        if best == link.best_today:
            return
        self._memory_version += 1
        link.best_today = best
        if link.selling:
            self._best_sale = best
        else:
            self._best_purchase = best

    def propose(self, link: Link, step: int) -> Outcome:
        """Return an offer of what is needed."""
        quantity, day = self._delivery(link)
        low, high = self._range(link, day == self.today)
        margin = self._thresholds[step] * (high - low)
        return quantity, day, int(low + margin) if link.selling else int(high - margin)

    def _need(self, link: Link) -> float:
        if self.is_middle:
            return self._target * self.n_lines
        surplus = self.stock + self.supplies[self.today] - self.sales[self.today]
        return surplus if link.selling else -surplus

    def _delivery(self, link: Link) -> tuple[int, int]:
        """Return the quantity of an offer and its delivery day."""
        today, n_lines, n_days, bits = self.today, self.n_lines, self.n_days, self.bits
        q_low, q_high, first, last, _, _ = self.sold if link.selling else self.bought
        need: float = int(self._need(link))
        if need <= 0:
            target = self._target
            contracted = self.sales if link.selling else self.supplies
            days = list(range(first, last + 1))
            shuffle(days, bits)
            for day in days:
                if day <= today:
                    need = target * n_lines  # used below if no later day has a need
                    continue
                need = target * (n_lines - contracted[day])
                if need > 0:
                    most = min(_clipped(need, q_low, q_high), n_lines * (day - today))
                    low, high = int(0.5 + most * today / n_days) or 1, int(most)
                    return between(low, high, bits) if low < high else low, day
        most = min(_clipped(need, q_low, q_high), n_lines)
        return between(int(0.5 + most * today / n_days) or 1, int(most), bits), today

    def _range(self, link: Link, for_today: bool) -> tuple[int, int]:
        """Return the price range of concession, cached until the price memory changes."""
        if link.version != self._memory_version:
            link.version = self._memory_version
            link.ranges = [None, None]
        price_range = link.ranges[for_today]
        if price_range is None:
            price_range = link.ranges[for_today] = self._price_range(link, for_today)
        return price_range

    def _price_range(self, link: Link, for_today: bool) -> tuple[int, int]:
        """Compute the price range of concession, narrowed by the best prices seen."""
        by_day, by_all, by_partner_day, by_partner, by_range = self._sale_factors
        if link.selling:
            _, _, _, _, low, high = self.sold
            bound: float = low if for_today else int(high * self._future_threshold)
            if (price := self._best_sale * by_day) > bound:
                bound = price
            if (price := self._best_sale_ever * by_all) > bound:  # 0 · −∞ is NaN: no bound
                bound = price
            if (price := link.best_today * by_partner_day) > bound:
                bound = price
            if (price := link.best_ever * by_partner) > bound:
                bound = price
            return int(min(high * by_range, bound)), high
        by_day, by_all, by_partner_day, by_partner, by_range = self._purchase_factors
        _, _, _, _, low, high = self.bought
        if not for_today:
            low = int(high * self._future_threshold)
        bound = high
        if (price := self._best_purchase * by_day) < bound:
            bound = price
        if (price := self._best_purchase_ever * by_all) < bound:
            bound = price
        if (price := link.best_today * by_partner_day) < bound:
            bound = price
        if (price := link.best_ever * by_partner) < bound:
            bound = price
        return low, int(max(low * by_range, bound))


def _clipped(value: float, low: int, high: int) -> float:
    if value > high:
        value = high
    return low if value < low else value

"""The end of a day: contracts are executed, trading prices move, factories are settled, bankruptcies found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from negmas.situated import BulletinBoard

from litaagent_std.world.events import EventHub, Settlement
from litaagent_std.world.fast.reports import REPORT_PERIOD, publish_breach, publish_reports
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.rules.contracts import ContractBook
from litaagent_std.world.rules.prices import Market, mean_price, next_market
from litaagent_std.world.rules.settlement import Inventory, Line, breach, next_inventory, settle
from litaagent_std.world.setup import ExogenousContract

PRICE_DISCOUNT = 0.9
CATALOG_QUANTITY = 50


class Ledger:
    """Executes and settles days.

    Args:
        seats: All seats.
        catalog_prices: Trading prices on the first day.
        inventory: Whether production consumes stock.
        board: Where reports are published.
        hub: Who hears of settlements.
    """

    def __init__(
        self,
        seats: Sequence[Seat],
        catalog_prices: Sequence[int],
        inventory: Inventory,
        board: BulletinBoard,
        hub: EventHub,
    ) -> None:
        self._seats = seats
        self._inventory: Inventory = inventory
        self._board = board
        self._hub = hub
        self.book = ContractBook()
        self.markets = [Market(float(price), float(CATALOG_QUANTITY)) for price in catalog_prices]
        self.sold = [0] * len(catalog_prices)
        self._means = [0.0] * len(catalog_prices)
        n_seats = len(seats)
        self._purchases: list[list[Line]] = [[] for _ in range(n_seats)]
        self._sales: list[list[Line]] = [[] for _ in range(n_seats)]
        self._bought = [0] * n_seats
        self._sold_by = [0] * n_seats

    def execute(self, day: int, exogenous: Sequence[ExogenousContract]) -> None:
        """Execute what is due: contracts between factories in order of conclusion, then exogenous ones."""
        n_seats = len(self._seats)
        self._purchases = [[] for _ in range(n_seats)]
        self._sales = [[] for _ in range(n_seats)]
        self._bought = [0] * n_seats
        self._sold_by = [0] * n_seats
        self.sold = [0] * len(self.markets)
        for deal in self.book.due(day):
            for paper in deal.papers:
                paper.executed_at = day
            if deal.quantity < 1:
                continue
            line = (deal.unit_price, deal.quantity)
            buyer, seller = deal.buyer.index, deal.seller.index
            self._purchases[buyer].append(line)
            self._sales[seller].append(line)
            self._bought[buyer] += deal.quantity
            self._sold_by[seller] += deal.quantity
            self._trade(deal.product, deal.quantity, deal.unit_price)
        for contract in exogenous:
            if contract.quantity < 1:
                continue
            if contract.buyer >= 0:
                self._bought[contract.buyer] += contract.quantity
            if contract.seller >= 0:
                self._sold_by[contract.seller] += contract.quantity
            self._trade(contract.product, contract.quantity, contract.unit_price)

    def _trade(self, product: int, quantity: int, unit_price: int) -> None:
        self._means[product] = mean_price(self._means[product], self.sold[product], quantity, unit_price)
        self.sold[product] += quantity

    def settle_day(self, day: int) -> None:
        """Move trading prices, settles every factory and publish what is public."""
        self.markets = [
            next_market(market, sold, mean, PRICE_DISCOUNT)
            for market, sold, mean in zip(self.markets, self.sold, self._means, strict=True)
        ]
        events = [self._settle(seat, day) for seat in self._seats]
        if day % REPORT_PERIOD == 0:
            publish_reports(self._board, self._seats, day)
        for event, newly_bankrupt in events:
            if self._hub.settlement is not None:
                self._hub.settlement(event)
            if newly_bankrupt and self._hub.bankruptcy is not None:
                self._hub.bankruptcy(day, event.agent, event.balance)

    def _settle(self, seat: Seat, day: int) -> tuple[Settlement, bool]:
        index = seat.index
        bought, sold = self._bought[index], self._sold_by[index]
        settled = settle(self._purchases[index], self._sales[index], seat.terms)
        seat.inventory = next_inventory(self._inventory, seat.inventory, bought, settled.produced)
        seat.total += np.float64(settled.profit)  # the additions of scml's sum over all days, in its order
        seat.balance = seat.total + seat.initial_balance
        is_breach, level = breach(bought, sold, seat.terms)
        seat.breaches.append(is_breach)
        seat.breach_levels.append(level)
        newly_bankrupt = not seat.bankrupt and bool(seat.balance < 0)
        seat.bankrupt = seat.bankrupt or newly_bankrupt
        if seat.bankrupt:
            self.book.nullify(seat, day)
        if is_breach:
            publish_breach(self._board, seat, day)
        event = Settlement(
            day=day,
            agent=seat.id,
            input_quantity=bought,
            output_quantity=sold,
            produced=settled.produced,
            profit=float(settled.profit),
            balance=float(seat.balance),
            inventory_input=seat.inventory,
            shortfall_quantity=settled.shortfall,
            shortfall_penalty=float(settled.shortfall_penalty),
            storage_cost=float(settled.storage_cost),
        )
        return event, newly_bankrupt

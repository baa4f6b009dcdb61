"""The end of a day: contracts are executed, trading prices updated, factories settled and bankruptcies declared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from negmas.situated import BulletinBoard

from litaagent_std.world.events import EventHub, Settlement
from litaagent_std.world.fast.contracts import ContractBook
from litaagent_std.world.fast.reports import REPORT_PERIOD, publish_breach, publish_reports
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.rules.bankruptcy import is_bankrupt
from litaagent_std.world.rules.exogenous import ExogenousContract
from litaagent_std.world.rules.prices import PRICE_DISCOUNT, initial_market, mean_price, next_market
from litaagent_std.world.rules.settlement import Inventory, Line, breach, next_inventory, settle


class Ledger:
    """Executes and settles days.

    Args:
        seats: All seats.
        catalog_prices: Trading prices on the first day.
        inventory: Whether production consumes stock.
        bulletin_board: Receives the reports.
        hub: The observers.

    Attributes:
        book: Open contracts between factories.
        markets: Trading price of each product.
        sold: Units of each product delivered today.
    """

    def __init__(
        self,
        seats: Sequence[Seat],
        catalog_prices: Sequence[int],
        inventory: Inventory,
        bulletin_board: BulletinBoard,
        hub: EventHub,
    ) -> None:
        self._seats = seats
        self._inventory: Inventory = inventory
        self._bulletin_board = bulletin_board
        self._hub = hub
        self.book = ContractBook()
        self.markets = [initial_market(price) for price in catalog_prices]
        self.sold = [0] * len(catalog_prices)
        self._means = [0.0] * len(catalog_prices)
        n_seats = len(seats)
        self._purchases: list[list[Line]] = [[] for _ in range(n_seats)]
        self._sales: list[list[Line]] = [[] for _ in range(n_seats)]
        self._bought = [0] * n_seats
        self._sold_by = [0] * n_seats

    def execute(self, day: int, exogenous: Sequence[ExogenousContract]) -> None:
        """Execute the contracts that are due: negotiated ones in order of conclusion, then exogenous ones."""
        n_seats = len(self._seats)
        # negotiated deliveries by seat; units bought and sold by seat, exogenous ones included
        self._purchases = [[] for _ in range(n_seats)]
        self._sales = [[] for _ in range(n_seats)]
        self._bought = [0] * n_seats
        self._sold_by = [0] * n_seats
        self.sold = [0] * len(self.markets)
        for contract in self.book.pop_due(day):
            for copy in contract.copies:
                copy.executed_at = day
            if contract.quantity < 1:
                continue
            line = (contract.unit_price, contract.quantity)
            buyer, seller = contract.buyer.index, contract.seller.index
            self._purchases[buyer].append(line)
            self._sales[seller].append(line)
            self._bought[buyer] += contract.quantity
            self._sold_by[seller] += contract.quantity
            self._trade(contract.product, contract.quantity, contract.unit_price)
        for forced in exogenous:
            if forced.quantity < 1:
                continue
            if forced.buyer >= 0:
                self._bought[forced.buyer] += forced.quantity
            if forced.seller >= 0:
                self._sold_by[forced.seller] += forced.quantity
            self._trade(forced.product, forced.quantity, forced.unit_price)

    def _trade(self, product: int, quantity: int, unit_price: int) -> None:
        self._means[product] = mean_price(self._means[product], self.sold[product], quantity, unit_price)
        self.sold[product] += quantity

    def settle_day(self, day: int) -> None:
        """Update trading prices, settle every factory and publish the reports."""
        self.markets = [
            next_market(market, sold, mean, PRICE_DISCOUNT)
            for market, sold, mean in zip(self.markets, self.sold, self._means, strict=True)
        ]
        events = [self._settle(seat, day) for seat in self._seats]
        if day % REPORT_PERIOD == 0:
            publish_reports(self._bulletin_board, self._seats, day)
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
        seat.total += np.float64(settled.profit)  # scml sums the profits of all days in this order
        seat.balance = seat.total + seat.initial_balance
        is_breach, level = breach(bought, sold, seat.terms)
        seat.breaches.append(is_breach)
        seat.breach_levels.append(level)
        was_bankrupt = seat.bankrupt
        seat.bankrupt = is_bankrupt(was_bankrupt, seat.balance)
        if seat.bankrupt:
            self.book.nullify(seat, day)
        if is_breach:
            publish_breach(self._bulletin_board, seat, day)
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
        return event, seat.bankrupt and not was_bankrupt

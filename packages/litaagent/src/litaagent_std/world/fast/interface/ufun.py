"""The utility function of an agent: scml's, built and evaluated without its overhead.

`LeanUFun` is a `OneShotUFun` with the same attributes and the same numbers, bit by bit. It is built by filling its
dict, computes outcome spaces and the reserved value only on reading, and evaluates offers with `settlement.settle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from negmas.outcomes import make_issue, make_os
from scml.oneshot.ufun import OneShotUFun, UFunLimit, UtilityInfo

from litaagent_std.world.rules.limits import find_limit_on_grid
from litaagent_std.world.rules.settlement import Line, Settled, Terms, settle

Offer = tuple[int, int, float]

_UNKNOWN = UFunLimit(*[None] * 12)
_float64 = np.float64


class LeanUFun(OneShotUFun):  # type: ignore[misc]
    """scml's utility function of one factory on one day; made by `UFunFactory`."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the attribute that is missing
        # called only for attributes that were left out at construction
        if name == "outcome_space":
            value = make_os(self._issues(not self.output_agent))
        elif name == "outcome_spaces" and not (self.input_agent or self.output_agent):
            # scml builds the output side from (quantities, quantities), and agents see it
            value = [
                make_os(self._issues_of(self.input_qrange, self.input_prange)),
                make_os(self._issues_of(self.output_qrange, self.output_qrange)),
            ]
        elif name == "_reserved_value":
            # a slight bias towards agreements, as in scml
            value = _float64(settle([], [], self._terms()).profit - 1e-3)
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__[name] = value
        return value

    def _issues(self, output: bool) -> list[Any]:
        if output:
            return self._issues_of(self.output_qrange, self.output_prange)
        return self._issues_of(self.input_qrange, self.input_prange)

    def _issues_of(self, quantities: tuple[int, int], prices: tuple[int, int]) -> list[Any]:
        return [
            make_issue(quantities, name="quantity"),
            make_issue(self.time_range, name="time"),
            make_issue(prices, name="unit_price"),
        ]

    def _terms(self) -> Terms:
        return Terms(
            self.current_balance,
            self.n_lines,
            self.production_cost,
            self.ex_qin + self.inventory_in,
            self.ex_pin,
            self.ex_qout + self.inventory_out,
            self.ex_pout,
            self.output_penalty_scale,
            self.shortfall_penalty,
            self.storage_penalty_scale,
            self.storage_cost,
            self.input_penalty_scale,
            self.disposal_cost,
        )

    def from_offers(
        self,
        offers: Iterable[Offer] | Mapping[str, Offer],
        outputs: Iterable[bool] | None = None,
        return_info: bool = False,
        ignore_signed_contracts: bool = True,
    ) -> float | UtilityInfo:
        """Return the utility of concluding `offers`, as scml's method of the same name."""
        if isinstance(offers, dict):
            consumers = self.consumers
            outputs = [partner in consumers for partner in offers]
            offers = offers.values()
        elif outputs is None:
            offers = tuple(offers)  # type: ignore[arg-type]  # a mapping takes the branch above
            outputs = [self._only_output()] * len(offers)
        today = self.current_step
        bought: list[Line] = []
        sold: list[Line] = []
        for offer, is_output in zip(offers, outputs, strict=True):
            price = offer[2]
            if offer[1] == today:
                (sold if is_output else bought).append((price, offer[0]))
        if not ignore_signed_contracts:
            for offer, is_output in zip(self._signed_agreements, self._signed_is_output, strict=True):
                if offer[1] == today:
                    (sold if is_output else bought).append((offer[2], offer[0]))
        settled = settle(bought, sold, self._terms())
        return _as_info(settled) if return_info else _float64(settled.profit)

    def _only_output(self) -> bool:
        if self.input_agent:
            return True
        if self.output_agent:
            return False
        raise RuntimeError(
            "outputs=None is ambiguous for a factory that is neither at the first nor at the last level; "
            "say for each offer whether it is a sale"
        )

    def find_limit_brute_force(
        self,
        best: bool,
        n_input_negs: int | None = None,
        n_output_negs: int | None = None,
        secured_input_quantity: int = 0,
        secured_input_unit_price: float = 0.0,
        secured_output_quantity: int = 0,
        secured_output_unit_price: float = 0.0,
        ignore_signed_contracts: bool = True,
    ) -> UFunLimit:
        """Return the best or worst utility of the day, as scml's method of the same name."""
        if not ignore_signed_contracts:
            return super().find_limit_brute_force(
                best,
                n_input_negs,
                n_output_negs,
                secured_input_quantity,
                secured_input_unit_price,
                secured_output_quantity,
                secured_output_unit_price,
                ignore_signed_contracts=False,
            )
        n_in = self.n_input_negs if n_input_negs is None else n_input_negs
        n_out = self.n_output_negs if n_output_negs is None else n_output_negs
        secured = (
            (secured_input_unit_price, secured_input_quantity),
            (
                secured_output_unit_price,
                secured_output_quantity,
            ),
        )
        cache: dict[Any, UFunLimit] = self.__dict__.setdefault("_limits", {})
        key = (best, n_in, n_out, secured)
        if key not in cache:
            cache[key] = self._find_limit(best, n_in, n_out, secured)
        return cache[key]

    def _find_limit(self, best: bool, n_in: int, n_out: int, secured: tuple[Line, Line]) -> UFunLimit:
        in_price = self.input_prange[0] if best else self.input_prange[1]
        out_price = self.output_prange[1] if best else self.output_prange[0]
        utility, quantity_in, quantity_out, produced = find_limit_on_grid(
            best,
            n_in * self.input_qrange[1],
            n_out * self.output_qrange[1],
            in_price,
            out_price,
            [secured[0]],
            [secured[1]],
            self._terms(),
        )
        return UFunLimit(
            utility=_float64(utility),
            input_quantity=quantity_in,
            input_price=in_price,
            output_quantity=quantity_out,
            output_price=out_price,
            exogenous_input_price=self.ex_pin / self.ex_qin if self.ex_qin else 0,
            exogenous_output_price=self.ex_pout / self.ex_qout if self.ex_qout else 0,
            exogenous_input_quantity=self.ex_qin if self.force_exogenous else None,
            exogenous_output_quantity=self.ex_qout if self.force_exogenous else None,
            inventory_input=self.inventory_in,
            inventory_output=self.inventory_out,
            producible=produced,
        )


def _as_info(settled: Settled) -> UtilityInfo:
    return UtilityInfo(
        producible=settled.produced,
        total_input=settled.total_input,
        total_output=settled.total_output,
        shortfall_quantity=settled.shortfall,
        shortfall_penalty=_float64(settled.shortfall_penalty),
        remaining_quantity=max(0, settled.total_input - settled.produced),
        disposal_cost=_float64(settled.disposal_cost),
        storage_cost=_float64(settled.storage_cost),
        utility=_float64(settled.profit),
    )


class UFunFactory:
    """Makes a factory's utility functions, one per day, from a template of constants.

    Args:
        agent_id: The factory.
        level: Its level.
        n_levels: Levels of the world.
        n_lines: Its production lines.
        cost: Its production cost.
        suppliers: Ids of its suppliers.
        consumers: Ids of its consumers.
    """

    def __init__(
        self,
        agent_id: str,
        level: int,
        n_levels: int,
        n_lines: int,
        cost: float,
        suppliers: list[str],
        consumers: list[str],
    ) -> None:
        first, last = level == 0, level == n_levels - 1
        self._suppliers = suppliers
        self._consumers = consumers
        template = OneShotUFun(
            agent_id=agent_id,
            perishable=False,
            ex_qin=0,
            ex_pin=0,
            ex_qout=0,
            ex_pout=0,
            production_cost=cost,
            disposal_cost=0.0,
            storage_cost=0.0,
            shortfall_penalty=0.0,
            input_penalty_scale=1.0,
            storage_penalty_scale=1.0,
            output_penalty_scale=1.0,
            input_agent=first,
            output_agent=last,
            input_product=level,
            n_input_negs=0 if first else len(suppliers),
            n_output_negs=0 if last else len(consumers),
            current_step=0,
            time_range=(0, 0),
            n_lines=n_lines,
        )
        values = dict(template.__dict__)
        for lazy in ("outcome_spaces", "_reserved_value", "_cache_from_aggregates"):
            values.pop(lazy, None)
        if first or last:
            values.pop("outcome_space", None)
        values["_best"] = values["_worst"] = _UNKNOWN
        self._values = values

    def make(self, **day: Any) -> LeanUFun:  # noqa: ANN401 - the attributes of scml's ufun
        """Make the day's utility function from the attributes that change from day to day."""
        ufun: LeanUFun = LeanUFun.__new__(LeanUFun)
        values = ufun.__dict__
        values.update(self._values)
        values.update(day)
        values["suppliers"] = set(self._suppliers)
        values["consumers"] = set(self._consumers)
        values["_changes"] = []
        values["_constraints"] = []
        values["_signed_agreements"] = []
        values["_signed_is_output"] = []
        values["_registered_sale_failures"] = set()
        values["_registered_supply_failures"] = set()
        return ufun

"""Features of a factory's day, from the observation of its start alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final

import numpy as np

from ..arrays import Bools, Floats, Floats32
from ..observation import Agenda, Observation, Partner
from .table import Feature, part, squash, to_columns, to_vector

__all__ = ["ROLE", "STATIC", "TEMPORAL", "DayFeatures", "WiderHorizonWarning", "day_features"]

_DAY: Final = Feature[Observation, float]
_LEAD: Final = Feature["Leads", Floats]


class WiderHorizonWarning(UserWarning):
    """More delivery days were requested than the league allows; those beyond are masked."""


@dataclass(frozen=True, slots=True, eq=False)
class DayFeatures:
    """A factory's day as arrays; names of the columns are in `features.DAY_FEATURES`.

    Attributes:
        x_static: The factory and its market, [n_static].
        x_temporal: Delivery days, today first, [horizon + 1, n_temporal]; rows that are masked are 0.
        x_role: 1 for each side that is negotiable today: buying, selling; [2].
        mask: Which delivery days exist: inside the league's horizon and before the end of the world,
            [horizon + 1].
    """

    x_static: Floats32
    x_temporal: Floats32
    x_role: Floats32
    mask: Bools


@dataclass(frozen=True, slots=True)
class Leads:
    """An observation's delivery days that exist, as columns ``[L]``; today's exogenous contracts are separate."""

    obs: Observation
    lead: Floats
    bought: Floats
    bought_value: Floats
    sold: Floats
    sold_value: Floats
    forced_in: Floats
    forced_out: Floats

    @property
    def net(self) -> Floats:
        """Units that come in less units that go out, exogenous contracts included."""
        return self.bought + self.forced_in - self.sold - self.forced_out


def day_features(obs: Observation, horizon: int | None = None) -> DayFeatures:
    """Turn a factory's day into arrays.

    Args:
        obs: The observation of the day's start.
        horizon: Delivery days after today, the number of rows less one; default: the league's own. Days beyond the
            league's are masked with a `WiderHorizonWarning`.

    Raises:
        ValueError: If the horizon is smaller than the league's, or the observation is not finite.
    """
    wanted = obs.horizon if horizon is None else horizon
    if wanted < obs.horizon:
        raise ValueError(
            f"horizon={wanted} is smaller than the league's {obs.horizon}: standing contracts would be lost; "
            f"give at least {obs.horizon}, or None"
        )
    if wanted > obs.horizon:
        warnings.warn(
            f"horizon={wanted} exceeds the league's {obs.horizon}; leads {obs.horizon + 1} to {wanted} are masked",
            WiderHorizonWarning,
            stacklevel=2,
        )
    real = min(obs.horizon + 1, obs.days_left)  # delivery days that exist
    x_temporal = np.zeros((wanted + 1, len(TEMPORAL)), np.float32)
    x_temporal[:real] = to_columns(TEMPORAL, _leads(obs, real), real)
    return DayFeatures(to_vector(STATIC, obs), x_temporal, to_vector(ROLE, obs), np.arange(wanted + 1) < real)


def _leads(obs: Observation, length: int) -> Leads:
    def column(values: Sequence[float]) -> Floats:
        return np.array(values[:length], np.float64)

    calendar = obs.calendar
    today = np.arange(length) == 0
    return Leads(
        obs,
        np.arange(length, dtype=np.float64),
        column(calendar.bought),
        column(calendar.bought_value),
        column(calendar.sold),
        column(calendar.sold_value),
        np.where(today, float(obs.exogenous_in), 0.0),
        np.where(today, float(obs.exogenous_out), 0.0),
    )


def _mean(values: Iterable[float]) -> float:
    """Return a mean that does not depend on the order; 0 if there are no values."""
    known = list(values)
    return part(fsum(known), len(known))


def _relative(price: float, usual: float) -> float:
    """Return how far a price lies above its usual value; 0 if either is missing."""
    return price / usual - 1.0 if price > 0 and usual > 0 else 0.0


def _change(obs: Observation, product: int, days: int) -> float:
    before = obs.price_history[max(0, len(obs.price_history) - 1 - days)][product]
    return _relative(obs.trading_prices[product], before)


def _unit_prices(value: Floats, quantity: Floats, usual: float) -> Floats:
    """Return mean unit prices relative to the usual one, 0 where nothing is agreed."""
    unit = np.divide(value, quantity, out=np.zeros_like(value), where=quantity > 0)
    return np.where(unit > 0, unit / usual - 1.0, 0.0) if usual > 0 else np.zeros_like(value)


def _capacity(obs: Observation) -> float:
    """Return the units that all factories of the own level can produce in a day."""
    return float(obs.n_lines * (1 + len(obs.competitors)))


def _edge_price(obs: Observation, product: int) -> float:
    value, quantity = obs.market_exogenous_value[product], obs.market_exogenous_quantity[product]
    return _relative(part(value, quantity), obs.trading_prices[product])


def _end(agenda: Agenda | None, usual: float, *, high: bool) -> float:
    if agenda is None or usual <= 0:
        return 0.0
    return (agenda.price_max if high else agenda.price_min) / usual - 1.0


def _open(agenda: Agenda | None, partners: Sequence[Partner]) -> float:
    return float(agenda is not None and any(not partner.bankrupt for partner in partners))


def _group(name: str) -> tuple[Feature[Observation, float], ...]:
    """Return the features of all suppliers, consumers or competitors together."""

    def of(obs: Observation) -> Sequence[Partner]:
        partners: Sequence[Partner] = getattr(obs, name)
        return partners

    def cash(obs: Observation) -> float:
        return part(_mean(p.report_cash[-1] for p in of(obs) if p.report_cash), obs.initial_balance)

    return (
        _DAY(f"{name}_number", name, "number", 6, lambda o: float(len(of(o)))),
        _DAY(f"{name}_bankrupt", f"{name}.bankrupt", "share", 1, lambda o: _mean(float(p.bankrupt) for p in of(o))),
        _DAY(f"{name}_reported", f"{name}.report_days", "share with a report", 1,
             lambda o: _mean(float(bool(p.report_days)) for p in of(o))),
        _DAY(f"{name}_cash", f"{name}.report_cash, initial_balance", "mean latest cash / initial_balance", 1, cash),
        _DAY(f"{name}_breach_probability", f"{name}.breach_probability", "mean", 1,
             lambda o: _mean(p.breach_probability for p in of(o))),
        _DAY(f"{name}_breach_level", f"{name}.breach_level", "mean", 1, lambda o: _mean(p.breach_level for p in of(o))),
    )  # fmt: skip


# One entry per feature; the formatter would put each argument on a line of its own.
STATIC: Final[tuple[Feature[Observation, float], ...]] = (
    _DAY("progress", "day, n_days", "day / n_days", 1, lambda o: o.day / o.n_days),
    _DAY("days_left", "day, n_days", "squash((n_days − day) / 10)", 1, lambda o: squash(o.days_left / 10)),
    _DAY("n_days", "n_days", "n_days", 200, lambda o: float(o.n_days)),
    _DAY("level", "level, n_levels", "level / (n_levels − 1)", 1, lambda o: part(o.level, o.n_levels - 1)),
    _DAY("n_levels", "n_levels", "n_levels", 4, lambda o: float(o.n_levels)),
    _DAY("n_lines", "n_lines", "n_lines", 10, lambda o: float(o.n_lines)),
    _DAY("perishable", "perishable", "1 if stock perishes", 1, lambda o: float(o.perishable)),
    _DAY("cash", "cash, initial_balance", "cash / initial_balance − 1", 1,
         lambda o: part(o.cash - o.initial_balance, o.initial_balance)),
    _DAY("cash_days", "cash, n_lines, production_cost, trading_prices",
         "squash(cash / (10 · n_lines · (price_in + production_cost)))", 1,
         lambda o: squash(part(o.cash, 10 * o.n_lines * (o.price_in + o.production_cost)))),
    _DAY("stock_in", "stock_in, n_lines", "squash(stock_in / n_lines)", 1, lambda o: squash(o.stock_in / o.n_lines)),
    _DAY("stock_out", "stock_out, n_lines", "squash(stock_out / n_lines)", 1,
         lambda o: squash(o.stock_out / o.n_lines)),
    _DAY("needed_sales", "needed_sales, n_lines", "squash(needed_sales / n_lines)", 1,
         lambda o: squash(o.needed_sales / o.n_lines)),
    _DAY("needed_supplies", "needed_supplies, n_lines", "squash(needed_supplies / n_lines)", 1,
         lambda o: squash(o.needed_supplies / o.n_lines)),
    _DAY("exogenous_in", "exogenous_in, n_lines", "exogenous_in / n_lines", 1, lambda o: o.exogenous_in / o.n_lines),
    _DAY("exogenous_in_price", "exogenous_in_value, exogenous_in, trading_prices",
         "value / quantity / price_in − 1, 0 if none", 0.2,
         lambda o: _relative(part(o.exogenous_in_value, o.exogenous_in), o.price_in)),
    _DAY("exogenous_out", "exogenous_out, n_lines", "exogenous_out / n_lines", 1,
         lambda o: o.exogenous_out / o.n_lines),
    _DAY("exogenous_out_price", "exogenous_out_value, exogenous_out, trading_prices",
         "value / quantity / price_out − 1, 0 if none", 0.2,
         lambda o: _relative(part(o.exogenous_out_value, o.exogenous_out), o.price_out)),
    _DAY("market_supply", "market_exogenous_quantity, n_lines, competitors",
         "units of the first product / (n_lines · factories of the own level)", 1,
         lambda o: part(o.market_exogenous_quantity[0], _capacity(o))),
    _DAY("market_supply_price", "market_exogenous_value, market_exogenous_quantity, trading_prices",
         "value / quantity / trading price of the first product − 1, 0 if none", 0.2, lambda o: _edge_price(o, 0)),
    _DAY("market_demand", "market_exogenous_quantity, n_lines, competitors",
         "units of the last product / (n_lines · factories of the own level)", 1,
         lambda o: part(o.market_exogenous_quantity[-1], _capacity(o))),
    _DAY("market_demand_price", "market_exogenous_value, market_exogenous_quantity, trading_prices",
         "value / quantity / trading price of the last product − 1, 0 if none", 0.2, lambda o: _edge_price(o, -1)),
    _DAY("margin", "trading_prices, production_cost", "(price_out − price_in − production_cost) / price_out", 1,
         lambda o: part(o.price_out - o.price_in - o.production_cost, o.price_out)),
    _DAY("production_cost", "production_cost, trading_prices", "production_cost / price_out", 1,
         lambda o: part(o.production_cost, o.price_out)),
    _DAY("price_in", "trading_prices, catalog_prices", "price_in / its catalog price − 1", 0.5,
         lambda o: _relative(o.price_in, o.catalog_prices[o.level])),
    _DAY("price_out", "trading_prices, catalog_prices", "price_out / its catalog price − 1", 0.5,
         lambda o: _relative(o.price_out, o.catalog_prices[o.level + 1])),
    _DAY("price_in_change_1", "price_history", "price_in / price_in 1 day before − 1", 0.05,
         lambda o: _change(o, o.level, 1)),
    _DAY("price_in_change_10", "price_history", "price_in / price_in 10 days before, or on the first, − 1", 0.2,
         lambda o: _change(o, o.level, 10)),
    _DAY("price_out_change_1", "price_history", "price_out / price_out 1 day before − 1", 0.05,
         lambda o: _change(o, o.level + 1, 1)),
    _DAY("price_out_change_10", "price_history", "price_out / price_out 10 days before, or on the first, − 1", 0.2,
         lambda o: _change(o, o.level + 1, 10)),
    _DAY("shortfall_penalty", "shortfall_penalty", "as it is", 1, lambda o: o.shortfall_penalty),
    _DAY("storage_cost", "storage_cost", "as it is", 0.05, lambda o: o.storage_cost),
    _DAY("disposal_cost", "disposal_cost", "as it is", 0.05, lambda o: o.disposal_cost),
    _DAY("shortfall_penalty_mean", "shortfall_penalty_mean", "as it is", 1, lambda o: o.shortfall_penalty_mean),
    _DAY("storage_cost_mean", "storage_cost_mean", "as it is", 0.05, lambda o: o.storage_cost_mean),
    _DAY("disposal_cost_mean", "disposal_cost_mean", "as it is", 0.05, lambda o: o.disposal_cost_mean),
    _DAY("buy_price_min", "buy_agenda, trading_prices", "price_min / price_in − 1, 0 without an agenda", 0.1,
         lambda o: _end(o.buy_agenda, o.price_in, high=False)),
    _DAY("buy_price_max", "buy_agenda, trading_prices", "price_max / price_in − 1, 0 without an agenda", 0.1,
         lambda o: _end(o.buy_agenda, o.price_in, high=True)),
    _DAY("sell_price_min", "sell_agenda, trading_prices", "price_min / price_out − 1, 0 without an agenda", 0.1,
         lambda o: _end(o.sell_agenda, o.price_out, high=False)),
    _DAY("sell_price_max", "sell_agenda, trading_prices", "price_max / price_out − 1, 0 without an agenda", 0.1,
         lambda o: _end(o.sell_agenda, o.price_out, high=True)),
    *_group("suppliers"),
    *_group("consumers"),
    *_group("competitors"),
)  # fmt: skip

TEMPORAL: Final[tuple[Feature[Leads, Floats], ...]] = (
    _LEAD("lead", "horizon", "lead / horizon", 1, lambda d: d.lead / max(1, d.obs.horizon)),
    _LEAD("today", "", "1 for lead 0", 1, lambda d: (d.lead == 0).astype(np.float64)),
    _LEAD("bought", "calendar.bought, n_lines", "bought / n_lines", 1, lambda d: d.bought / d.obs.n_lines),
    _LEAD("bought_price", "calendar.bought_value, calendar.bought, trading_prices",
          "value / quantity / price_in − 1, 0 if none", 0.1,
          lambda d: _unit_prices(d.bought_value, d.bought, d.obs.price_in)),
    _LEAD("sold", "calendar.sold, n_lines", "sold / n_lines", 1, lambda d: d.sold / d.obs.n_lines),
    _LEAD("sold_price", "calendar.sold_value, calendar.sold, trading_prices",
          "value / quantity / price_out − 1, 0 if none", 0.1,
          lambda d: _unit_prices(d.sold_value, d.sold, d.obs.price_out)),
    _LEAD("forced_in", "exogenous_in, n_lines", "exogenous_in / n_lines at lead 0", 1,
          lambda d: d.forced_in / d.obs.n_lines),
    _LEAD("forced_out", "exogenous_out, n_lines", "exogenous_out / n_lines at lead 0", 1,
          lambda d: d.forced_out / d.obs.n_lines),
    _LEAD("free_lines", "n_lines, calendar.sold, exogenous_out", "1 − (sold + exogenous_out) / n_lines", 1,
          lambda d: 1.0 - (d.sold + d.forced_out) / d.obs.n_lines),
    _LEAD("net", "calendar, exogenous_in, exogenous_out, n_lines", "(units in − units out) / n_lines", 1,
          lambda d: d.net / d.obs.n_lines),
    _LEAD("stock", "stock_in, calendar, exogenous_in, exogenous_out, n_lines",
          "squash((stock_in + sum of (units in − units out) up to the lead) / n_lines)", 1,
          lambda d: squash((d.obs.stock_in + np.cumsum(d.net)) / d.obs.n_lines)),
    _LEAD("cash_flow", "calendar, initial_balance",
          "sum of (sold_value − bought_value) up to the lead / initial_balance", 1,
          lambda d: np.cumsum(d.sold_value - d.bought_value) / max(1.0, d.obs.initial_balance)),
)  # fmt: skip

ROLE: Final[tuple[Feature[Observation, float], ...]] = (
    _DAY("buys", "buy_agenda, suppliers.bankrupt", "1 if there is an agenda and a supplier that is not bankrupt", 1,
         lambda o: _open(o.buy_agenda, o.suppliers)),
    _DAY("sells", "sell_agenda, consumers.bankrupt", "1 if there is an agenda and a consumer that is not bankrupt", 1,
         lambda o: _open(o.sell_agenda, o.consumers)),
)  # fmt: skip

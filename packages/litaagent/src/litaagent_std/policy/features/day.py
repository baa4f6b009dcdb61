"""Features of factories' days, from the observations of their starts alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import fsum
from typing import Final

import numpy as np

from ..arrays import Array, Bools, Floats, Floats32, Ints
from ..columns import BUY, SELL, ObservationBatch, PartnerBatch
from .table import Feature, part, relative, squash, to_columns

__all__ = ["ROLE", "STATIC", "TEMPORAL", "DayFeatures", "WiderHorizonWarning", "day_features"]

_DAY: Final = Feature[ObservationBatch]
_LEAD: Final = Feature["Leads"]


class WiderHorizonWarning(UserWarning):
    """More delivery days were requested than the league allows; those beyond are masked."""


@dataclass(frozen=True, slots=True, eq=False)
class DayFeatures:
    """B factories' days as arrays; names of the columns are in `features.DAY_FEATURES`.

    Attributes:
        x_static: The factory and its market, [B, n_static].
        x_temporal: Delivery days, today first, [B, horizon + 1, n_temporal]; rows that are masked are 0.
        x_role: 1 for each side that is negotiable today: buying, selling; [B, 2].
        mask: Which delivery days exist: inside the league's horizon and before the end of the world,
            [B, horizon + 1].
    """

    x_static: Floats32
    x_temporal: Floats32
    x_role: Floats32
    mask: Bools


@dataclass(frozen=True, slots=True)
class Leads:
    """Delivery days as columns ``[B, L]``, facts of the day ``[B, 1]``; today's exogenous contracts are separate."""

    lead: Floats
    bought: Ints
    bought_value: Floats
    sold: Ints
    sold_value: Floats
    forced_in: Ints
    forced_out: Ints
    horizon: Ints
    n_lines: Ints
    stock_in: Ints
    price_in: Floats
    price_out: Floats
    initial_balance: Floats

    @property
    def net(self) -> Ints:
        """Units that come in less units that go out, exogenous contracts included."""
        return self.bought + self.forced_in - self.sold - self.forced_out


def day_features(obs: ObservationBatch, horizon: int | None = None) -> DayFeatures:
    """Turn factories' days into arrays.

    Args:
        obs: The observations of the days' starts.
        horizon: Delivery days after today, the number of rows less one; default: the league's own. Days beyond the
            league's are masked with a `WiderHorizonWarning`.

    Raises:
        ValueError: If the horizon is smaller than the league's, or an observation is not finite.
    """
    league = int(obs.horizon.max())
    wanted = league if horizon is None else horizon
    if wanted < league:
        raise ValueError(
            f"horizon={wanted} is smaller than the league's {league}: standing contracts would be lost; "
            f"give at least {league}, or None"
        )
    if wanted > league:
        warnings.warn(
            f"horizon={wanted} exceeds the league's {league}; leads {league + 1} to {wanted} are masked",
            WiderHorizonWarning,
            stacklevel=2,
        )
    size, width = len(obs), obs.calendar.sold.shape[1]
    # [B, wanted + 1] delivery days that exist
    mask = np.arange(wanted + 1) < np.minimum(obs.horizon + 1, obs.days_left)[:, None]
    x_temporal = np.zeros((size, wanted + 1, len(TEMPORAL)), np.float32)
    x_temporal[:, :width] = to_columns(TEMPORAL, _leads(obs), (size, width))[:, : wanted + 1]
    x_temporal[~mask] = 0.0
    return DayFeatures(to_columns(STATIC, obs, (size,)), x_temporal, to_columns(ROLE, obs, (size,)), mask)


def _leads(obs: ObservationBatch) -> Leads:
    calendar = obs.calendar
    lead = np.arange(calendar.sold.shape[1], dtype=np.float64)
    today = lead == 0  # [L]
    return Leads(
        lead,
        calendar.bought,
        calendar.bought_value,
        calendar.sold,
        calendar.sold_value,
        np.where(today, obs.exogenous_in[:, None], 0),
        np.where(today, obs.exogenous_out[:, None], 0),
        obs.horizon[:, None],
        obs.n_lines[:, None],
        obs.stock_in[:, None],
        obs.price[:, :1],
        obs.price[:, 1:],
        obs.initial_balance[:, None],
    )


def _mean(values: Array, known: Bools) -> Floats:
    """Return means over the partners that are known, ``[B]``; 0 if there are none. No order changes the sums."""
    sums = [fsum(row) for row in np.where(known, values, 0.0).tolist()]
    return part(np.array(sums), known.sum(1))


def _change(obs: ObservationBatch, product: int, days: int) -> Floats:
    return relative(obs.price[:, product], obs.past[:, days, product])


def _unit_prices(value: Floats, quantity: Ints, usual: Floats) -> Floats:
    """Return mean unit prices relative to the usual one, 0 where nothing is agreed."""
    unit = part(value, quantity)
    return np.where((unit > 0) & (usual > 0), part(unit, usual) - 1.0, 0.0)


def _capacity(obs: ObservationBatch) -> Ints:
    """Return the units that all factories of the own level can produce in a day."""
    return np.asarray(obs.n_lines * (1 + obs.competitors.there.sum(1)), np.int64)


def _edge_price(obs: ObservationBatch, end: int) -> Floats:
    return relative(part(obs.market_value[:, end], obs.market_quantity[:, end]), obs.market_price[:, end])


def _end(obs: ObservationBatch, side: int, column: int) -> Floats:
    usual = obs.price[:, side]
    return np.where(obs.trades[:, side] & (usual > 0), part(obs.agenda[:, side, column], usual) - 1.0, 0.0)


def _open(obs: ObservationBatch, side: int) -> Bools:
    partners = obs.partners(side)
    return obs.trades[:, side] & (partners.there & ~partners.bankrupt).any(1)


def _group(name: str) -> tuple[Feature[ObservationBatch], ...]:
    """Return the features of all suppliers, consumers or competitors together."""

    def of(obs: ObservationBatch) -> PartnerBatch:
        partners: PartnerBatch = getattr(obs, name)
        return partners

    def cash(obs: ObservationBatch) -> Floats:
        partners = of(obs)
        return part(_mean(partners.report_cash[..., -1], partners.n_reports > 0), obs.initial_balance)

    return (
        _DAY(f"{name}_number", name, "number", 6, lambda o: of(o).there.sum(1)),
        _DAY(f"{name}_bankrupt", f"{name}.bankrupt", "share", 1, lambda o: _mean(of(o).bankrupt, of(o).there)),
        _DAY(f"{name}_reported", f"{name}.report_days", "share with a report", 1,
             lambda o: _mean(of(o).n_reports > 0, of(o).there)),
        _DAY(f"{name}_cash", f"{name}.report_cash, initial_balance", "mean latest cash / initial_balance", 1, cash),
        _DAY(f"{name}_breach_probability", f"{name}.breach_probability", "mean", 1,
             lambda o: _mean(of(o).breach_probability, of(o).there)),
        _DAY(f"{name}_breach_level", f"{name}.breach_level", "mean", 1,
             lambda o: _mean(of(o).breach_level, of(o).there)),
    )  # fmt: skip


# One entry per feature; the formatter would put each argument on a line of its own.
STATIC: Final[tuple[Feature[ObservationBatch], ...]] = (
    _DAY("progress", "day, n_days", "day / n_days", 1, lambda o: o.day / o.n_days),
    _DAY("days_left", "day, n_days", "squash((n_days − day) / 10)", 1, lambda o: squash(o.days_left / 10)),
    _DAY("n_days", "n_days", "n_days", 200, lambda o: o.n_days),
    _DAY("level", "level, n_levels", "level / (n_levels − 1)", 1, lambda o: part(o.level, o.n_levels - 1)),
    _DAY("n_levels", "n_levels", "n_levels", 4, lambda o: o.n_levels),
    _DAY("n_lines", "n_lines", "n_lines", 10, lambda o: o.n_lines),
    _DAY("perishable", "perishable", "1 if stock perishes", 1, lambda o: o.perishable),
    _DAY("cash", "cash, initial_balance", "cash / initial_balance − 1", 1,
         lambda o: part(o.cash - o.initial_balance, o.initial_balance)),
    _DAY("cash_days", "cash, n_lines, production_cost, trading_prices",
         "squash(cash / (10 · n_lines · (price_in + production_cost)))", 1,
         lambda o: squash(part(o.cash, 10 * o.n_lines * (o.price[:, BUY] + o.production_cost)))),
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
         lambda o: relative(part(o.exogenous_in_value, o.exogenous_in), o.price[:, BUY])),
    _DAY("exogenous_out", "exogenous_out, n_lines", "exogenous_out / n_lines", 1,
         lambda o: o.exogenous_out / o.n_lines),
    _DAY("exogenous_out_price", "exogenous_out_value, exogenous_out, trading_prices",
         "value / quantity / price_out − 1, 0 if none", 0.2,
         lambda o: relative(part(o.exogenous_out_value, o.exogenous_out), o.price[:, SELL])),
    _DAY("market_supply", "market_exogenous_quantity, n_lines, competitors",
         "units of the first product / (n_lines · factories of the own level)", 1,
         lambda o: part(o.market_quantity[:, 0], _capacity(o))),
    _DAY("market_supply_price", "market_exogenous_value, market_exogenous_quantity, trading_prices",
         "value / quantity / trading price of the first product − 1, 0 if none", 0.2, lambda o: _edge_price(o, 0)),
    _DAY("market_demand", "market_exogenous_quantity, n_lines, competitors",
         "units of the last product / (n_lines · factories of the own level)", 1,
         lambda o: part(o.market_quantity[:, 1], _capacity(o))),
    _DAY("market_demand_price", "market_exogenous_value, market_exogenous_quantity, trading_prices",
         "value / quantity / trading price of the last product − 1, 0 if none", 0.2, lambda o: _edge_price(o, 1)),
    _DAY("margin", "trading_prices, production_cost", "(price_out − price_in − production_cost) / price_out", 1,
         lambda o: part(o.price[:, SELL] - o.price[:, BUY] - o.production_cost, o.price[:, SELL])),
    _DAY("production_cost", "production_cost, trading_prices", "production_cost / price_out", 1,
         lambda o: part(o.production_cost, o.price[:, SELL])),
    _DAY("price_in", "trading_prices, catalog_prices", "price_in / its catalog price − 1", 0.5,
         lambda o: relative(o.price[:, BUY], o.catalog[:, BUY])),
    _DAY("price_out", "trading_prices, catalog_prices", "price_out / its catalog price − 1", 0.5,
         lambda o: relative(o.price[:, SELL], o.catalog[:, SELL])),
    _DAY("price_in_change_1", "price_history", "price_in / price_in 1 day before − 1", 0.05,
         lambda o: _change(o, BUY, 1)),
    _DAY("price_in_change_10", "price_history", "price_in / price_in 10 days before, or on the first, − 1", 0.2,
         lambda o: _change(o, BUY, 10)),
    _DAY("price_out_change_1", "price_history", "price_out / price_out 1 day before − 1", 0.05,
         lambda o: _change(o, SELL, 1)),
    _DAY("price_out_change_10", "price_history", "price_out / price_out 10 days before, or on the first, − 1", 0.2,
         lambda o: _change(o, SELL, 10)),
    _DAY("shortfall_penalty", "shortfall_penalty", "as it is", 1, lambda o: o.shortfall_penalty),
    _DAY("storage_cost", "storage_cost", "as it is", 0.05, lambda o: o.storage_cost),
    _DAY("disposal_cost", "disposal_cost", "as it is", 0.05, lambda o: o.disposal_cost),
    _DAY("shortfall_penalty_mean", "shortfall_penalty_mean", "as it is", 1, lambda o: o.shortfall_penalty_mean),
    _DAY("storage_cost_mean", "storage_cost_mean", "as it is", 0.05, lambda o: o.storage_cost_mean),
    _DAY("disposal_cost_mean", "disposal_cost_mean", "as it is", 0.05, lambda o: o.disposal_cost_mean),
    _DAY("buy_price_min", "buy_agenda, trading_prices", "price_min / price_in − 1, 0 without an agenda", 0.1,
         lambda o: _end(o, BUY, 4)),
    _DAY("buy_price_max", "buy_agenda, trading_prices", "price_max / price_in − 1, 0 without an agenda", 0.1,
         lambda o: _end(o, BUY, 5)),
    _DAY("sell_price_min", "sell_agenda, trading_prices", "price_min / price_out − 1, 0 without an agenda", 0.1,
         lambda o: _end(o, SELL, 4)),
    _DAY("sell_price_max", "sell_agenda, trading_prices", "price_max / price_out − 1, 0 without an agenda", 0.1,
         lambda o: _end(o, SELL, 5)),
    *_group("suppliers"),
    *_group("consumers"),
    *_group("competitors"),
)  # fmt: skip

TEMPORAL: Final[tuple[Feature[Leads], ...]] = (
    _LEAD("lead", "horizon", "lead / horizon", 1, lambda d: d.lead / np.maximum(1, d.horizon)),
    _LEAD("today", "", "1 for lead 0", 1, lambda d: d.lead == 0),
    _LEAD("bought", "calendar.bought, n_lines", "bought / n_lines", 1, lambda d: d.bought / d.n_lines),
    _LEAD("bought_price", "calendar.bought_value, calendar.bought, trading_prices",
          "value / quantity / price_in − 1, 0 if none", 0.1,
          lambda d: _unit_prices(d.bought_value, d.bought, d.price_in)),
    _LEAD("sold", "calendar.sold, n_lines", "sold / n_lines", 1, lambda d: d.sold / d.n_lines),
    _LEAD("sold_price", "calendar.sold_value, calendar.sold, trading_prices",
          "value / quantity / price_out − 1, 0 if none", 0.1,
          lambda d: _unit_prices(d.sold_value, d.sold, d.price_out)),
    _LEAD("forced_in", "exogenous_in, n_lines", "exogenous_in / n_lines at lead 0", 1,
          lambda d: d.forced_in / d.n_lines),
    _LEAD("forced_out", "exogenous_out, n_lines", "exogenous_out / n_lines at lead 0", 1,
          lambda d: d.forced_out / d.n_lines),
    _LEAD("free_lines", "n_lines, calendar.sold, exogenous_out", "1 − (sold + exogenous_out) / n_lines", 1,
          lambda d: 1.0 - (d.sold + d.forced_out) / d.n_lines),
    _LEAD("net", "calendar, exogenous_in, exogenous_out, n_lines", "(units in − units out) / n_lines", 1,
          lambda d: d.net / d.n_lines),
    _LEAD("stock", "stock_in, calendar, exogenous_in, exogenous_out, n_lines",
          "squash((stock_in + sum of (units in − units out) up to the lead) / n_lines)", 1,
          lambda d: squash((d.stock_in + np.cumsum(d.net, axis=1)) / d.n_lines)),
    _LEAD("cash_flow", "calendar, initial_balance",
          "sum of (sold_value − bought_value) up to the lead / initial_balance", 1,
          lambda d: np.cumsum(d.sold_value - d.bought_value, axis=1) / np.maximum(1.0, d.initial_balance)),
)  # fmt: skip

ROLE: Final[tuple[Feature[ObservationBatch], ...]] = (
    _DAY("buys", "buy_agenda, suppliers.bankrupt", "1 if there is an agenda and a supplier that is not bankrupt", 1,
         lambda o: _open(o, BUY)),
    _DAY("sells", "sell_agenda, consumers.bankrupt", "1 if there is an agenda and a consumer that is not bankrupt", 1,
         lambda o: _open(o, SELL)),
)  # fmt: skip

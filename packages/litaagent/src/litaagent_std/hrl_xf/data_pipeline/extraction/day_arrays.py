"""`policy.features.day_features` for all mornings of chosen factories at once.

Names, order and scales come from the policy's own table; the values are computed here by columns, with the same
operations in the same order, so that no bit differs. Tests compare every morning of recorded worlds with
`day_features`; a feature that is added to the table and not here is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError
from litaagent_std.hrl_xf.data_pipeline.extraction.days import WorldDays
from litaagent_std.policy.arrays import Array, Bools, Floats, Floats32, Ints
from litaagent_std.policy.features.day import ROLE, STATIC, TEMPORAL
from litaagent_std.policy.features.table import LIMIT, Feature

__all__ = ["DayArrays", "day_arrays", "part", "scaled"]


@dataclass(frozen=True, slots=True)
class DayArrays:
    """Features of mornings, [day, chosen factory, …]; see `policy.features_day.DayFeatures`."""

    x_static: Floats32
    x_temporal: Floats32
    x_role: Floats32
    mask: Bools


def scaled(features: Sequence[Feature[Any, Any]], columns: Mapping[str, Array]) -> Floats32:
    """Put columns in the table's order and apply its scales and limit.

    Raises:
        BadSampleError: If a value is not finite.
    """
    values = np.stack([columns[feature.name] / feature.scale for feature in features], axis=-1)
    if not np.isfinite(values).all():
        place = int(np.argwhere(~np.isfinite(values))[0][-1])
        raise BadSampleError(
            f"feature {features[place].name!r} is not finite",
            f"features are finite; it is made from {features[place].source}",
            "look for NaN in that world's tables, and leave the world out",
        )
    return np.clip(values, -LIMIT, LIMIT).astype(np.float32)


def day_arrays(days: WorldDays, seats: Sequence[int], horizon: int | None = None) -> DayArrays:
    """Compute the features of all mornings of some factories.

    Args:
        days: The world's mornings.
        seats: The factories.
        horizon: Delivery days after today to make room for; the league's own when None.
    """
    chosen = np.array(seats)
    static = {**_own(days, chosen), **_market(days, chosen), **_groups(days, chosen)}
    temporal = scaled(TEMPORAL, _temporal(days, chosen))
    left = np.minimum(days.horizon + 1, days.n_days - np.arange(days.n_days))
    mask = np.arange(days.horizon + 1) < left[:, None]
    temporal[~np.broadcast_to(mask[:, None], temporal.shape[:3])] = 0.0
    extra = max(0, (days.horizon if horizon is None else horizon) - days.horizon)
    wide = np.pad(mask, ((0, 0), (0, extra)))
    return DayArrays(
        scaled(STATIC, static),
        np.pad(temporal, ((0, 0), (0, 0), (0, extra), (0, 0))),
        scaled(ROLE, _roles(days, chosen)),
        np.repeat(wide[:, None], len(chosen), axis=1),
    )


def part(amount: Any, whole: Any) -> Floats:  # noqa: ANN401 - numbers or arrays
    """Return shares of wholes, 0 where the whole is not positive."""
    amount, whole = np.broadcast_arrays(np.asarray(amount, np.float64), np.asarray(whole, np.float64))
    return np.asarray(np.divide(amount, whole, out=np.zeros(amount.shape), where=whole > 0), np.float64)


def _squash(x: Floats) -> Floats:
    return x / (1.0 + np.abs(x))


def _relative(price: Floats, usual: Floats) -> Floats:
    """Return how far prices lie above their usual value; 0 where there is none of either."""
    return np.where((price > 0) & (usual > 0), part(price, usual) - 1.0, 0.0)


def _constant(days: WorldDays, chosen: Ints, name: str) -> Floats:
    return np.array([days.factories[seat][name] for seat in chosen.tolist()], np.float64)


def _own(days: WorldDays, chosen: Ints) -> dict[str, Floats]:
    """Return the features of the factory itself, [day, seat]."""
    shape = (days.n_days, len(chosen))
    day = np.arange(days.n_days)[:, None]
    own = {name: values[:, chosen] for name, values in days.private.items()}
    lines, level = days.lines[chosen], days.level[chosen]
    initial, cost = own["balance"][0], _constant(days, chosen, "cost")
    price_in, price_out = days.trading[:, level], days.trading[:, level + 1]
    capacity = 10 * lines * (price_in + cost)
    found = {
        "progress": day / days.n_days,
        "days_left": _squash((days.n_days - day) / 10),
        "n_days": float(days.n_days),
        "level": part(level, days.n_levels - 1),
        "n_levels": float(days.n_levels),
        "n_lines": lines,
        "perishable": 0.0,
        "cash": part(own["balance"] - initial, initial),
        "cash_days": _squash(part(own["balance"], capacity)),
        "stock_in": _squash(own["stock_in"] / lines),
        "stock_out": 0.0,
        "needed_sales": _squash(own["needed_sales"] / lines),
        "needed_supplies": _squash(own["needed_supplies"] / lines),
        "exogenous_in": own["exogenous_in"] / lines,
        "exogenous_in_price": _relative(part(own["exogenous_in_value"], own["exogenous_in"]), price_in),
        "exogenous_out": own["exogenous_out"] / lines,
        "exogenous_out_price": _relative(part(own["exogenous_out_value"], own["exogenous_out"]), price_out),
        "margin": part(price_out - price_in - cost, price_out),
        "production_cost": part(cost, price_out),
        **{name: own[name] for name in ("shortfall_penalty", "storage_cost", "disposal_cost")},
    }
    for name in ("shortfall_penalty_mean", "storage_cost_mean", "disposal_cost_mean"):
        found[name] = _constant(days, chosen, name)
    return {name: np.broadcast_to(np.asarray(values, np.float64), shape) for name, values in found.items()}


def _market(days: WorldDays, chosen: Ints) -> dict[str, Floats]:
    """Return the features of prices and exogenous contracts, [day, seat]."""
    level = days.level[chosen]
    same = (days.level[None] == level[:, None]).sum(axis=1)
    capacity = (days.lines[chosen] * same).astype(np.float64)
    day = np.arange(days.n_days)
    found = {}
    for name, product in (("supply", 0), ("demand", -1)):
        units, value = days.supply[:, product], days.supply_value[:, product]
        found[f"market_{name}"] = part(units[:, None], capacity)
        price = _relative(part(value, units), days.trading[:, product])
        found[f"market_{name}_price"] = np.repeat(price[:, None], len(chosen), axis=1)
    for name, ahead, trades in (("in", 0, level > 0), ("out", 1, level < days.n_levels - 1)):
        price = days.trading[:, level + ahead]
        found[f"price_{name}"] = _relative(price, np.broadcast_to(days.catalog[level + ahead], price.shape))
        for back in (1, 10):
            before = days.trading[np.maximum(0, day - back)][:, level + ahead]
            found[f"price_{name}_change_{back}"] = _relative(price, before)
        side = "sell" if ahead else "buy"
        for end, place in (("min", 4), ("max", 5)):
            above = part(days.ends[:, level + ahead, place], price) - 1.0
            found[f"{side}_price_{end}"] = np.where(trades & (price > 0), above, 0.0)
    return found


def _groups(days: WorldDays, chosen: Ints) -> dict[str, Floats]:
    """Return the features of all suppliers, consumers and competitors together, [day, seat]."""
    names = ("number", "bankrupt", "reported", "cash", "breach_probability", "breach_level")
    initial = days.private["balance"][0]
    found = {}
    by_level = {level: days.seats_at(level) for level in range(-1, days.n_levels + 1)}
    known = {level: _means(days, seats) for level, seats in by_level.items()}
    for group, step in (("suppliers", -1), ("consumers", 1), ("competitors", 0)):
        values = np.zeros((len(names), days.n_days, len(chosen)))
        for place, seat in enumerate(chosen.tolist()):
            level = int(days.level[seat])
            if step:
                values[:, :, place] = known[level + step]
            else:
                values[:, :, place] = _means(days, [other for other in by_level[level] if other != seat])
        values[3] = part(values[3], initial[chosen])
        found.update({f"{group}_{name}": column for name, column in zip(names, values, strict=True)})
    return found


def _means(days: WorldDays, seats: Sequence[int]) -> Floats:
    """Return number, shares and means of some factories, [6, day]; sums do not depend on the order."""
    values = np.zeros((6, days.n_days))
    if not seats:
        return values
    r, n = days.reports, len(seats)
    reported = r.stop[:, seats] > 0
    values[0] = n
    values[1] = days.bankrupt[:, seats].sum(axis=1) / n
    values[2] = reported.sum(axis=1) / n
    columns = [column[:, seats].tolist() for column in (r.last_cash, r.breach_probability, r.breach_level)]
    news = np.flatnonzero(np.diff(r.stop[:, seats].sum(axis=1), prepend=-1)).tolist()
    for day, until in zip(news, [*news[1:], days.n_days], strict=True):
        cash = [x for x, there in zip(columns[0][day], reported[day].tolist(), strict=True) if there]
        values[3, day:until] = fsum(cash) / len(cash) if cash else 0.0
        values[4, day:until] = fsum(columns[1][day]) / n
        values[5, day:until] = fsum(columns[2][day]) / n
    return values


def _unit_prices(value: Floats, quantity: Floats, usual: Floats) -> Floats:
    unit = np.divide(value, quantity, out=np.zeros_like(value), where=quantity > 0)
    return np.where((unit > 0) & (usual > 0), part(unit, usual) - 1.0, 0.0)


def _temporal(days: WorldDays, chosen: Ints) -> dict[str, Floats]:
    """Return the features of delivery days, [day, seat, lead]."""
    bought, bought_value, sold, sold_value = days.calendar[:, :, chosen]
    lines, level = days.lines[chosen][:, None].astype(np.float64), days.level[chosen]
    own = {name: values[:, chosen] for name, values in days.private.items()}
    forced_in, forced_out = np.zeros_like(bought), np.zeros_like(bought)
    forced_in[:, :, 0], forced_out[:, :, 0] = own["exogenous_in"], own["exogenous_out"]
    net = bought + forced_in - sold - forced_out
    lead = np.broadcast_to(np.arange(days.horizon + 1, dtype=np.float64), bought.shape)
    initial = np.maximum(1.0, own["balance"][0])[:, None]
    price_in, price_out = days.trading[:, level, None], days.trading[:, level + 1, None]
    return {
        "lead": lead / max(1, days.horizon),
        "today": (lead == 0).astype(np.float64),
        "bought": bought / lines,
        "bought_price": _unit_prices(bought_value, bought, price_in),
        "sold": sold / lines,
        "sold_price": _unit_prices(sold_value, sold, price_out),
        "forced_in": forced_in / lines,
        "forced_out": forced_out / lines,
        "free_lines": 1.0 - (sold + forced_out) / lines,
        "net": net / lines,
        "stock": _squash((own["stock_in"][:, :, None] + np.cumsum(net, axis=2)) / lines),
        "cash_flow": np.cumsum(sold_value - bought_value, axis=2) / initial,
    }


def _roles(days: WorldDays, chosen: Ints) -> dict[str, Floats]:
    """Return which sides are negotiable, [day, seat]."""
    alive = {level: ~days.bankrupt[:, days.seats_at(level)] for level in range(-1, days.n_levels + 1)}
    level = days.level[chosen].tolist()
    return {
        "buys": np.stack([alive[own - 1].any(axis=1) for own in level], axis=1).astype(np.float64),
        "sells": np.stack([alive[own + 1].any(axis=1) for own in level], axis=1).astype(np.float64),
    }

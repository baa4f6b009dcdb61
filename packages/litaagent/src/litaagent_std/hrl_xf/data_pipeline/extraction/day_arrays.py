"""`policy.features.day_features` for all days of the selected factories at once.

Names, order and scales come from the policy's own table; the values are computed here by columns, with the same
operations in the same order, so that no bit differs. Tests compare every day of recorded worlds with `day_features`;
a feature that is in the table but not here raises.
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
    """Features of days, [day, seat, …]; see `policy.features.day.DayFeatures`."""

    x_static: Floats32
    x_temporal: Floats32
    x_role: Floats32
    mask: Bools


def scaled(features: Sequence[Feature[Any]], columns: Mapping[str, Array]) -> Floats32:
    """Put columns in the table's order and apply its scales and limit.

    Raises:
        BadSampleError: If a value is not finite.
    """
    values = np.stack([columns[feature.name] / feature.scale for feature in features], axis=-1)
    if not np.isfinite(values).all():
        column = int(np.argwhere(~np.isfinite(values))[0][-1])
        raise BadSampleError(
            f"feature {features[column].name!r} is not finite",
            f"features are finite; it is made from {features[column].source}",
            "look for NaN in that world's tables, and leave the world out",
        )
    return np.clip(values, -LIMIT, LIMIT).astype(np.float32)


def day_arrays(days: WorldDays, seats: Sequence[int], horizon: int | None = None) -> DayArrays:
    """Compute the features of all days of some factories.

    Args:
        days: The world's observations.
        seats: The factories.
        horizon: Delivery days after today that the arrays hold; default: the league's horizon.
    """
    own_seats = np.array(seats)
    static = {**_own(days, own_seats), **_market(days, own_seats), **_groups(days, own_seats)}
    temporal = scaled(TEMPORAL, _temporal(days, own_seats))
    left = np.minimum(days.horizon + 1, days.n_days - np.arange(days.n_days))  # [day] delivery days that exist
    mask = np.arange(days.horizon + 1) < left[:, None]  # [day, lead]
    # zeros on delivery days after the end of the world
    temporal[~np.broadcast_to(mask[:, None], temporal.shape[:3])] = 0.0
    extra = max(0, (days.horizon if horizon is None else horizon) - days.horizon)
    wide = np.pad(mask, ((0, 0), (0, extra)))  # [day, H+1] with H as asked for
    return DayArrays(
        scaled(STATIC, static),
        np.pad(temporal, ((0, 0), (0, 0), (0, extra), (0, 0))),
        scaled(ROLE, _roles(days, own_seats)),
        np.repeat(wide[:, None], len(own_seats), axis=1),
    )


def part(amount: Any, whole: Any) -> Floats:  # noqa: ANN401 - numbers or arrays
    """Return ``amount / whole``, 0 where the whole is not positive."""
    amount, whole = np.broadcast_arrays(np.asarray(amount, np.float64), np.asarray(whole, np.float64))
    return np.asarray(np.divide(amount, whole, out=np.zeros(amount.shape), where=whole > 0), np.float64)


def _squash(x: Floats) -> Floats:
    return x / (1.0 + np.abs(x))


def _relative(price: Floats, usual: Floats) -> Floats:
    """Return ``price / usual − 1``; 0 where either is missing."""
    return np.where((price > 0) & (usual > 0), part(price, usual) - 1.0, 0.0)


def _constant(days: WorldDays, own_seats: Ints, name: str) -> Floats:
    return np.array([days.factories[seat][name] for seat in own_seats.tolist()], np.float64)


def _own(days: WorldDays, own_seats: Ints) -> dict[str, Floats]:
    """Return the features of the factory itself, [day, seat]."""
    shape = (days.n_days, len(own_seats))
    day = np.arange(days.n_days)[:, None]
    own = {name: values[:, own_seats] for name, values in days.private.items()}
    lines, level = days.lines[own_seats], days.level[own_seats]
    initial, cost = own["balance"][0], _constant(days, own_seats, "cost")
    price_in, price_out = days.trading[:, level], days.trading[:, level + 1]  # [day, seat]
    capacity = 10 * lines * (price_in + cost)
    columns = {
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
        columns[name] = _constant(days, own_seats, name)
    return {name: np.broadcast_to(np.asarray(values, np.float64), shape) for name, values in columns.items()}


def _market(days: WorldDays, own_seats: Ints) -> dict[str, Floats]:
    """Return the features of prices and exogenous contracts, [day, seat]."""
    level = days.level[own_seats]
    same = (days.level[None] == level[:, None]).sum(axis=1)
    capacity = (days.lines[own_seats] * same).astype(np.float64)  # [seat] lines of its whole level
    day = np.arange(days.n_days)
    columns = {}
    for name, product in (("supply", 0), ("demand", -1)):
        units, value = days.supply[:, product], days.supply_value[:, product]
        columns[f"market_{name}"] = part(units[:, None], capacity)
        price = _relative(part(value, units), days.trading[:, product])
        columns[f"market_{name}_price"] = np.repeat(price[:, None], len(own_seats), axis=1)
    for name, ahead, trades in (("in", 0, level > 0), ("out", 1, level < days.n_levels - 1)):
        price = days.trading[:, level + ahead]
        columns[f"price_{name}"] = _relative(price, np.broadcast_to(days.catalog[level + ahead], price.shape))
        for back in (1, 10):
            before = days.trading[np.maximum(0, day - back)][:, level + ahead]
            columns[f"price_{name}_change_{back}"] = _relative(price, before)
        side = "sell" if ahead else "buy"
        for end, end_index in (("min", 4), ("max", 5)):
            above = part(days.ends[:, level + ahead, end_index], price) - 1.0
            columns[f"{side}_price_{end}"] = np.where(trades & (price > 0), above, 0.0)
    return columns


def _groups(days: WorldDays, own_seats: Ints) -> dict[str, Floats]:
    """Return the features of all suppliers, consumers and competitors together, [day, seat]."""
    names = ("number", "bankrupt", "reported", "cash", "breach_probability", "breach_level")
    initial = days.private["balance"][0]
    columns = {}
    by_level = {level: days.seats_at(level) for level in range(-1, days.n_levels + 1)}
    means = {level: _means(days, seats) for level, seats in by_level.items()}
    for group, step in (("suppliers", -1), ("consumers", 1), ("competitors", 0)):
        values = np.zeros((len(names), days.n_days, len(own_seats)))  # [6, day, seat]
        for index, seat in enumerate(own_seats.tolist()):
            level = int(days.level[seat])
            if step:
                values[:, :, index] = means[level + step]
            else:
                values[:, :, index] = _means(days, [other for other in by_level[level] if other != seat])
        values[3] = part(values[3], initial[own_seats])
        columns.update({f"{group}_{name}": column for name, column in zip(names, values, strict=True)})
    return columns


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
    # Reports change on few days; between them the means stay.
    changes = np.flatnonzero(np.diff(r.stop[:, seats].sum(axis=1), prepend=-1)).tolist()
    for day, until in zip(changes, [*changes[1:], days.n_days], strict=True):
        cash = [x for x, present in zip(columns[0][day], reported[day].tolist(), strict=True) if present]
        values[3, day:until] = fsum(cash) / len(cash) if cash else 0.0
        values[4, day:until] = fsum(columns[1][day]) / n
        values[5, day:until] = fsum(columns[2][day]) / n
    return values


def _unit_prices(value: Floats, quantity: Floats, usual: Floats) -> Floats:
    unit = np.divide(value, quantity, out=np.zeros_like(value), where=quantity > 0)
    return np.where((unit > 0) & (usual > 0), part(unit, usual) - 1.0, 0.0)


def _temporal(days: WorldDays, own_seats: Ints) -> dict[str, Floats]:
    """Return the features of delivery days, [day, seat, lead]."""
    bought, bought_value, sold, sold_value = days.calendar[:, :, own_seats]  # each [day, seat, lead]
    lines, level = days.lines[own_seats][:, None].astype(np.float64), days.level[own_seats]
    own = {name: values[:, own_seats] for name, values in days.private.items()}
    # exogenous contracts are due today: lead 0
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


def _roles(days: WorldDays, own_seats: Ints) -> dict[str, Floats]:
    """Return which sides are negotiable, [day, seat]."""
    alive = {level: ~days.bankrupt[:, days.seats_at(level)] for level in range(-1, days.n_levels + 1)}
    level = days.level[own_seats].tolist()
    return {
        "buys": np.stack([alive[own - 1].any(axis=1) for own in level], axis=1).astype(np.float64),
        "sells": np.stack([alive[own + 1].any(axis=1) for own in level], axis=1).astype(np.float64),
    }

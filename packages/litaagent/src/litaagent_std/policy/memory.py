"""What agents remember across the days of a world, computed from their observations alone.

scml (0.7 and 0.8) never takes used input out of the stock, so that a stock of ``n_lines`` feeds the factory for ever.
That may change, so the regime is measured: each day's stock is compared with what either rule predicts.

`Memory` folds the days of n factories in order; `MemoryBatch` is what the layers read of it, as columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from .arrays import Array, Bools, Floats, Ints
from .columns import PRICE_DAYS, SELL, Batch, ObservationBatch, PartnerBatch
from .parameters import ParameterColumns

__all__ = ["LEAVING_PRIOR", "Memory", "MemoryBatch", "MemoryRow", "Regime", "drift", "forecast_bankruptcy"]

LEAVING_PRIOR: Final = 0.3
"""How often a partner is expected to leave a negotiation before its end, until it was observed."""
LEAVING_RATE: Final = 0.25
"""Step of the moving average of how often it does."""
FILL_DAYS: Final = 8
"""Days after today whose fill decides how urgent sales are."""
FILL_RATE: Final = 0.3
"""Step of the moving average of that fill."""


class Regime(Enum):
    """Whether production takes input out of the stock."""

    PERSISTENT = "persistent"
    DEPLETING = "depleting"


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One factory's statistics at this moment; see `MemoryBatch`.

    Attributes:
        regime: The inventory regime, assumed or observed.
        regime_known: Whether it was observed.
        full_rate: Moving average of the share of days that sell out.
        usual_fill: Moving average, by lead, of the share of the lines that is sold at the start of a day.
        forward_fill: Moving average of the share of the lines that is sold over the next `FILL_DAYS` days at the start
            of a day; None until a day had one.
        mean_exogenous_in: Mean forced input per day so far.
        mean_exogenous_out: Mean forced output per day so far.
        produced: Moving average of the units produced per day.
        days: Days observed, today included.
    """

    regime: Regime
    regime_known: bool
    full_rate: float
    usual_fill: tuple[float, ...]
    forward_fill: float | None
    mean_exogenous_in: float
    mean_exogenous_out: float
    produced: float
    days: int


@dataclass(frozen=True, slots=True, eq=False)
class MemoryBatch(Batch):
    """Statistics of B factories, ``[B]`` each and ``usual_fill`` ``[B, H + 1]``; fields as in `MemoryRow`.

    Attributes:
        persistent: Whether production leaves the stock unchanged: the regime, assumed or observed.
        forward_fill: NaN until a day had one.
    """

    persistent: Bools
    regime_known: Bools
    full_rate: Floats
    usual_fill: Floats
    forward_fill: Floats
    mean_exogenous_in: Floats
    mean_exogenous_out: Floats
    produced: Floats
    days: Ints

    def output_rate(self, n_lines: Ints) -> Floats:
        """Return the units produced per day that may be expected, ``[B]``."""
        return np.maximum(self.produced, np.where(self.days < 5, 0.5 * n_lines, 1.0))

    def row(self, index: int, leads: int) -> MemoryRow:
        """Return one factory's statistics."""
        fill = float(self.forward_fill[index])
        return MemoryRow(
            Regime.PERSISTENT if self.persistent[index] else Regime.DEPLETING,
            bool(self.regime_known[index]),
            float(self.full_rate[index]),
            tuple(self.usual_fill[index, :leads].tolist()),
            None if np.isnan(fill) else fill,
            float(self.mean_exogenous_in[index]),
            float(self.mean_exogenous_out[index]),
            float(self.produced[index]),
            int(self.days[index]),
        )

    @classmethod
    def of(cls, row: MemoryRow) -> MemoryBatch:
        """Return a batch of one factory."""
        return cls(
            np.array([row.regime is Regime.PERSISTENT]),
            np.array([row.regime_known]),
            np.array([row.full_rate]),
            np.array([row.usual_fill]),
            np.array([np.nan if row.forward_fill is None else row.forward_fill]),
            np.array([row.mean_exogenous_in]),
            np.array([row.mean_exogenous_out]),
            np.array([row.produced]),
            np.array([row.days]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Day(Batch):
    """Days whose settlement is not known yet, ``[n]`` each: facts of their start, and the units due at their end."""

    started: Bools
    stock_in: Ints
    exogenous_in: Ints
    exogenous_out: Ints
    n_lines: Ints
    sold: Ints
    due_in: Ints
    due_out: Ints


class Memory:
    """Running statistics of n factories: regime, exogenous means, output rate, fill.

    Args:
        n: Number of factories.
        leads: Number of delivery days, today included.
        parameters: Their parameters.

    Attributes:
        now: The statistics as of the latest day, n rows.
    """

    def __init__(self, n: int, leads: int, parameters: ParameterColumns) -> None:
        zeros, whole = np.zeros(n), np.zeros(n, np.int64)
        self._rate = parameters.fill_rate
        self.now = MemoryBatch(
            parameters.assume_persistent.astype(np.bool_),
            np.zeros(n, np.bool_),
            np.full(n, 0.5),
            np.full((n, leads), 0.5),
            np.full(n, np.nan),
            zeros.copy(),
            zeros.copy(),
            zeros.copy(),
            whole.copy(),
        )
        self._exogenous = np.zeros((2, n), np.int64)
        self._previous = _Day(
            np.zeros(n, np.bool_), whole.copy(), whole.copy(), whole.copy(), np.ones(n, np.int64),
            np.zeros((n, leads), np.int64), whole.copy(), whole.copy(),
        )  # fmt: skip

    def start_day(self, obs: ObservationBatch, seats: Array | slice = slice(None)) -> None:
        """Update the statistics with a new day of some factories and with the settlement of the day before.

        Args:
            obs: The observations, a row for each of `seats`.
            seats: The factories; default: all.
        """
        now, day = self.now, self._previous
        if not isinstance(seats, slice):
            now, day = now.take(seats), day.take(seats)
        settled = day.started
        bought, sold = day.due_in + day.exogenous_in, day.due_out + day.exogenous_out
        made = np.minimum(np.minimum(day.stock_in + bought, day.n_lines), sold)
        # The regime: only a day that used more input than it received is informative.
        shown = settled & (made > bought)
        same = shown & (obs.stock_in == day.stock_in)
        used = shown & ~same & (obs.stock_in == day.stock_in + bought - made)
        # Fill: a day with little to sell says nothing about how often days sell out.
        rate, capacity = self._rate[seats], np.minimum(day.n_lines, day.stock_in + bought)
        full = now.full_rate + rate * ((sold >= capacity - 1) - now.full_rate)
        usual = now.usual_fill + rate[:, None] * (day.sold / day.n_lines[:, None] - now.usual_fill)
        exogenous = self._exogenous[:, seats] + (obs.exogenous_in, obs.exogenous_out)
        self._exogenous[:, seats] = exogenous
        days = now.days + 1
        self.now.put(
            seats,
            MemoryBatch(
                (now.persistent | same) & ~used,
                now.regime_known | same | used,
                np.where(settled & (capacity >= 0.5 * day.n_lines), full, now.full_rate),
                np.where(settled[:, None], usual, now.usual_fill),
                _forward_fill(obs, now.forward_fill),
                exogenous[0] / days,
                exogenous[1] / days,
                np.where(settled, now.produced + 0.2 * (made - now.produced), now.produced),
                days,
            ),
        )
        calendar = obs.calendar
        self._previous.put(
            seats,
            _Day(
                np.ones(len(obs), np.bool_), obs.stock_in, obs.exogenous_in, obs.exogenous_out, obs.n_lines,
                calendar.sold, calendar.bought[:, 0], calendar.sold[:, 0],
            ),
        )  # fmt: skip

    def note_due(self, bought: Array | int, sold: Array | int, seats: Array | slice = slice(None)) -> None:
        """Remember the units that are due today by the latest commitments, from which the day's settlement follows.

        Args:
            bought: Units bought for today, ``[seats]``.
            sold: Units sold for today.
            seats: The factories; default: all.
        """
        self._previous.due_in[seats], self._previous.due_out[seats] = bought, sold


def _forward_fill(obs: ObservationBatch, before: Floats) -> Floats:
    """Return the updated moving average of how full the next days are at the start of a day."""
    ahead = np.minimum(np.minimum(FILL_DAYS, obs.horizon), obs.days_left - 1)  # [B] days that count
    lead = np.arange(obs.calendar.sold.shape[1])
    sold = (obs.calendar.sold * ((lead >= 1) & (lead <= ahead[:, None]))).sum(1)
    fill = sold / np.maximum(1, ahead * obs.n_lines)
    start = np.where(np.isnan(before), fill, before)
    return np.where(ahead >= 1, start + FILL_RATE * (fill - start), before)


def drift(obs: ObservationBatch) -> Floats:
    """Return the drift of the output's trading price in per cent a day over the last `PRICE_DAYS` days, ``[B]``."""
    pairs = zip(obs.past[:, PRICE_DAYS, SELL].tolist(), obs.past[:, 0, SELL].tolist(), obs.n_past.tolist(), strict=True)
    return np.array(
        [
            100.0 * ((now / before) ** (1.0 / min(PRICE_DAYS, days)) - 1.0) if days >= 2 and before > 0 < now else 0.0
            for before, now, days in pairs
        ]
    )


def forecast_bankruptcy(partners: PartnerBatch) -> Floats:
    """Return the day on which each partner's cash would reach 0 if its latest trend continued, ``[B, P]``.

    The day is infinite if never, and minus infinite for a partner that is bankrupt.
    """
    first_day, first_cash = partners.report(3)
    last_day, last_cash = partners.report_days[..., -1], partners.report_cash[..., -1]
    falls = (partners.n_reports >= 2) & (last_cash < first_cash)
    loss = np.where(falls, first_cash - last_cash, 1.0)
    day = last_day + last_cash * (last_day - first_day) / loss
    return np.where(partners.bankrupt, -np.inf, np.where(falls, day, np.inf))

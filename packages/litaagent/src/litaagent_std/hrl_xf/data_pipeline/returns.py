"""Return-to-go relative to what others made of the same seat.

A seat's luck (its costs, its place in the chain, its exogenous contracts) is shared by all worlds of a configuration,
whoever sits there. So a return is compared with the mean over these worlds on the same day, and divided by how
much they differ over all days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.extraction.columns import Floats64, Ints, ints
from litaagent_std.records.reader import Records, WorldKey

__all__ = ["SeatReturns", "seat_returns"]

_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class SeatReturns:
    """What the seats of a configuration bring.

    Attributes:
        mean: Mean return-to-go over worlds, [day, seat].
        spread: Standard deviation from it over days and worlds, [seat]; 0 where there is one world only.
    """

    mean: Floats64
    spread: Floats64

    def normalised(self, returns: Floats64, day: Ints, seat: Ints) -> Floats64:
        """Return how far returns lie above the mean, in standard deviations; 0 where nothing can be compared."""
        spread = self.spread[seat]
        above = returns - self.mean[day, seat]
        return np.divide(above, spread, out=np.zeros_like(above), where=spread > _LEAST_SPREAD)


def seat_returns(records: Records, worlds: Sequence[WorldKey]) -> SeatReturns:
    """Measures the seats of one configuration over all its worlds, whoever played."""
    factories = records.table("factories", columns=["factory", "score", "initial_balance"], keys=worlds)
    days = records.table("days", columns=["day", "factory", "balance"], keys=worlds)
    place = _places(worlds)
    n_days, n_seats = int(ints(days["day"]).max()) + 1, int(ints(factories["factory"]).max()) + 1
    score, initial = np.zeros((2, len(worlds), n_seats))
    seats = (_rows(factories, place), ints(factories["factory"]))
    score[seats] = factories["score"].to_numpy()
    initial[seats] = factories["initial_balance"].to_numpy()
    balance = np.zeros((len(worlds), n_days, n_seats))
    balance[_rows(days, place), ints(days["day"]), ints(days["factory"])] = days["balance"].to_numpy()
    owned = np.divide(balance, initial[:, None], out=np.zeros_like(balance), where=initial[:, None] > 0)
    returns = score[:, None] - owned
    mean = returns.mean(axis=0)
    return SeatReturns(mean, np.sqrt(((returns - mean) ** 2).mean(axis=(0, 1))))


def _places(worlds: Sequence[WorldKey]) -> Mapping[tuple[int, int], int]:
    return {(key.source, key.world): number for number, key in enumerate(worlds)}


def _rows(table: object, place: Mapping[tuple[int, int], int]) -> Ints:
    source, world = ints(table["source"]), ints(table["world"])  # type: ignore[index]  # an Arrow table
    return np.array([place[key] for key in zip(source.tolist(), world.tolist(), strict=True)])

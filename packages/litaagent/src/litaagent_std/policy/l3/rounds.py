"""Relative times of rounds and their powers, from a table by round."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Ints
from ..columns import ThreadBatch
from ..l1.baseline import power, progress_at
from ..parameters import ParameterColumns
from .heuristic import Clock

__all__ = ["RoundTable", "Rounds"]


class Rounds(NamedTuple):
    """How far M threads of one side are, ``[M]`` each.

    Attributes:
        clock: Relative times of proposals, with the powers that decide about their acceptance.
        conceded: These times to the power of the side's concession.
        weight: These times to the power of the acceptance model's weight.
        judged: Relative times of answers to the power of the side's concession.
    """

    clock: Clock
    conceded: Floats
    weight: Floats
    judged: Floats


class RoundTable:
    """Powers of relative times for n factories, by who opens, number of rounds and round.

    Args:
        parameters: The factories' exponents, n rows.
        selling: Which side this is.
    """

    def __init__(self, parameters: ParameterColumns, *, selling: bool) -> None:
        curve = parameters.sell_curve if selling else parameters.buy_curve
        pairs = np.stack([curve, parameters.model_curve], axis=1)
        # [U, 2] different exponents, and those of each factory
        self._exponents, row = np.unique(pairs, axis=0, return_inverse=True)
        self._row: Ints = row.reshape(-1)
        self._size, self._table = 0, np.zeros((6, 0))

    def rounds(self, seat: Ints, threads: ThreadBatch) -> Rounds:
        """Return how far threads are.

        Args:
            seat: The factory of each, ``[M]``.
            threads: The threads.
        """
        most = max(threads.n_rounds.tolist(), default=0)
        if most + 2 > self._size:
            self._size = most + 2
            tables = [_powers(*pair, self._size) for pair in self._exponents.tolist()]
            self._table = np.stack(tables, axis=1).reshape(6, -1)  # [6, exponents · 2 · size · size]
        size = self._size
        index = (threads.opens * size + threads.n_rounds) * size + threads.round
        if len(self._exponents) > 1:
            index += self._row[seat] * (2 * size * size)
        time, rest, square, conceded, weight, judged = self._table.take(index, axis=1)
        return Rounds(Clock(time, rest, square), conceded, weight, judged)


@cache
def _powers(curve: float, weight: float, size: int) -> Floats:
    """Return the columns of `Rounds` by who opens, number of rounds and round, ``[6, 2, size, size]``.

    Args:
        curve: Exponent of the side's concession.
        weight: Exponent of the acceptance model's weight.
        size: Numbers of rounds, and rounds, from 0.
    """
    time = np.array(
        [[progress_at(at, last, opens=True, proposing=False) for at in range(size)] for last in range(size)]
    )
    clock = Clock.of(time.ravel())
    exponents = [power(clock.time, np.full(size * size, exponent)) for exponent in (curve, weight)]
    powers = np.stack([*clock, *exponents]).reshape(5, size, size)  # by last effective round + 1 and round
    table = np.zeros((6, 2, size, size))
    for opens in (False, True):
        # an opening side's last proposal is answered in the last round, the other side's a round earlier
        table[:5, int(opens)] = powers[:, np.arange(size) + opens - 1]
        table[5, int(opens)] = powers[3]
    return table

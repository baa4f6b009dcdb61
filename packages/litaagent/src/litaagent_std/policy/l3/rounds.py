"""Relative times of rounds and their powers, from a table by round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Ints
from ..columns import Batch, ThreadBatch
from ..l1.baseline import power, progress_at
from ..parameters import ParameterColumns
from .heuristic import Clock

__all__ = ["RoundTable", "Rounds"]


@dataclass(frozen=True, slots=True, eq=False)
class Rounds(Batch):
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
    """Powers of relative times for n factories, by last effective round and round.

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
        self._table = np.zeros((0, 0, 0, 5))

    def rounds(self, seat: Ints, threads: ThreadBatch) -> Rounds:
        """Return how far threads are.

        Args:
            seat: The factory of each, ``[M]``.
            threads: The threads.
        """
        most = int(threads.n_rounds.max(initial=0))
        if most + 2 > self._table.shape[1]:
            self._table = self._powers(most + 2)
        row = self._row[seat]
        # an opening side's last proposal is answered in the last round, the other side's a round earlier
        columns = self._table[row, threads.n_rounds + threads.opens - 1, threads.round].T
        judged = self._table[row, threads.n_rounds, threads.round, 3]
        return Rounds(Clock(columns[0], columns[1], columns[2]), columns[3], columns[4], judged)

    def _powers(self, size: int) -> Floats:
        """Return time, the clock's powers and those of both exponents by last effective round + 1 and round."""
        time = np.array(
            [[progress_at(at, last, opens=True, proposing=False) for at in range(size)] for last in range(size)]
        )
        clock = Clock.of(time.ravel())
        table = np.empty((len(self._exponents), size * size, 5))
        table[:, :, 0], table[:, :, 1], table[:, :, 2] = clock.time, clock.rest, clock.square
        for index, exponents in enumerate(self._exponents):
            for column, exponent in enumerate(exponents):
                table[index, :, 3 + column] = power(clock.time, np.full(size * size, exponent))
        return table.reshape(-1, size, size, 5)

"""The features of a round's threads, computed once for all layers that read them."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Bools, Floats32, Ints
from ..features import thread_features
from ..layers import RoundBatch

__all__ = ["RoundFeatures", "RoundView"]


@dataclass(frozen=True, slots=True, eq=False)
class RoundView:
    """Features of M threads; see `policy.features.ThreadFeatures`.

    Attributes:
        history: Offers so far, padded at the end, ``[M, L, …]``.
        history_mask: Which of them are offers, ``[M, L]``.
        ranges: ``[M, …]``.
        x_thread: ``[M, …]``.
        x_partner: ``[M, …]``.
    """

    history: Floats32
    history_mask: Bools
    ranges: Floats32
    x_thread: Floats32
    x_partner: Floats32

    def take(self, rows: Ints) -> RoundView:
        """Return some threads."""
        return RoundView(
            self.history[rows], self.history_mask[rows], self.ranges[rows], self.x_thread[rows], self.x_partner[rows]
        )


class RoundFeatures:
    """The features of the present round (`layers.RoundLayer`), shared by L3 and L4."""

    def __init__(self) -> None:
        self._round: RoundBatch | None = None
        self._view: RoundView | None = None

    def start_round(self, round_batch: RoundBatch) -> None:
        """Take the round; see `layers.RoundLayer`."""
        if self._round is not round_batch:
            self._round, self._view = round_batch, None

    def of(self, rows: Ints) -> RoundView:
        """Return the features of some threads of the round."""
        assert self._round is not None  # the brain starts a round before it asks the layers
        if self._view is None:
            made = self._round
            features = thread_features(made.threads, made.day.obs, *made.histories)
            history, mask = features.padded(2 * int(made.threads.n_rounds.max()))
            self._view = RoundView(history, mask, features.ranges, features.x_thread, features.x_partner)
        return self._view.take(rows)

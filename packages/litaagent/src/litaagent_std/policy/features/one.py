"""Features of one factory's day and of one thread, for a layer that is written for one factory."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Bools, Floats32
from ..columns import ObservationBatch, histories, live_threads
from ..observation import Observation, ThreadObservation
from .day import DayFeatures, day_features
from .thread import thread_features

__all__ = ["OneThread", "of_day", "of_thread"]


@dataclass(frozen=True, slots=True, eq=False)
class OneThread:
    """A thread before an action.

    Attributes:
        history: Offers before the action, oldest first, the one on the table last, [length, n_history];
            rows that are masked are 0.
        mask: Which rows of the history are offers, [length].
        ranges: Ends of the legal ranges of an offer, [n_ranges].
        x_thread: Time, role and the offer on the table, [n_thread].
        x_partner: The partner as its reports show it, [n_partner].
    """

    history: Floats32
    mask: Bools
    ranges: Floats32
    x_thread: Floats32
    x_partner: Floats32


def of_day(obs: Observation, horizon: int | None = None) -> DayFeatures:
    """Return `day_features` of one day, without the batch dimension."""
    batch = day_features(ObservationBatch.of([obs]), horizon)
    return DayFeatures(batch.x_static[0], batch.x_temporal[0], batch.x_role[0], batch.mask[0])


def of_thread(thread: ThreadObservation, obs: Observation, length: int | None = None) -> OneThread:
    """Return `thread_features` of one thread, without the batch dimension.

    Args:
        thread: The thread.
        obs: The observation of its day.
        length: Rows of the history; default: two for each round, which holds every history. Of a longer
            history the latest offers are kept.

    Raises:
        ValueError: If the day is another one, the partner is not of that day or side, the length is not
            positive, or a value is not finite.
    """
    threads = live_threads([thread], [obs], [0])
    batch = thread_features(threads, ObservationBatch.of([obs]), *histories([thread], [0]))
    history, mask = batch.padded(2 * thread.n_rounds if length is None else length)
    return OneThread(history[0], mask[0], batch.ranges[0], batch.x_thread[0], batch.x_partner[0])

"""Signatures of partners: running statistics of what each offered and how it answered us, over all days.

`Signatures` takes the events of threads in order: the partners' offers as we get to answer them, with our proposals
that they refuse, and how the threads ended; all threads of a round at once. A live agent and a reader of records feed
the same events, so that a network sees in play exactly the features that it was trained on. An offer that nobody could
answer (in the last round) is not an event: a live agent never learns of it. Ids are not read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import log1p
from typing import Final, NamedTuple

import numpy as np

from ..arrays import Array, Bools, Floats, Floats32, Ints
from ..columns import Batch

__all__ = ["FEATURES", "LEFT_BEFORE", "Frames", "Signatures", "as_markdown", "signature_digest"]

LEFT_BEFORE: Final = 0.9
"""A thread that fails while our proposal is outstanding was left by the partner if its relative time was below this;
later, its rounds ran out."""

_VERSION: Final = 1
"""Grows when a feature changes its meaning but not its name."""

FEATURES: Final = {
    "offers": "log(1 + offers of the partner that we answered) / 4",
    "answers": "log(1 + our proposals that it answered) / 4",
    "threads": "log(1 + threads that ended by agreement, or with our proposal outstanding) / 4",
    "price": "mean price of its offers as a position in its favour: 0 the worst legal price for it, 1 the best",
    "price_spread": "standard deviation of that position",
    "first_price": "mean position of its first offer of a thread",
    "late_price": "mean position of its offers in the second half of a thread",
    "quantity": "mean quantity of its offers over our lines, at most 3",
    "quantity_spread": "standard deviation of that",
    "large": "share of its offers of more units than we have lines",
    "small": "share of its offers of at most 15 % of our lines",
    "first_quantity": "mean quantity of its first offer of a thread over our lines",
    "lead": "mean days until delivery of its offers over the horizon",
    "lead_spread": "standard deviation of that",
    "today": "share of its offers for delivery today",
    "price_move": "mean absolute move of the position from one offer of a thread to the next",
    "concedes": "share of those moves against its favour",
    "retracts": "share in its favour",
    "repeats": "share without any move",
    "reversals": "share that turn the direction of the last move",
    "same_quantity": "share of offers with the quantity of the one before",
    "same_lead": "share of offers for the delivery day of the one before",
    "accepts": "share of our proposals that it accepted",
    "accepts_worst": "share accepted among those in the worst quarter of prices for it",
    "accepts_best": "share accepted among those in the best fifth of prices for it",
    "accepts_today": "share accepted among those for delivery today",
    "accepts_later": "share accepted among those for a later day",
    "accepts_large": "share accepted among those of more than 75 % of our lines",
    "accepts_small": "share accepted among those of at most 20 % of our lines",
    "accepted_time": "mean relative time of what it accepted",
    "accepted_price": "mean position in its favour of what it accepted",
    "ended_by_it": "share of threads that it ended by accepting",
    "ended_by_us": "share of threads that we ended by accepting",
    "left": "share of threads that it left before the end",
    "ran_out": "share of threads whose rounds ran out",
    "deals": "log(1 + our proposals that it accepted) / 3",
    "selling": "1 if we sell to it, 0 if we buy from it",
    "edge": "1 if it is at an end of the chain, where its need is exogenous",
    "opens": "1 if we open the threads, 0 if it does",
}
"""Names and meanings of the features, in order. Shares and means start from a prior that counts as one observation."""


def signature_digest() -> str:
    """Return the SHA-256 of the features' names and version; weights carry it."""
    return hashlib.sha256(f"{_VERSION} {' '.join(FEATURES)}".encode()).hexdigest()


def as_markdown() -> str:
    """Return the documentation's table: every feature with its meaning."""
    return "\n".join(
        ["| feature | meaning |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in FEATURES.items())]
    )


@dataclass(frozen=True, slots=True, eq=False)
class Frames(Batch):
    """What makes offers of R sides and days comparable with those of other days, sides and worlds, ``[R]`` each.

    Attributes:
        day: Today.
        horizon: Days ahead that deliveries can be agreed for.
        n_lines: Our production lines.
        price_min: Lowest legal price today.
        price_max: Highest legal price today.
        selling: Whether we sell.
        origin: No units, today and the lowest price, ``[R, 3]``.
        unit: Our lines, the horizon and the band of prices, ``[R, 3]``; negative where less is in the partner's favour,
            the price of a sale.
        shift: 1 there, else 0, ``[R, 3]``.
    """

    day: Ints
    horizon: Ints
    n_lines: Ints
    price_min: Ints
    price_max: Ints
    selling: Bools
    origin: Floats
    unit: Floats
    shift: Floats

    @classmethod
    def of(cls, day: Ints, horizon: Ints, n_lines: Ints, price_min: Ints, price_max: Ints, selling: Bools) -> Frames:
        """Return frames from the facts of days."""
        origin, shift, unit = np.zeros((3, len(day), 3))
        origin[:, 1], origin[:, 2], shift[:, 2] = day, price_min, selling
        unit[:, 0], unit[:, 1], unit[:, 2] = n_lines, np.maximum(1, horizon), np.maximum(1, price_max - price_min)
        unit *= 1.0 - 2.0 * shift
        return cls(day, horizon, n_lines, price_min, price_max, selling, origin, unit, shift)

    def terms(self, offer: Ints) -> Floats:
        """Return offers ``[…, N, 3]`` without units: quantity, lead, and position of the price in the partner's favour.

        There is a frame for each of the N, or one for all.
        """
        terms = offer - self.origin
        terms /= self.unit
        terms += self.shift
        return np.asarray(np.minimum(np.maximum(terms, _LEAST, out=terms), _MOST, out=terms))


_LEAST, _MOST = np.array([0.0, -np.inf, 0.0]), np.array([3.0, np.inf, 1.0])

_PRIORS: Final = {
    "quantity": 0.5, "lead": 0.3, "price": 0.6, "quantity_square": 0.35, "lead_square": 0.15, "price_square": 0.4,
    "large": 0.2, "small": 0.2, "today": 0.4,
    "late_price": 0.5, "first_quantity": 0.5, "first_price": 0.7,
    "price_move": 0.2, "concedes": 0.3, "retracts": 0.2, "repeats": 0.5, "same_quantity": 0.5, "same_lead": 0.5,
    "reversals": 0.1,
    "accepts": 0.1, "accepts_worst": 0.1, "accepts_best": 0.2, "accepts_today": 0.1, "accepts_later": 0.1,
    "accepts_large": 0.1, "accepts_small": 0.15, "accepted_time": 0.5, "accepted_price": 0.5,
    "ended_by_it": 0.2, "ended_by_us": 0.2, "left": 0.3, "ran_out": 0.3,
}  # fmt: skip
"""Priors of the running means, each counting as one observation; groups that change together are adjacent."""
_COLUMN: Final = {name: index for index, name in enumerate(_PRIORS)}
_PRIOR: Final = np.array(list(_PRIORS.values()))
_N: Final = len(_PRIORS)


def _columns(first: str, last: str) -> slice:
    return slice(_COLUMN[first], _COLUMN[last] + 1)


_OFFER: Final = _columns("quantity", "today")
_LATE: Final = _COLUMN["late_price"]
_FIRST: Final = _columns("first_quantity", "first_price")
_MOVE: Final = _columns("price_move", "reversals")
_ANSWER: Final = _columns("accepts", "accepts_small")
_TAKEN: Final = _columns("accepted_time", "accepted_price")
_ENDS: Final = _columns("ended_by_it", "ran_out")
_SAME: Final = 1e-9  # moves and differences below this count as none
_INF: Final = float("inf")


def _above(value: float) -> float:
    return float(np.nextafter(value, np.inf))


def _below(value: float) -> float:
    return float(np.nextafter(value, -np.inf))


class _Ranges(NamedTuple):
    """Questions of values ``[R, V]``: whether one of them lies in a range, ends included.

    Attributes:
        value: The value that each question is about, ``[Q]``.
        low: Lower ends, ``[Q]``.
        high: Upper ends, ``[Q]``.
    """

    value: Ints
    low: Floats
    high: Floats

    @classmethod
    def of(cls, *rows: tuple[int, float, float]) -> _Ranges:
        """Stack questions."""
        value, low, high = zip(*rows, strict=True)
        return cls(np.array(value), np.array(low), np.array(high))

    def __call__(self, values: Floats) -> Bools:
        """Answer the questions, ``[R, Q]``; no range holds NaN."""
        asked = values.take(self.value, axis=1)
        return np.asarray((asked >= self.low) & (asked <= self.high))


_KINDS: Final = ((0, _above(1.0), _INF), (0, -_INF, 0.15), (1, 0.0, 0.0))
"""Of terms (quantity, lead, price) of a partner's offer: large, small, today."""
_MOVES: Final = (
    (5, -_INF, _below(-_SAME)),
    (5, _above(_SAME), _INF),
    (5, -_SAME, _SAME),
    (3, _above(-_SAME), _below(_SAME)),
    (4, _above(-_SAME), _below(_SAME)),
    (6, -_INF, _below(0.0)),
)
"""Of its move from the offer before (3 to 5), and of the product with the move before that (6): concedes, retracts,
repeats, same quantity, same lead, reversals."""
_CASES: Final = (
    (2, -_INF, _INF),
    (2, -_INF, 0.25),
    (2, 0.8, _INF),
    (1, 0.0, 0.0),
    (1, _above(0.0), _INF),
    (0, _above(0.75), _INF),
    (0, -_INF, 0.2),
)
"""Of terms of our proposal: the means from `accepts` to `accepts_small` that its answer counts for."""
_FIRST_OFFER, _NEXT_OFFER, _PROPOSAL = _Ranges.of(*_KINDS), _Ranges.of(*_KINDS, *_MOVES), _Ranges.of(*_CASES)
_START: Final = np.array([np.nan, np.nan, np.nan, 0.0])  # terms of the latest offer, and its latest move of the price


class Signatures:
    """Running statistics of N pairs of us and a partner on one side.

    Events of a thread come in order: `receive` as we decide, then `agree` or `fail`; `start_day` starts new threads.
    Pairs are given by index, each at most once per call; frames are those of the sides' days, a row for each pair or
    one for all.

    Args:
        n: Number of pairs.
    """

    def __init__(self, n: int) -> None:
        self._sums = np.zeros((n, 2 * _N))  # observations of each running mean, and their totals
        self._threads = np.tile(_START, (n, 1))

    def start_day(self, pairs: Array | slice) -> None:
        """Start the threads of a day of some pairs."""
        self._threads[pairs] = _START

    def receive(self, pairs: Ints, frames: Frames, offer: Ints, late: Bools, refused: Bools, proposal: Ints) -> None:
        """Take offers of partners, at the moment that we answer them; each refuses our outstanding proposal.

        Args:
            pairs: The pairs, ``[R]``.
            frames: The sides' days.
            offer: The offers, ``[R, 3]``.
            late: Whether the partners made them in the second half of the thread, ``[R]``.
            refused: Whether there is an outstanding proposal, ``[R]``.
            proposal: These proposals, ``[R, 3]``.
        """
        sums = np.zeros((len(pairs), 2 * _N))
        count, total = sums[:, :_N], sums[:, _N:]
        if np.count_nonzero(refused):
            terms, ours = frames.terms(np.array([offer, proposal]))
            count[:, _ANSWER] = _PROPOSAL(ours) & refused[:, None]
        else:
            terms = frames.terms(offer)
        thread = self._threads.take(pairs, axis=0)
        # [R, 7] the offers, their moves from the offers before, and the products with the moves before those
        values = np.empty((len(pairs), 7))
        values[:, :3] = terms
        np.subtract(terms, thread[:, :3], out=values[:, 3:6])
        np.multiply(values[:, 5], thread[:, 3], out=values[:, 6])
        count[:, _OFFER] = 1.0
        total[:, :3] = terms
        np.multiply(terms, terms, out=total[:, 3:6])
        if np.count_nonzero(late):
            count[:, _LATE], total[:, _LATE] = late, late * terms[:, 2]
        first = np.isnan(thread[:, 0])
        number = np.count_nonzero(first)
        if number == len(pairs):
            total[:, 6:9] = _FIRST_OFFER(values)
        else:
            answers = _NEXT_OFFER(values)
            total[:, 6:9], total[:, _MOVE][:, 1:] = answers[:, :3], answers[:, 3:]
            move = values[:, 5]
            if number:
                move[first] = 0.0
            count[:, _MOVE] = ~first[:, None]
            np.abs(move, out=total[:, _MOVE.start])
            np.copyto(thread[:, 3], move, where=move != 0.0)
        if number:
            count[:, _FIRST], total[:, _FIRST] = first[:, None], first[:, None] * terms[:, ::2]
        self._sums[pairs] += sums
        thread[:, :3] = terms
        self._threads[pairs] = thread

    def agree(self, pairs: Ints, frames: Frames, offer: Ints, time: Floats, by_it: Bools) -> None:
        """Take agreements: a partner accepted our outstanding proposal, or we its offer.

        Args:
            pairs: The pairs, ``[R]``.
            frames: The sides' days.
            offer: The agreements, ``[R, 3]``.
            time: Relative times of our proposals (`l1.baseline.progress`), ``[R]``.
            by_it: Whether it was our outstanding proposal, ``[R]``.
        """
        sums = np.zeros((len(pairs), 2 * _N))
        if np.count_nonzero(by_it):
            count, total, terms = sums[:, :_N], sums[:, _N:], frames.terms(offer)
            count[:, _ANSWER] = total[:, _ANSWER] = _PROPOSAL(terms) & by_it[:, None]
            count[:, _TAKEN] = by_it[:, None]
            total[:, _TAKEN.start], total[:, _TAKEN.start + 1] = by_it * time, by_it * terms[:, 2]
        self._end(pairs, sums, np.where(by_it, 0, 1))

    def fail(self, pairs: Ints, frames: Frames, proposal: Ints, time: Floats) -> None:
        """Take the end of threads without agreement while our proposal was outstanding; others say nothing.

        Args:
            pairs: The pairs, ``[R]``.
            frames: The sides' days.
            proposal: The outstanding proposals, ``[R, 3]``.
            time: Their relative times (`l1.baseline.progress`), ``[R]``.
        """
        sums = np.zeros((len(pairs), 2 * _N))
        sums[:, _ANSWER] = _PROPOSAL(frames.terms(proposal))
        self._end(pairs, sums, np.where(time < LEFT_BEFORE, 2, 3))

    def _end(self, pairs: Ints, sums: Floats, how: Ints) -> None:
        """Take how threads ended, an index in the order of the columns of _ENDS, beside other events."""
        sums[:, _ENDS] = 1.0
        sums[:, _N:][:, _ENDS] = _HOW[how]
        self._sums[pairs] += sums
        self._threads[pairs] = _START

    def features(self, pairs: Ints, *, selling: Array | bool, edge: Array, opens: Array) -> Floats32:
        """Return the features of pairs in the order of `FEATURES`, ``[R, F]``.

        Args:
            pairs: The pairs, ``[R]``.
            selling: Whether we sell to the partner.
            edge: Whether it is at an end of the chain.
            opens: Whether we open the threads.
        """
        sums = self._sums.take(pairs, axis=0)
        # [R, …] the means, and what follows from them and from the sums
        pool = np.empty((len(pairs), _N + 10))
        means = np.divide(sums[:, _N:] + _PRIOR, sums[:, :_N] + _ONE, out=pool[:, :_N])
        spread = pool[:, _N : _N + 3]
        np.subtract(means[:, 3:6], np.multiply(means[:, :3], means[:, :3], out=spread), out=spread)
        np.sqrt(np.maximum(_NONE, spread, out=spread), out=spread)
        counts = sums.take(_LOGS, axis=1).astype(np.int64)
        np.divide(_LOG1P.take(counts, mode="clip"), _LOG_UNITS, out=pool[:, _N + 3 : _N + 7])
        pool[:, _N + 7], pool[:, _N + 8], pool[:, _N + 9] = selling, edge, opens
        return pool.take(_ORDER, axis=1).astype(np.float32)


_NONE, _ONE = np.array(0.0), np.array(1.0)  # arrays, because a ufunc takes a Python number in twice the time
_HOW: Final = np.eye(4)  # an end of a thread as the columns of _ENDS
_LOGS: Final = np.array([0, _ANSWER.start, _COLUMN["left"], _N + _ANSWER.start])  # sums whose logarithms are features
# Python's own logarithm, not numpy's, whose last bit depends on the vector instructions of the machine; no pair of a
# season has more events
_LOG1P: Final = np.array([log1p(number) for number in range(1 << 15)])
_LOG_UNITS: Final = np.array([4.0, 4.0, 4.0, 3.0])
_DERIVED: Final = (
    *("quantity_spread", "lead_spread", "price_spread"),
    *("offers", "answers", "threads", "deals"),
    *("selling", "edge", "opens"),
)
_POOL: Final = {name: index for index, name in enumerate((*_PRIORS, *_DERIVED))}
_ORDER: Final = np.array([_POOL[name] for name in FEATURES])  # [F] the column of the pool of each feature

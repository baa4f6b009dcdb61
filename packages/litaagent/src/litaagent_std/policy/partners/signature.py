"""Signatures of partners: running statistics of what each offered and how it answered us, over all days.

`Signatures` takes the events of threads in order: the partners' offers as we get to answer them, our own proposals, and
how the threads ended; all threads of a round at once. A live agent and a reader of records feed the same events, so
that a network sees in play exactly the features that it was trained on. An offer that nobody could answer (in the last
round) is not an event: a live agent never learns of it. Ids are not read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import log1p
from typing import Final, NamedTuple

import numpy as np

from ..arrays import Array, Bools, Floats, Floats32, Ints, every_term, true_rows
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
        origin: Lowest price, no units and today, ``[R, 3]``.
        unit: The band of prices, our lines and the horizon, ``[R, 3]``.
        sign: -1 where less is in the partner's favour, the price of a sale, else 1, ``[R, 3]``.
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
    sign: Floats
    shift: Floats

    @classmethod
    def of(cls, day: Ints, horizon: Ints, n_lines: Ints, price_min: Ints, price_max: Ints, selling: Bools) -> Frames:
        """Return frames from the facts of days."""
        origin, shift, unit = np.zeros((3, len(day), 3))
        origin[:, 0], origin[:, 2], shift[:, 0] = price_min, day, selling
        unit[:, 0], unit[:, 1], unit[:, 2] = np.maximum(1, price_max - price_min), n_lines, np.maximum(1, horizon)
        return cls(day, horizon, n_lines, price_min, price_max, selling, origin, unit, 1.0 - 2.0 * shift, shift)

    def terms(self, offer: Ints) -> Floats:
        """Return offers ``[N, 3]`` without units: position of the price in the partner's favour, quantity and lead.

        There is a frame for each offer, or one for all.
        """
        terms = offer.take(_PRICE_FIRST, axis=1) - self.origin
        terms /= self.unit
        terms *= self.sign
        terms += self.shift
        return np.asarray(np.minimum(np.maximum(terms, _LEAST, out=terms), _MOST, out=terms))


_PRICE_FIRST: Final = np.array([2, 0, 1])
_LEAST, _MOST = np.array([0.0, 0.0, -np.inf]), np.array([1.0, 3.0, np.inf])

_PRIORS: Final = {
    "price": 0.6, "quantity": 0.5, "lead": 0.3, "price_square": 0.4, "quantity_square": 0.35, "lead_square": 0.15,
    "large": 0.2, "small": 0.2, "today": 0.4,
    "late_price": 0.5, "first_price": 0.7, "first_quantity": 0.5,
    "price_move": 0.2, "concedes": 0.3, "retracts": 0.2, "repeats": 0.5, "reversals": 0.1,
    "same_quantity": 0.5, "same_lead": 0.5,
    "accepts": 0.1, "accepts_worst": 0.1, "accepts_best": 0.2, "accepts_today": 0.1, "accepts_later": 0.1,
    "accepts_large": 0.1, "accepts_small": 0.15, "accepted_time": 0.5, "accepted_price": 0.5,
    "ended_by_it": 0.2, "ended_by_us": 0.2, "left": 0.3, "ran_out": 0.3,
}  # fmt: skip
"""Priors of the running means, each counting as one observation; groups that change together are adjacent."""
_COLUMN: Final = {name: index for index, name in enumerate(_PRIORS)}
_PRIOR: Final = np.array(list(_PRIORS.values()))
_N: Final = len(_PRIORS)
_LATE, _ACCEPTS, _TAKEN = _COLUMN["late_price"], _COLUMN["accepts"], _COLUMN["accepted_time"]
_FIRST: Final = slice(_COLUMN["first_price"], _COLUMN["first_quantity"] + 1)
_MOVE: Final = slice(_COLUMN["price_move"], _COLUMN["same_lead"] + 1)
_ENDS: Final = slice(_COLUMN["ended_by_it"], _COLUMN["ran_out"] + 1)
_SAME: Final = 1e-9  # moves and differences below this count as none


def _above(value: float) -> float:
    return float(np.nextafter(value, np.inf))


def _below(value: float) -> float:
    return float(np.nextafter(value, -np.inf))


class _Ranges(NamedTuple):
    """Questions of terms ``[R, 3]`` (price, quantity, lead): whether one of them lies in a range, ends included.

    Attributes:
        term: The term that each question is about, ``[Q]``.
        low: Lower ends, ``[Q]``.
        high: Upper ends, ``[Q]``.
    """

    term: Ints
    low: Floats
    high: Floats

    @classmethod
    def of(cls, *rows: tuple[int, float, float]) -> _Ranges:
        """Stack questions."""
        term, low, high = zip(*rows, strict=True)
        return cls(np.array(term), np.array(low), np.array(high))

    def __call__(self, values: Floats) -> Bools:
        """Answer the questions of values that were taken by `term`, ``[R, Q]``."""
        return np.asarray((values >= self.low) & (values <= self.high))


_INF: Final = float("inf")
# of an offer: large, small, today
_KINDS: Final = _Ranges.of((1, _above(1.0), _INF), (1, -_INF, 0.15), (2, 0.0, 0.0))
# of a move: concedes, retracts, repeats, reversals (of the product with the move before), same quantity, same lead
_MOVES: Final = _Ranges.of(
    (0, -_INF, _below(-_SAME)),
    (0, _above(_SAME), _INF),
    (0, -_SAME, _SAME),
    (0, -_INF, _below(0.0)),
    (1, _above(-_SAME), _below(_SAME)),
    (2, _above(-_SAME), _below(_SAME)),
)
# of our proposal, the means from `accepts` to `accepted_price` that its acceptance counts for
_CASES: Final = _Ranges.of(
    (0, -_INF, _INF),
    (0, -_INF, 0.25),
    (0, 0.8, _INF),
    (2, 0.0, 0.0),
    (2, _above(0.0), _INF),
    (1, _above(0.75), _INF),
    (1, -_INF, 0.2),
    (0, -_INF, _INF),
    (0, -_INF, _INF),
)

# columns of the state of a pair's thread
_DAY, _PENDING, _MOVED = 0, 1, 2
_PREVIOUS: Final = slice(3, 6)  # the terms of the partner's latest offer; NaN before the first
_RECEIVED: Final = slice(6, 9)  # that offer
_PROPOSAL: Final = slice(9, 12)  # our latest proposal
_PRICE, _TIME = 12, 15  # the first of its terms, and its relative time
_COUNTS: Final = slice(16, 25)  # what its acceptance counts for (_CASES)
_ANSWERED: Final = slice(16, 23)  # what its refusal counts for: all of these but time and price of acceptance
_START: Final = np.array([-1.0, 0.0, 0.0, *[np.nan] * 3, *[-1.0] * 3, *[0.0] * 16])
_THREAD: Final = slice(_PENDING, 9)  # what a new thread resets


class Signatures:
    """Running statistics of N pairs of us and a partner on one side.

    Events of a thread come in order: `propose` and `receive` as we decide, then `agree` or `fail`. A new day starts a
    new thread. Pairs are given by index, each at most once per call.

    Args:
        n: Number of pairs.
    """

    def __init__(self, n: int) -> None:
        self._sums = np.zeros((n, 2 * _N))  # observations of each running mean, and their totals
        self._state = np.tile(_START, (n, 1))

    def _today(self, pairs: Ints, day: Array) -> Floats:
        """Return the states of pairs' threads of today, ``[R, 25]``."""
        state = self._state.take(pairs, axis=0)
        new = true_rows(state[:, _DAY] != day)
        if len(new):
            state[new, _THREAD] = _START[_THREAD]
            state[:, _DAY] = day
        return state

    def receive(self, pairs: Ints, frames: Frames, offer: Ints, late: Bools) -> None:
        """Take offers of partners, at the moment that we answer them; each refuses our outstanding proposal.

        Args:
            pairs: The pairs, ``[R]``.
            frames: The sides' days, R rows or one for all.
            offer: The offers, ``[R, 3]``.
            late: Whether the partners made them in the second half of the thread, ``[R]``.
        """
        state, terms = self._today(pairs, frames.day), frames.terms(offer)
        sums = np.zeros((len(pairs), 2 * _N))
        count, total = sums[:, :_N], sums[:, _N:]
        # what every offer shows, in the order of the columns
        count[:, :_LATE] = 1.0
        total[:, :3] = terms
        np.multiply(terms, terms, out=total[:, 3:6])
        total[:, 6:9] = _KINDS(terms.take(_KINDS.term, axis=1))
        if np.count_nonzero(late):
            count[:, _LATE], total[:, _LATE] = late, late * terms[:, 0]
        first = np.isnan(state[:, 3])
        number = np.count_nonzero(first)
        if number:
            count[:, _FIRST], total[:, _FIRST] = first[:, None], first[:, None] * terms[:, :2]
        if number < len(pairs):
            self._moved(state, terms, ~first if number else None, count, total)
        if np.count_nonzero(state[:, _PENDING]):  # a refusal
            np.multiply(state[:, _ANSWERED], state[:, _PENDING, None], out=count[:, _ACCEPTS:_TAKEN])
        self._sums[pairs] += sums
        state[:, _PENDING], state[:, _PREVIOUS], state[:, _RECEIVED] = 0.0, terms, offer
        self._state[pairs] = state

    @staticmethod
    def _moved(state: Floats, terms: Floats, there: Bools | None, count: Floats, total: Floats) -> None:
        """Take the change from one offer of each partner to the next, where there is one before (None: everywhere)."""
        change = terms - state[:, _PREVIOUS]
        if there is not None:
            change[~there] = 0.0
        moves = change.take(_MOVES.term, axis=1)
        moves[:, 3] *= state[:, _MOVED]
        count[:, _MOVE], values = 1.0, total[:, _MOVE]
        np.abs(change[:, 0], out=values[:, 0])
        values[:, 1:] = _MOVES(moves)
        if there is not None:
            count[:, _MOVE] *= there[:, None]
            values *= there[:, None]
        move = change[:, 0]
        state[:, _MOVED] = np.where(move != 0.0, move, state[:, _MOVED])

    def propose(self, pairs: Ints, frames: Frames, offer: Ints, time: Floats) -> None:
        """Take our own proposals; a partner's own offer back is none.

        Args:
            pairs: The pairs, ``[R]``.
            frames: The sides' days, R rows or one for all.
            offer: The proposals, ``[R, 3]``.
            time: Relative times of the threads (`l1.baseline.progress`), ``[R]``.
        """
        state, terms = self._today(pairs, frames.day), frames.terms(offer)
        back = true_rows(every_term(offer == state[:, _RECEIVED]))
        kept = state[back]
        state[:, _PENDING], state[:, _PROPOSAL], state[:, _PRICE:_TIME], state[:, _TIME] = 1.0, offer, terms, time
        state[:, _COUNTS] = _CASES(terms.take(_CASES.term, axis=1))
        if len(back):
            state[back] = kept
        self._state[pairs] = state

    def agree(self, pairs: Ints, offer: Ints) -> None:
        """Take the threads' agreements ``[R, 3]``: a partner accepted our outstanding proposal, or we its offer."""
        state = self._state[pairs]
        by_it = (state[:, _PENDING] > 0.0) & every_term(state[:, _PROPOSAL] == offer)
        sums = np.zeros((len(pairs), 2 * _N))
        if np.count_nonzero(by_it):
            count, total = sums[:, :_N], sums[:, _N:]
            count[:, _ACCEPTS : _TAKEN + 2] = state[:, _COUNTS] * by_it[:, None]
            total[:, _ACCEPTS:_TAKEN] = count[:, _ACCEPTS:_TAKEN]
            total[:, _TAKEN], total[:, _TAKEN + 1] = by_it * state[:, _TIME], by_it * state[:, _PRICE]
        self._end(pairs, sums, np.where(by_it, 0, 1))

    def fail(self, pairs: Ints) -> None:
        """Take the end of threads without agreement; only those with an outstanding proposal say something."""
        pairs = pairs[self._state[pairs, _PENDING] > 0.0]
        state, sums = self._state[pairs], np.zeros((len(pairs), 2 * _N))
        sums[:, _ACCEPTS:_TAKEN] = state[:, _ANSWERED]
        self._end(pairs, sums, np.where(state[:, _TIME] < LEFT_BEFORE, 2, 3))

    def _end(self, pairs: Ints, sums: Floats, how: Ints) -> None:
        """Take how threads ended, an index in the order of the columns of _ENDS, beside other events."""
        sums[:, _ENDS] = 1.0
        sums[:, _N:][:, _ENDS] = _HOW[how]
        self._sums[pairs] += sums
        self._state[pairs, _THREAD] = _START[_THREAD]

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
        means = np.divide(sums[:, _N:] + _PRIOR, sums[:, :_N] + 1.0, out=pool[:, :_N])
        spread = means[:, :3] * means[:, :3]
        np.maximum(0.0, np.subtract(means[:, 3:6], spread, out=spread), out=spread)
        np.sqrt(spread, out=pool[:, _N : _N + 3])
        counts = np.minimum(sums.take(_LOGS, axis=1), len(_LOG1P) - 1).astype(np.int64)
        np.divide(_LOG1P.take(counts), _LOG_UNITS, out=pool[:, _N + 3 : _N + 7])
        pool[:, _N + 7], pool[:, _N + 8], pool[:, _N + 9] = selling, edge, opens
        return pool.take(_ORDER, axis=1).astype(np.float32)


_HOW: Final = np.eye(4)  # an end of a thread as the columns of _ENDS
_LOGS: Final = np.array([0, _ACCEPTS, _COLUMN["left"], _N + _ACCEPTS])  # sums whose logarithms are features
# Python's own logarithm, not numpy's, whose last bit depends on the vector instructions of the machine; no pair of a
# season has more events
_LOG1P: Final = np.array([log1p(number) for number in range(1 << 15)])
_LOG_UNITS: Final = np.array([4.0, 4.0, 4.0, 3.0])
_DERIVED: Final = (
    *("price_spread", "quantity_spread", "lead_spread"),
    *("offers", "answers", "threads", "deals"),
    *("selling", "edge", "opens"),
)
_POOL: Final = {name: index for index, name in enumerate((*_PRIORS, *_DERIVED))}
_ORDER: Final = np.array([_POOL[name] for name in FEATURES])  # [F] the column of the pool of each feature

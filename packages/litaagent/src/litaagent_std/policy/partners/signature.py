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
from typing import Final

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
        n_rounds: Rounds allowed per thread.
        selling: Whether we sell.
    """

    day: Ints
    horizon: Ints
    n_lines: Ints
    price_min: Ints
    price_max: Ints
    n_rounds: Ints
    selling: Bools

    def terms(self, offer: Ints) -> Floats:
        """Return offers ``[R, 3]`` without units: position of the price in the partner's favour, quantity and lead."""
        terms = np.empty((len(offer), 3))
        position = (offer[:, 2] - self.price_min) / np.maximum(1, self.price_max - self.price_min)
        terms[:, 0] = np.minimum(1.0, np.maximum(0.0, np.where(self.selling, 1.0 - position, position)))
        terms[:, 1] = np.minimum(3.0, offer[:, 0] / self.n_lines)
        terms[:, 2] = (offer[:, 1] - self.day) / np.maximum(1, self.horizon)
        return terms


_PRIORS: Final = {
    "price": 0.6, "price_square": 0.4, "quantity": 0.5, "quantity_square": 0.35, "large": 0.2, "small": 0.2,
    "lead": 0.3, "lead_square": 0.15, "today": 0.4,
    "first_price": 0.7, "first_quantity": 0.5, "late_price": 0.5,
    "price_move": 0.2, "concedes": 0.3, "retracts": 0.2, "repeats": 0.5, "reversals": 0.1,
    "same_quantity": 0.5, "same_lead": 0.5,
    "accepts": 0.1, "accepts_worst": 0.1, "accepts_best": 0.2, "accepts_today": 0.1, "accepts_later": 0.1,
    "accepts_large": 0.1, "accepts_small": 0.15, "accepted_time": 0.5, "accepted_price": 0.5,
    "ended_by_it": 0.2, "ended_by_us": 0.2, "left": 0.3, "ran_out": 0.3,
}  # fmt: skip
"""Priors of the running means, each counting as one observation; groups that change together are adjacent."""
_COLUMN: Final = {name: index for index, name in enumerate(_PRIORS)}
_PRIOR: Final = np.array(list(_PRIORS.values()))
_OFFER: Final = slice(_COLUMN["price"], _COLUMN["today"] + 1)
_FIRST: Final = slice(_COLUMN["first_price"], _COLUMN["first_quantity"] + 1)
_MOVE: Final = slice(_COLUMN["price_move"], _COLUMN["same_lead"] + 1)
_ENDS: Final = slice(_COLUMN["ended_by_it"], _COLUMN["ran_out"] + 1)
_SAME: Final = 1e-9  # moves and differences below this count as none
_MEANS: Final = [_COLUMN.get(name, 0) for name in FEATURES]  # [F] the running mean of each feature that is one


class Signatures:
    """Running statistics of N pairs of us and a partner on one side.

    Events of a thread come in order: `propose` and `receive` as we decide, then `agree` or `fail`. A new day starts a
    new thread. Pairs are given by index, each at most once per call.

    Args:
        n: Number of pairs.
    """

    def __init__(self, n: int) -> None:
        self._count, self._total = np.zeros((n, len(_PRIORS))), np.zeros((n, len(_PRIORS)))
        self._day = np.full(n, -1)
        self._pending = np.zeros(n, np.bool_)  # whether a proposal of ours is outstanding
        self._proposal = np.zeros((n, 3), np.int64)
        self._proposed = np.zeros((n, 4))  # its terms, and its relative time
        self._received = np.full((n, 3), -1)  # the partner's latest offer
        self._previous = np.full((n, 3), np.nan)  # its terms
        self._move = np.zeros(n)  # the partner's last move of the price that was none of 0

    def _start(self, pairs: Ints, day: Array) -> None:
        """Start threads."""
        self._day[pairs] = day
        self._pending[pairs] = False
        self._received[pairs] = -1
        self._previous[pairs] = np.nan
        self._move[pairs] = 0.0

    def _start_new(self, pairs: Ints, day: Ints) -> None:
        new = self._day[pairs] != day
        if new.any():
            self._start(pairs[new], day[new])

    def _add(self, pairs: Ints, columns: slice | int, values: Array | float) -> None:
        self._count[pairs, columns] += 1.0
        self._total[pairs, columns] += values

    def receive(self, pairs: Ints, frames: Frames, offer: Ints, round_: Ints) -> None:
        """Take offers of partners, at the moment that we answer them; each refuses our outstanding proposal.

        Args:
            pairs: The pairs, ``[R]``.
            frames: The sides' days.
            offer: The offers, ``[R, 3]``.
            round_: The rounds in which the partners made them, ``[R]``.
        """
        self._start_new(pairs, frames.day)
        self._answer(pairs[self._pending[pairs]], accepted=False)
        self._pending[pairs], self._received[pairs] = False, offer
        terms = frames.terms(offer)
        position, share, lead = terms.T
        values = np.empty((len(pairs), 9))  # in the order of _OFFER
        values[:, 0], values[:, 1], values[:, 2], values[:, 3] = position, position * position, share, share * share
        values[:, 4], values[:, 5] = share > 1.0, share <= 0.15
        values[:, 6], values[:, 7], values[:, 8] = lead, lead * lead, lead == 0.0
        self._add(pairs, _OFFER, values)
        late = 2 * round_ > frames.n_rounds
        if late.any():
            self._add(pairs[late], _COLUMN["late_price"], position[late])
        first = np.isnan(self._previous[pairs, 0])
        if first.any():
            self._add(pairs[first], _FIRST, terms[first, :2])
        if not first.all():
            self._moved(pairs[~first], terms[~first])
        self._previous[pairs] = terms

    def _moved(self, pairs: Ints, terms: Floats) -> None:
        """Take the change from one offer of each partner to the next."""
        change = terms - self._previous[pairs]
        move = change[:, 0]
        values = np.empty((len(pairs), 7))  # in the order of _MOVE
        values[:, 0] = size = np.abs(move)
        values[:, 1], values[:, 2], values[:, 3] = move < -_SAME, move > _SAME, size <= _SAME
        values[:, 4] = move * self._move[pairs] < 0.0
        values[:, 5:] = np.abs(change[:, 1:]) < _SAME
        self._add(pairs, _MOVE, values)
        self._move[pairs] = np.where(move != 0.0, move, self._move[pairs])

    def propose(self, pairs: Ints, frames: Frames, offer: Ints, time: Floats) -> None:
        """Take our own proposals; a partner's own offer back is none.

        Args:
            pairs: The pairs, ``[R]``.
            frames: The sides' days.
            offer: The proposals, ``[R, 3]``.
            time: Relative times of the threads (`l1.baseline.progress`), ``[R]``.
        """
        self._start_new(pairs, frames.day)
        new = (offer != self._received[pairs]).any(1)
        if not new.all():
            pairs, frames, offer, time = pairs[new], frames.take(new), offer[new], time[new]
        self._pending[pairs], self._proposal[pairs] = True, offer
        self._proposed[pairs, :3], self._proposed[pairs, 3] = frames.terms(offer), time

    def agree(self, pairs: Ints, offer: Ints) -> None:
        """Take the threads' agreements ``[R, 3]``: a partner accepted our outstanding proposal, or we its offer."""
        by_it = self._pending[pairs] & (self._proposal[pairs] == offer).all(1)
        self._answer(pairs[by_it], accepted=True)
        self._end(pairs, np.where(by_it, 0, 1))

    def fail(self, pairs: Ints) -> None:
        """Take the end of threads without agreement; only those with an outstanding proposal say something."""
        pairs = pairs[self._pending[pairs]]
        self._answer(pairs, accepted=False)
        self._end(pairs, np.where(self._proposed[pairs, 3] < LEFT_BEFORE, 2, 3))

    def _end(self, pairs: Ints, how: Ints) -> None:
        """Take how threads ended, an index in the order of the columns of _ENDS."""
        self._add(pairs, _ENDS, np.arange(4) == how[:, None])
        self._start(pairs, self._day[pairs])

    def _answer(self, pairs: Ints, *, accepted: bool) -> None:
        """Take the partners' answers to our outstanding proposals."""
        if not len(pairs):
            return
        position, share, lead, time = self._proposed[pairs].T
        taken = float(accepted)
        self._add(pairs, _COLUMN["accepts"], taken)
        worst, large = position <= 0.25, share > 0.75
        cases = {
            "accepts_worst": worst,
            "accepts_best": ~worst & (position >= 0.8),
            "accepts_today": lead == 0.0,
            "accepts_later": lead != 0.0,
            "accepts_large": large,
            "accepts_small": ~large & (share <= 0.2),
        }
        for name, rows in cases.items():
            if rows.any():
                self._add(pairs[rows], _COLUMN[name], taken)
        if accepted:
            self._add(pairs, _COLUMN["accepted_time"], time)
            self._add(pairs, _COLUMN["accepted_price"], position)

    def features(self, pairs: Ints, *, selling: Array | bool, edge: Array, opens: Array) -> Floats32:
        """Return the features of pairs in the order of `FEATURES`, ``[R, F]``.

        Args:
            pairs: The pairs, ``[R]``.
            selling: Whether we sell to the partner.
            edge: Whether it is at an end of the chain.
            opens: Whether we open the threads.
        """
        count, total = self._count[pairs], self._total[pairs]
        means = (total + _PRIOR) / (count + 1.0)  # [R, means]
        values = means[:, _MEANS]
        logs = {"offers": count[:, 0], "answers": count[:, _COLUMN["accepts"]], "threads": count[:, _COLUMN["left"]]}
        for name, numbers in logs.items():
            values[:, _FEATURE[name]] = [log1p(number) / 4 for number in numbers.tolist()]
        values[:, _FEATURE["deals"]] = [log1p(number) / 3 for number in total[:, _COLUMN["accepts"]].tolist()]
        for name in ("price", "quantity", "lead"):
            mean = means[:, _COLUMN[name]]
            square = means[:, _COLUMN[f"{name}_square"]]
            values[:, _FEATURE[f"{name}_spread"]] = np.sqrt(np.maximum(0.0, square - mean * mean))
        for name, facts in (("selling", selling), ("edge", edge), ("opens", opens)):
            values[:, _FEATURE[name]] = facts
        return np.asarray(values, np.float32)


_FEATURE: Final = {name: index for index, name in enumerate(FEATURES)}

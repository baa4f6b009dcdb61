"""The signature of a partner: running statistics of what it offered and how it answered us, over all days.

`Signature` takes the events of a thread in order: the partner's offers as we get to answer them, our own proposals, and
how the thread ended. A live agent and a reader of records feed the same events, so that a network sees in play exactly
the features that it was trained on. An offer that nobody could answer (in the last round) is not an event: a live agent
never learns of it. Ids are not read.
"""

from __future__ import annotations

import hashlib
from math import log1p, sqrt
from typing import Final, NamedTuple

from ..observation import Offer

__all__ = ["FEATURES", "LEFT_BEFORE", "Frame", "Signature", "as_markdown", "signature_digest"]

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


class Frame(NamedTuple):
    """What makes offers of a side and day comparable with those of other days, sides and worlds.

    Attributes:
        day: Today.
        horizon: Days ahead that deliveries can be agreed for.
        n_lines: Our production lines.
        price_min: Lowest legal price today.
        price_max: Highest legal price today.
        n_rounds: Rounds allowed per thread.
        selling: Whether we sell.
    """

    day: int
    horizon: int
    n_lines: int
    price_min: int
    price_max: int
    n_rounds: int
    selling: bool

    def terms(self, offer: Offer) -> tuple[float, float, float]:
        """Return an offer without units: price position in the partner's favour, quantity share, lead share."""
        position = (offer.price - self.price_min) / max(1, self.price_max - self.price_min)
        position = min(1.0, max(0.0, 1.0 - position if self.selling else position))
        return position, min(3.0, offer.quantity / self.n_lines), (offer.time - self.day) / max(1, self.horizon)


class _Pending(NamedTuple):
    """Our outstanding proposal, its terms and its relative time."""

    offer: Offer
    position: float
    share: float
    lead: float
    time: float


class _Mean:
    """A running mean that starts from a prior, which counts as one observation."""

    __slots__ = ("count", "prior", "total")

    def __init__(self, prior: float) -> None:
        self.count, self.total, self.prior = 0.0, 0.0, prior

    def add(self, value: float) -> None:
        self.count += 1.0
        self.total += value

    @property
    def value(self) -> float:
        return (self.total + self.prior) / (self.count + 1.0)


_PRIORS: Final = {
    "price": 0.6, "price_square": 0.4, "first_price": 0.7, "late_price": 0.5,
    "quantity": 0.5, "quantity_square": 0.35, "large": 0.2, "small": 0.2, "first_quantity": 0.5,
    "lead": 0.3, "lead_square": 0.15, "today": 0.4,
    "price_move": 0.2, "concedes": 0.3, "retracts": 0.2, "repeats": 0.5, "reversals": 0.1,
    "same_quantity": 0.5, "same_lead": 0.5,
    "accepts": 0.1, "accepts_worst": 0.1, "accepts_best": 0.2, "accepts_today": 0.1, "accepts_later": 0.1,
    "accepts_large": 0.1, "accepts_small": 0.15, "accepted_time": 0.5, "accepted_price": 0.5,
    "ended_by_it": 0.2, "ended_by_us": 0.2, "left": 0.3, "ran_out": 0.3,
}  # fmt: skip
"""Priors of the running means."""
_ENDS: Final = ("ended_by_it", "ended_by_us", "left", "ran_out")
_SAME: Final = 1e-9  # moves and differences below this count as none


class Signature:
    """Running statistics of one partner on one side.

    Events of a thread come in order: `propose` and `receive` as we decide, then `agree` or `fail`. A new day starts a
    new thread.
    """

    __slots__ = ("_day", "_means", "_move", "_pending", "_previous", "_received")

    def __init__(self) -> None:
        self._means = {name: _Mean(prior) for name, prior in _PRIORS.items()}
        self._day = -1
        self._start(-1)

    def _start(self, day: int) -> None:
        """Start a thread."""
        self._day = day
        self._pending: _Pending | None = None
        self._received: Offer | None = None
        self._previous: tuple[float, float, float] | None = None  # terms of the partner's last offer
        self._move = 0.0  # its last move of the price that was none of 0

    def receive(self, frame: Frame, offer: Offer, round_: int) -> None:
        """Take an offer of the partner, at the moment that we answer it; it refuses our outstanding proposal.

        Args:
            frame: The side's day.
            offer: The offer.
            round_: The round in which the partner made it.
        """
        if frame.day != self._day:
            self._start(frame.day)
        if self._pending is not None:
            self._answer(self._pending, accepted=False)
        self._pending, self._received = None, offer
        position, share, lead = terms = frame.terms(offer)
        means = self._means
        means["price"].add(position)
        means["price_square"].add(position * position)
        means["quantity"].add(share)
        means["quantity_square"].add(share * share)
        means["large"].add(share > 1.0)
        means["small"].add(share <= 0.15)
        means["lead"].add(lead)
        means["lead_square"].add(lead * lead)
        means["today"].add(lead == 0.0)
        if 2 * round_ > frame.n_rounds:
            means["late_price"].add(position)
        if self._previous is None:
            means["first_price"].add(position)
            means["first_quantity"].add(share)
        else:
            self._moved(self._previous, terms)
        self._previous = terms

    def _moved(self, before: tuple[float, float, float], now: tuple[float, float, float]) -> None:
        """Take the change from one offer of the partner to the next."""
        means, move = self._means, now[0] - before[0]
        means["price_move"].add(abs(move))
        means["concedes"].add(move < -_SAME)
        means["retracts"].add(move > _SAME)
        means["repeats"].add(abs(move) <= _SAME)
        means["reversals"].add(move * self._move < 0.0)
        means["same_quantity"].add(abs(now[1] - before[1]) < _SAME)
        means["same_lead"].add(abs(now[2] - before[2]) < _SAME)
        if move:
            self._move = move

    def propose(self, frame: Frame, offer: Offer, time: float) -> None:
        """Take our own proposal; the partner's own offer back is none.

        Args:
            frame: The side's day.
            offer: The proposal.
            time: Relative time of the thread (`l1.baseline.progress`).
        """
        if frame.day != self._day:
            self._start(frame.day)
        if offer != self._received:
            self._pending = _Pending(offer, *frame.terms(offer), time)

    def agree(self, offer: Offer) -> None:
        """Take the thread's agreement: the partner accepted our outstanding proposal, or we its offer."""
        pending = self._pending
        if pending is not None and pending.offer == offer:
            self._answer(pending, accepted=True)
            self._end("ended_by_it")
        else:
            self._end("ended_by_us")

    def fail(self) -> None:
        """Take the end of a thread without agreement; only one with an outstanding proposal says something."""
        pending = self._pending
        if pending is not None:
            self._answer(pending, accepted=False)
            self._end("left" if pending.time < LEFT_BEFORE else "ran_out")

    def _end(self, how: str) -> None:
        for name in _ENDS:
            self._means[name].add(name == how)
        self._start(self._day)

    def _answer(self, pending: _Pending, *, accepted: bool) -> None:
        """Take the partner's answer to one of our proposals."""
        means = self._means
        means["accepts"].add(accepted)
        if pending.position <= 0.25:
            means["accepts_worst"].add(accepted)
        elif pending.position >= 0.8:
            means["accepts_best"].add(accepted)
        means["accepts_today" if pending.lead == 0.0 else "accepts_later"].add(accepted)
        if pending.share > 0.75:
            means["accepts_large"].add(accepted)
        elif pending.share <= 0.2:
            means["accepts_small"].add(accepted)
        if accepted:
            means["accepted_time"].add(pending.time)
            means["accepted_price"].add(pending.position)

    def features(self, *, selling: bool, edge: bool, opens: bool) -> list[float]:
        """Return the features in the order of `FEATURES`.

        Args:
            selling: Whether we sell to the partner.
            edge: Whether it is at an end of the chain.
            opens: Whether we open the threads.
        """
        means = self._means
        values = {name: mean.value for name, mean in means.items()}
        values["offers"] = log1p(means["price"].count) / 4
        values["answers"] = log1p(means["accepts"].count) / 4
        values["threads"] = log1p(means["left"].count) / 4
        values["deals"] = log1p(means["accepts"].total) / 3
        for name in ("price", "quantity", "lead"):
            mean = values[name]
            values[f"{name}_spread"] = sqrt(max(0.0, values[f"{name}_square"] - mean * mean))
        values["selling"], values["edge"], values["opens"] = float(selling), float(edge), float(opens)
        return [values[name] for name in FEATURES]

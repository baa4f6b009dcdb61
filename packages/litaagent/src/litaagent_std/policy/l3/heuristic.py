"""L3, heuristic: the probability that a partner accepts an offer.

Most partners in the league are its own default agents, whose rules of acceptance are simple. `archetypes` states the
rules as probabilities of acceptance for any offers at once; `Mixture` is a belief over the archetypes, updated by
Bayes' rule with partners' replies (tempered, because replies within a day are correlated). `Acceptance` joins a belief
with what partners refused today.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from ..arrays import Array, Bools, Floats, Ints, true_rows
from ..columns import SELL, Batch, ObservationBatch
from ..l1.baseline import power

__all__ = [
    "ARCHETYPES",
    "Acceptance",
    "Belief",
    "Clock",
    "Market",
    "Mixture",
    "Offers",
    "archetypes",
    "by_price",
    "by_quantity",
    "early",
    "mixed",
    "soften",
]

ARCHETYPES: Final = ("random", "greedy", "sharing", "able")
"""Types of partners: accepts one offer in ten; bargains over the price and takes up to 3/4 of its lines; distributes
its need over its partners and buys ahead at the lowest price only; a strong competitor who accepts little."""
PRIOR: Final = (0.28, 0.28, 0.28, 0.16)
"""Belief about a partner before its first reply."""
LARGE_OFFER: Final = (0.65, 0.03, 0.3, 0.04)
"""How often each archetype offers more units than a factory has lines."""

# arrays, because a ufunc takes a Python number in twice the time
_LEAST, _MOST = np.array(0.002), np.array(0.97)  # no probability of acceptance is more extreme
_ONE, _LOW, _HIGH = np.array(1.0), np.array(-30.0), np.array(30.0)
_WIDTHS = np.array([[0.06], [0.05]])  # over which a bargaining and a sharing partner's limits are softened
_HALF_WIDTH, _QUARTER_WIDTH = 0.5 * _WIDTHS, 0.25 * _WIDTHS


@dataclass(frozen=True, slots=True, eq=False)
class Market(Batch):
    """What decides about offers on one side of B factories' days, ``[B]`` each.

    Attributes:
        day: Today.
        n_lines: Our lines.
        n_leads: Delivery days that can be agreed for.
        quantity_min: The smallest offer that is considered.
        quantity_max: The largest: no deal of more units than our lines.
        price_min: The lowest legal price.
        price_max: The highest.
        edge: Whether the partners are at an end of the chain, where their need is exogenous.
    """

    day: Ints
    n_lines: Ints
    n_leads: Ints
    quantity_min: Ints
    quantity_max: Ints
    price_min: Ints
    price_max: Ints
    edge: Bools

    @classmethod
    def of(cls, obs: ObservationBatch, side: int) -> Market:
        """Return the markets of days."""
        agenda = obs.agenda[:, side]
        edge = obs.level == (obs.n_levels - 2 if side == SELL else 1)
        return cls(
            obs.day,
            obs.n_lines,
            np.maximum(1, np.minimum(obs.horizon, agenda[:, 3] - obs.day) + 1),
            np.maximum(1, agenda[:, 0]),
            np.maximum(agenda[:, 0], np.minimum(agenda[:, 1], obs.n_lines)),
            agenda[:, 4],
            agenda[:, 5],
            np.asarray(edge),
        )


@dataclass(slots=True, eq=False)
class Offers:
    """R offers of one side.

    Attributes:
        market: Their markets, R rows, or one for all.
        lead: Days until delivery, ``[R]``.
        quantity: Units, ``[R]``.
        price: Unit price, ``[R]``.
    """

    market: Market
    lead: Ints
    quantity: Ints
    price: Ints

    def known(self) -> Bools:
        """Return which offers the model knows: those that we would make, ``[R]``."""
        m = self.market
        return np.asarray(
            (self.lead >= 0)
            & (self.lead < m.n_leads)
            & (self.quantity >= m.quantity_min)
            & (self.quantity <= m.quantity_max)
            & (self.price >= m.price_min)
            & (self.price <= m.price_max)
        )


class Clock(NamedTuple):
    """Relative times with their powers, ``[R]`` each.

    Attributes:
        time: The relative times.
        rest: ``(1 - time) ** 0.6``.
        square: ``time ** 2``.
    """

    time: Floats
    rest: Floats
    square: Floats

    @classmethod
    def of(cls, time: Floats) -> Clock:
        """Compute the powers."""
        return cls(time, power(1.0 - time, np.full(len(time), 0.6)), power(time, np.full(len(time), 2)))

    def take(self, rows: Array) -> Clock:
        """Return some rows."""
        return Clock(self.time[rows], self.rest[rows], self.square[rows])


def archetypes(offers: Offers, clock: Clock, *, selling: bool) -> Floats:
    """Return the probability that each archetype accepts each offer, ``[4, R]``.

    Args:
        offers: The offers.
        clock: Relative times of their threads, R rows, or one for all.
        selling: Whether we sell.
    """
    m, lead, price = offers.market, offers.lead, offers.price
    sized, priced = by_quantity(m, lead, offers.quantity, selling=selling), by_price(m, lead, price, selling=selling)
    moving = np.empty((4, len(lead)))
    moving[0], moving[3] = priced[1], priced[3]
    soften(priced[0], clock, out=moving[1:3])
    sized[3] *= early(clock, selling=selling)
    return mixed(sized, moving, priced[2], out=np.empty((4, len(lead))))


def by_quantity(market: Market, lead: Ints, quantity: Ints, *, selling: bool) -> Floats:
    """Return what decides about offers by their delivery days and quantities, ``[4, …]``, of any shapes that broadcast.

    The rows are the probability of a bargaining partner for a later day, if the price is right; and the factors of the
    greedy, the sharing and the able archetype of what changes over the rounds (`soften`, `early`).
    """
    edge, later = market.edge, np.asarray(lead != 0)
    share = quantity / market.n_lines  # of our lines
    small = (share <= 0.75).astype(np.float64)
    # The days of a bargaining partner fill up from the near ones, and a full day takes only a few units more.
    booked = np.where(edge & selling, 9.0 - 0.75 * lead, 4.0 - 0.3 * lead)
    out = np.empty((4, *np.broadcast_shapes(lead.shape, share.shape)))
    out[0] = later * small * np.minimum(1.0, 1.6 * np.exp(-np.maximum(0.5, booked) * share))
    if selling:
        out[1] = ~later * small * np.where(edge, 0.05 * (1.0 - share), 0.95)
        out[2] = ~(later | edge) * 0.9 * (share <= 0.2)
        out[3] = 0.1 * (share <= 0.5)
    else:
        out[1] = ~later * np.where(edge, 0.8 - 0.4 * share, small)
        out[2] = ~later * 0.9
        out[3] = 0.3 * (share <= 0.4)
    return out


def by_price(market: Market, lead: Ints, price: Ints, *, selling: bool) -> Floats:
    """Return what decides about offers by their delivery days and prices, ``[4, …]``, of any shapes that broadcast.

    The rows are the price position in the partner's favour; whether the price is right for a bargaining partner on a
    later day; and the probabilities of the sharing and the able archetype that do not change over the rounds.
    """
    m, edge, later = market, market.edge, np.asarray(lead != 0)
    position = (price - m.price_min) / np.maximum(1, m.price_max - m.price_min)
    concession = 1.0 - position if selling else position
    best = concession >= 0.999
    # A bargaining partner pays or takes within the last tenth of the band for later days.
    low = (0.9 * m.price_max).astype(np.int64)
    band = 0.9 * (m.price_max - low)
    out = np.empty((4, *np.broadcast_shapes(lead.shape, concession.shape)))
    out[0] = concession
    out[1] = price <= m.price_max - band if selling else price >= low + band
    if selling:
        ahead = np.where(later & best, np.where(edge, 0.9, 0.15) * np.exp(-0.12 * lead), 0.0)
        out[2] = ahead + np.where(edge & ~later, np.where(best, 0.15, 0.01), 0.0)
        out[3] = 0.02 + 0.05 * concession
    else:
        out[2] = np.where(later & best, np.where(edge, 0.1, 0.75), 0.0)
        out[3] = 0.03 + 0.1 * concession
    return out


def soften(concession: Floats, clock: Clock, *, out: Floats) -> None:
    """Write how far a bargaining and a sharing partner have conceded to prices at relative times, ``[2, …]``.

    Args:
        concession: Price positions in the partner's favour, of a shape that broadcasts with the times.
        clock: The relative times.
        out: Steps from 0 to 1 at the partner's limit, softened over a width.
    """
    np.subtract(concession, clock.rest, out=out[0])
    np.add(np.subtract(concession, _ONE, out=out[1]), clock.square, out=out[1])
    rows = out.reshape(2, -1)  # a view
    np.divide(np.add(rows, _HALF_WIDTH, out=rows), _QUARTER_WIDTH, out=rows)
    np.minimum(np.maximum(rows, _LOW, out=rows), _HIGH, out=rows)
    np.exp(np.negative(rows, out=rows), out=rows)
    np.divide(_ONE, np.add(_ONE, rows, out=rows), out=rows)


def early(clock: Clock, *, selling: bool) -> Bools:
    """Return at which relative times an able partner accepts little less than its best."""
    return np.asarray(clock.time < (0.1 if selling else 0.2))


def mixed(sized: Floats, priced: Floats, ahead: Floats, *, out: Floats) -> Floats:
    """Return the probability that each archetype accepts each offer, ``[4, R]``.

    Args:
        sized: `by_quantity` of the offers, the last row only where it is `early`, ``[4, R]``; it is consumed.
        priced: Of the offers, row 1 of `by_price`, the rows of `soften`, and row 3 of `by_price`, ``[4, R]``.
        ahead: Row 2 of `by_price`, ``[R]``.
        out: Where the result is written, in the order of `ARCHETYPES`.
    """
    np.multiply(sized[:3], priced[:3], out=sized[:3])
    out[0] = 0.1
    np.add(sized[0], sized[1], out=out[1])
    np.add(ahead, sized[2], out=out[2])
    np.add(priced[3], sized[3], out=out[3])
    return np.asarray(np.minimum(np.maximum(out, _LEAST, out=out), _MOST, out=out))


class Belief(Protocol):
    """Who the partners of a side are: a weight for each archetype.

    Attributes:
        by_replies: Whether replies and offers update it.
    """

    by_replies: bool

    def weights(self, partner: Ints) -> Floats:
        """Return the weights of partners by their index, ``[R, 4]``; a row sums to 1."""

    def observe_replies(self, partner: Ints, likelihood: Floats, *, accepted: bool) -> None:
        """Update from replies to our proposals.

        Args:
            partner: Partners by index, each once, ``[R]``.
            likelihood: Each archetype's probability of accepting, ``[R, 4]``.
            accepted: Whether they accepted.
        """

    def observe_offers(self, partner: Ints, large: Bools) -> None:
        """Update from partners' own offers, each partner once; `large` says whether one exceeds our lines."""


class Mixture:
    """A belief updated by Bayes' rule.

    Args:
        rate: Weight of one refusal or offer as evidence, from 0 (none) to 1 (independent evidence), ``[N]``.
    """

    by_replies = True

    def __init__(self, rate: Floats) -> None:
        self._log_weights = np.tile(np.log(np.array(PRIOR)), (len(rate), 1))  # [N, 4]
        self._rate = rate
        large = np.array(LARGE_OFFER)
        self._size = np.log(np.stack([1.0 - large, large]))  # [2, 4] evidence of a small and of a large offer

    def weights(self, partner: Ints) -> Floats:
        """Return the weights of partners; see `Belief`."""
        logs = self._log_weights[partner]
        shifted = np.exp(logs - logs.max(1)[:, None])
        total = shifted[:, 0] + shifted[:, 1] + shifted[:, 2] + shifted[:, 3]
        return np.asarray(shifted / total[:, None])

    def observe_replies(self, partner: Ints, likelihood: Floats, *, accepted: bool) -> None:
        """Update from replies; see `Belief`."""
        evidence = np.log(likelihood if accepted else 1.0 - likelihood)
        self._update(partner, evidence if accepted else evidence * self._rate[partner][:, None])

    def observe_offers(self, partner: Ints, large: Bools) -> None:
        """Update from the size of partners' own offers; see `Belief`."""
        self._update(partner, self._rate[partner][:, None] * self._size[large.astype(np.int64)])

    def _update(self, partner: Ints, evidence: Floats) -> None:
        # Weights are bounded below, so that a partner who changes is recognised again.
        logs = self._log_weights[partner] + evidence
        self._log_weights[partner] = np.maximum(logs - logs.max(1)[:, None], -6.0)


class Acceptance:
    """The probability that partners of one side accept offers, for n factories with up to P partners each.

    Partners are indexed by ``factory · P + partner``. Those that do not accept at random rarely accept today what is no
    better than what they refused today.

    Args:
        belief: Who the partners are.
        n: Number of factories.
        width: P.
        leads: Number of delivery days.
        lines: The most lines of a factory.
        selling: Which side this is.
    """

    def __init__(self, belief: Belief, n: int, width: int, leads: int, lines: int, *, selling: bool) -> None:
        self.belief, self._selling, self._width = belief, selling, width
        # By partner, lead and quantity: the price in our favour from which an offer was refused today.
        self._shape, self._quantities = (leads, lines + 1), np.arange(lines + 1)
        self._refused = np.full((n * width * leads, lines + 1), np.inf)
        self._any_refused = np.zeros(n * width, np.bool_)

    def start_day(self, seats: Array | slice) -> None:
        """Forget what was refused on an earlier day."""
        shape = (-1, self._width)
        some = np.arange(len(self._any_refused)).reshape(shape)[seats].ravel()
        some = some[self._any_refused[some]]
        if len(some):
            self._refused.reshape(-1, *self._shape)[some], self._any_refused[some] = np.inf, False

    def observe(self, partner: Ints, offers: Offers, time: Floats, *, accepted: bool) -> None:
        """Update from partners' replies to our proposals, each partner once.

        Args:
            partner: The partners, ``[R]``.
            offers: Our proposals.
            time: Relative times at which they were made, ``[R]``.
            accepted: Whether they were accepted.
        """
        known = offers.known()
        rows = true_rows(known)
        if len(rows) < len(known):
            if not len(rows):
                return
            market = offers.market if len(offers.market.day) == 1 else offers.market.take(rows)
            offers = Offers(market, offers.lead[rows], offers.quantity[rows], offers.price[rows])
            partner, time = partner[rows], time[rows]
        if self.belief.by_replies:
            fresh = ~self._is_refused(partner, offers)  # a second refusal of the same shows nothing new
            likelihood = archetypes(offers, Clock.of(time), selling=self._selling).T  # [R, 4]
            self.belief.observe_replies(partner[fresh], likelihood[fresh], accepted=accepted)
        if not accepted:
            self._refuse(partner, offers)

    def _in_favour(self, price: Ints) -> Ints:
        return price if self._selling else -price

    def _is_refused(self, partner: Ints, offers: Offers) -> Bools:
        if not np.count_nonzero(self._any_refused[partner]):
            return np.zeros(len(partner), np.bool_)
        return np.asarray(self._in_favour(offers.price) >= self._limits(partner, offers.lead, offers.quantity))

    def _limits(self, partner: Ints, lead: Ints, quantity: Ints) -> Floats:
        """Return the prices in our favour from which offers were refused today, ``[R]``."""
        leads, quantities = self._shape
        return self._refused.reshape(-1).take((partner * leads + lead) * quantities + quantity)

    def _refuse(self, partner: Ints, offers: Offers) -> None:
        """Remember refusals: what is as dear, for as many units or more, for the same later day."""
        rows = true_rows(offers.lead != 0)
        if not len(rows):
            return
        who, lead = partner[rows], offers.lead[rows]
        index = who * self._shape[0] + lead
        limits = self._refused[index]  # [R, Q]
        worse = self._quantities >= offers.quantity[rows, None]
        price = self._in_favour(offers.price[rows, None])
        self._refused[index] = np.where(worse, np.minimum(limits, price), limits)
        self._any_refused[who] = True

    def probabilities(
        self, partner: Ints, weights: Floats, table: Floats, lead: Ints, quantity: Ints, price: Ints
    ) -> Floats:
        """Return the probability that partners accept offers, ``[R]``.

        Args:
            partner: The partner of each offer, ``[R]``, or one for all.
            weights: The belief about it, ``[4, R]``, or one for all.
            table: `archetypes` of the offers, ``[4, R]``.
            lead: Days until delivery, ``[R]``.
            quantity: Units.
            price: Unit price.
        """
        # [4, R] terms of the mixture; a sum over the first axis adds its rows in order
        terms = weights * table
        steady = np.add.reduce(terms[1:], axis=0)
        if np.count_nonzero(self._any_refused[partner]):
            refused = self._in_favour(price) >= self._limits(partner, lead, quantity)
            np.multiply(steady, 0.1, out=steady, where=refused)
        return np.asarray(np.add(terms[0], steady, out=steady))

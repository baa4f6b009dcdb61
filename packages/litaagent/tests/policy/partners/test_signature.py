"""Signatures count what a partner did, thread by thread; properties hold for any sequence of events."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.policy.observation import Offer
from litaagent_std.policy.partners.signature import FEATURES, Frames, Signatures, as_markdown, signature_digest

SIDE = {"selling": True, "edge": False, "opens": True}


ONE = np.array([0])
ROUNDS = 20


def frame(day=0, **changes):
    values = {"day": day, "horizon": 10, "n_lines": 10, "price_min": 20, "price_max": 30}
    return Frames.of(**{name: np.array([value]) for name, value in {**values, "selling": True, **changes}.items()})


class Signature:
    """One pair, with our proposal that is outstanding."""

    def __init__(self):
        self._pairs, self._frame, self._proposal, self._time = Signatures(1), frame(), None, 0.0

    def _at(self, frame):
        if frame.day[0] != self._frame.day[0]:
            self._pairs.start_day(ONE)
            self._proposal = None
        self._frame = frame

    def receive(self, frame, offer, round_):
        self._at(frame)
        late, refused = np.array([2 * round_ > ROUNDS]), np.array([self._proposal is not None])
        self._pairs.receive(ONE, frame, np.array([offer]), late, refused, np.array([self._proposal or (0, 0, 0)]))
        self._proposal = None

    def propose(self, frame, offer, time):
        self._at(frame)
        self._proposal, self._time = tuple(offer), time

    def agree(self, offer):
        by_it, time = np.array([self._proposal == tuple(offer)]), np.array([self._time])
        self._pairs.agree(ONE, self._frame, np.array([offer]), time, by_it)
        self._proposal = None

    def fail(self):
        if self._proposal is not None:
            self._pairs.fail(ONE, self._frame, np.array([self._proposal]), np.array([self._time]))
        self._proposal = None

    def features(self, **side):
        return self._pairs.features(ONE, **side)[0].tolist()


def named(signature, **side):
    return dict(zip(FEATURES, signature.features(**{**SIDE, **side}), strict=True))


def after_one(prior, *values):
    """The mean of values with a prior that counts as one of them, in single precision."""
    return float(np.float32((prior + sum(values)) / (1 + len(values))))


def test_a_new_signature_is_all_prior_and_its_side():
    values = named(Signature(), selling=False, edge=True)
    assert (values["offers"], values["answers"], values["threads"], values["deals"]) == (0, 0, 0, 0)
    assert (values["selling"], values["edge"], values["opens"]) == (0, 1, 1)
    assert values["price"] == after_one(0.6)


def test_prices_count_in_the_partners_favour():
    buyer, seller = Signature(), Signature()
    buyer.receive(frame(selling=True), Offer(5, 0, 20), 0)  # we sell: it bids the lowest price
    seller.receive(frame(selling=False), Offer(5, 0, 30), 0)  # we buy: it asks the highest
    for signature in (buyer, seller):
        values = named(signature)
        assert (values["price"], values["first_price"]) == (after_one(0.6, 1.0), after_one(0.7, 1.0))
        assert values["today"] == after_one(0.4, 1)


def test_moves_from_offer_to_offer():
    signature = Signature()
    for round_, price in enumerate((20, 22, 21, 21)):  # concedes, retracts, repeats
        signature.receive(frame(), Offer(5, 2, price), round_)
    values = named(signature)
    assert values["concedes"] == after_one(0.3, 1, 0, 0)
    assert values["retracts"] == after_one(0.2, 0, 1, 0)
    assert values["repeats"] == after_one(0.5, 0, 0, 1)
    assert values["reversals"] == after_one(0.1, 0, 1, 0)
    assert values["price_move"] == pytest.approx(after_one(0.2, 0.2, 0.1, 0.0))
    assert values["same_lead"] == values["same_quantity"] == after_one(0.5, 1, 1, 1)
    signature.receive(frame(day=1), Offer(5, 3, 30), 0)  # a new day starts a new thread: no move
    assert named(signature)["price_move"] == values["price_move"]


def test_an_offer_refuses_our_proposal_and_an_agreement_accepts_it():
    signature = Signature()
    signature.propose(frame(), Offer(9, 0, 30), 0.0)
    signature.receive(frame(), Offer(5, 0, 20), 0)
    signature.propose(frame(), Offer(2, 1, 20), 0.5)
    signature.agree(Offer(2, 1, 20))
    values = named(signature)
    assert values["accepts"] == after_one(0.1, 0, 1)
    assert values["accepts_worst"] == values["accepts_large"] == values["accepts_today"] == after_one(0.1, 0)
    assert values["accepts_later"] == after_one(0.1, 1)
    assert values["accepts_best"] == after_one(0.2, 1)
    assert (values["accepted_time"], values["accepted_price"]) == (after_one(0.5, 0.5), after_one(0.5, 1.0))
    assert values["ended_by_it"] == after_one(0.2, 1)
    assert values["deals"] == pytest.approx(math.log1p(1) / 3)


def test_our_acceptance_says_nothing_of_its_answers():
    signature = Signature()
    signature.receive(frame(), Offer(5, 0, 25), 0)
    signature.agree(Offer(5, 0, 25))
    values = named(signature)
    assert values["answers"] == 0
    assert values["ended_by_us"] == after_one(0.2, 1)


@pytest.mark.parametrize(("time", "name"), [(0.3, "left"), (0.95, "ran_out")])
def test_a_failure_with_our_proposal_outstanding_tells_who_ended_it(time, name):
    signature = Signature()
    signature.fail()  # nothing outstanding: we ended it
    assert named(signature)["threads"] == 0
    signature.propose(frame(), Offer(3, 0, 25), time)
    signature.fail()
    values = named(signature)
    assert values[name] == after_one(0.3, 1)
    assert values["accepts"] == after_one(0.1, 0)


OFFERS = st.builds(Offer, st.integers(1, 60), st.integers(0, 30), st.integers(0, 60))
EVENTS = st.lists(st.tuples(st.sampled_from(["receive", "propose", "agree", "fail"]), OFFERS, st.integers(0, 20)))


@given(EVENTS, st.booleans())
def test_any_events_give_finite_features_and_shares(events, selling):
    signature = Signature()
    for day, (event, offer, round_) in enumerate(events):
        now = frame(day // 3, selling=selling)
        if event == "receive":
            signature.receive(now, offer, round_)
        elif event == "propose":
            signature.propose(now, offer, round_ / 20)
        elif event == "agree":
            signature.agree(offer)
        else:
            signature.fail()
    values = named(signature)
    assert all(math.isfinite(value) for value in values.values())
    shares = [name for name, meaning in FEATURES.items() if meaning.startswith("share")]
    assert all(0.0 <= values[name] <= 1.0 for name in shares)


def test_pairs_are_counted_together_as_one_by_one():
    rng = np.random.default_rng(2)
    together, alone = Signatures(5), [Signature() for _ in range(5)]
    for day in range(4):
        together.start_day(slice(None))
        pending, proposals, times = np.zeros(5, bool), np.zeros((5, 3), int), np.zeros(5)
        frames = frame(day).take(np.zeros(5, int))
        for round_ in range(6):
            pairs = np.flatnonzero(rng.random(5) < 0.7)
            offers, mine = rng.integers((1, day, 20), (30, day + 5, 31), (2, len(pairs), 3))
            late = np.full(len(pairs), 2 * round_ > ROUNDS)
            together.receive(pairs, frames.take(pairs), offers, late, pending[pairs], proposals[pairs])
            pending[pairs], proposals[pairs], times[pairs] = True, mine, round_ / 19
            for row, pair in enumerate(pairs):
                alone[pair].receive(frame(day), offers[row], round_)
                alone[pair].propose(frame(day), mine[row], round_ / 19)
        agreed, failed = np.array([0, 1]), np.flatnonzero(pending & (np.arange(5) >= 2))
        deals = np.array([proposals[0], (2, 2, 2)])
        by_it = pending[agreed] & (deals == proposals[agreed]).all(1)
        together.agree(agreed, frames.take(agreed), deals, times[agreed], by_it)
        together.fail(failed, frames.take(failed), proposals[failed], times[failed])
        for pair in range(5):
            if pair < 2:
                alone[pair].agree(deals[pair])
            else:
                alone[pair].fail()
    rows = together.features(np.arange(5), **SIDE)
    assert rows.tolist() == [signature.features(**SIDE) for signature in alone]


def test_the_digest_names_the_features():
    assert len(signature_digest()) == 64
    page = Path(__file__).parents[5] / "docs" / "league" / "partners.md"
    assert as_markdown() in page.read_text(encoding="utf-8"), f"the page's table must be:\n{as_markdown()}"

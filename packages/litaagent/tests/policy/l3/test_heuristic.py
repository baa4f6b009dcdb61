import numpy as np
import pytest

from litaagent_std.policy.l3.heuristic import ARCHETYPES, Acceptance, Clock, Market, Mixture, Offers, archetypes
from litaagent_std.policy.observation import Offer

DAY, LEADS, LINES, LOW, HIGH = 5, 11, 10, 18, 22


def offers_of(*offers, edge=False):
    """Offers on one market."""
    table = np.array(offers)
    rows = [np.full(len(offers), value) for value in (DAY, LINES, LEADS, 1, LINES, LOW, HIGH, edge)]
    return Offers(Market(*rows), table[:, 1] - DAY, table[:, 0], table[:, 2])


def chance(offer, time, *, selling=True, edge=False):
    column = archetypes(offers_of(offer, edge=edge), Clock.of(np.array([time])), selling=selling)[:, 0]
    return dict(zip(ARCHETYPES, column.tolist(), strict=True))


def test_only_offers_that_we_would_make_are_known():
    known = offers_of((7, 9, 20), (11, 9, 20), (7, 4, 20), (7, 16, 20), (7, 9, 23), (0, 9, 20)).known()
    assert known.tolist() == [True, False, False, False, False, False]


def test_a_bargaining_buyer_of_today_gives_in_at_the_end():
    assert chance(Offer(7, 5, 22), 0.1)["greedy"] < 0.05
    assert chance(Offer(7, 5, 22), 1.0)["greedy"] > 0.8
    assert chance(Offer(8, 5, 18), 1.0)["greedy"] < 0.05  # more than three quarters of its lines


def test_a_bargaining_buyer_takes_later_deliveries_below_a_fixed_price():
    assert chance(Offer(2, 15, 22), 0.5)["greedy"] < 0.05
    assert chance(Offer(2, 15, 19), 0.5)["greedy"] > 0.8


def test_a_sharing_buyer_at_the_edge_buys_ahead_at_the_lowest_price_only():
    assert chance(Offer(10, 6, 18), 0.2, edge=True)["sharing"] > 0.5
    assert chance(Offer(10, 6, 19), 0.2, edge=True)["sharing"] < 0.05


def test_everybody_but_the_random_one_sells_today_at_the_highest_price():
    by_type = chance(Offer(5, 5, 22), 0.2, selling=False)
    assert by_type["greedy"] > 0.8
    assert by_type["sharing"] > 0.7
    assert by_type["random"] == pytest.approx(0.1)


@pytest.mark.parametrize("selling", [True, False])
def test_offers_of_different_markets_and_times_share_a_batch_bit_by_bit(selling):
    rng = np.random.default_rng(1)
    offers = [
        Offer(int(q), DAY + int(lead), int(price)) for q, lead, price in rng.integers((1, 0, 18), (11, 11, 23), (60, 3))
    ]
    edge, time = rng.random(60) < 0.5, rng.integers(0, 20, 60) / 19
    both = [offers_of(*offers, edge=at_edge) for at_edge in (False, True)]
    mixed = Offers(
        Market(*(getattr(both[0].market, name) for name in Market.__slots__[:-1]), edge),
        both[0].lead, both[0].quantity, both[0].price,
    )  # fmt: skip
    together = archetypes(mixed, Clock.of(time), selling=selling)
    for row, offer in enumerate(offers):
        alone = chance(offer, time[row], selling=selling, edge=bool(edge[row]))
        assert together[:, row].tolist() == list(alone.values())


def test_an_acceptance_at_the_top_price_gives_the_random_one_away():
    belief = Mixture(np.array([0.4, 0.4]))
    likely = np.array([list(chance(Offer(10, 15, 22), 0.3).values())])
    belief.observe_replies(np.array([1]), likely, accepted=True)
    weights = belief.weights(np.array([0, 1]))
    assert ARCHETYPES[int(weights[1].argmax())] == "random"
    assert weights.sum(1) == pytest.approx(1.0)
    assert weights[0].tolist() == pytest.approx([0.28, 0.28, 0.28, 0.16]), "the other partner is not concerned"


def test_beliefs_never_vanish():
    belief = Mixture(np.array([1.0]))
    for _ in range(200):
        belief.observe_offers(np.array([0]), np.array([True]))
    assert belief.weights(np.array([0])).min() > 0.001


def probabilities(acceptance, offers, time=0.5):
    table = archetypes(offers, Clock.of(np.array([time])), selling=True)
    one = np.array([0])
    return acceptance.probabilities(
        one, acceptance.belief.weights(one).T, table, offers.lead, offers.quantity, offers.price
    )


def test_what_is_no_better_than_a_refused_offer_is_known():
    acceptance = Acceptance(Mixture(np.array([0.0])), 1, 1, LEADS, LINES, selling=True)
    asked = offers_of((5, 9, 20), (6, 9, 21), (4, 9, 20), (5, 9, 19), (5, 10, 20), (5, 5, 20))
    before = probabilities(acceptance, asked)
    acceptance.observe(np.array([0]), offers_of((5, 9, 20)), np.array([0.5]), accepted=False)
    worse = probabilities(acceptance, asked) < before
    assert worse.tolist() == [True, True, False, False, False, False]
    acceptance.start_day(slice(None))
    assert probabilities(acceptance, asked).tolist() == before.tolist()

import numpy as np
import pytest

from litaagent_std.policy.l3.heuristic import ARCHETYPES, OfferGrid, PartnerModel, archetypes
from litaagent_std.policy.observation import Agenda, Offer

AGENDA = Agenda(1, 30, 5, 15, 18, 22)


def chance(offer, time, *, selling=True, edge=False):
    grid = OfferGrid.of(AGENDA, 5, 11, 10, selling=selling)
    column = archetypes(grid, time, selling=selling, edge=edge)[:, grid.index(offer, 5)]
    return dict(zip(ARCHETYPES, column, strict=True))


def test_the_grid_holds_every_offer_of_our_size_once():
    grid = OfferGrid.of(AGENDA, 5, 11, 10, selling=True)
    assert len(grid.lead) == 11 * 10 * 5
    assert grid.offer(grid.index(Offer(7, 9, 20), 5), 5) == Offer(7, 9, 20)
    assert grid.index(Offer(11, 9, 20), 5) is None


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
    found = chance(Offer(5, 5, 22), 0.2, selling=False)
    assert found["greedy"] > 0.8
    assert found["sharing"] > 0.7
    assert found["random"] == pytest.approx(0.1)


def test_an_acceptance_at_the_top_price_gives_the_random_one_away():
    model = PartnerModel(0.4)
    likely = np.array(list(chance(Offer(10, 15, 22), 0.3).values()))
    model.observe_reply(likely, accepted=True)
    assert ARCHETYPES[int(model.weights.argmax())] == "random"
    assert model.weights.sum() == pytest.approx(1.0)


def test_beliefs_never_vanish():
    model = PartnerModel(1.0)
    for _ in range(200):
        model.observe_offer(large=True)
    assert model.weights.min() > 0.001


def test_what_is_no_better_than_a_refused_offer_is_known():
    grid = OfferGrid.of(AGENDA, 5, 11, 10, selling=True)
    worse = grid.no_better(Offer(5, 9, 20), 5, selling=True)
    assert worse[grid.index(Offer(5, 9, 20), 5)]
    assert worse[grid.index(Offer(6, 9, 21), 5)]
    assert not worse[grid.index(Offer(4, 9, 20), 5)]
    assert not worse[grid.index(Offer(5, 9, 19), 5)]
    assert not worse[grid.index(Offer(5, 10, 20), 5)]

"""Offers cast to whole numbers, and the smoke check."""

import numpy as np
import pytest

from litaagent_std.tournament.competitors import integer_offers
from litaagent_std.tournament.competitors.integer_offers import integer_path, original_path
from litaagent_std.tournament.competitors.names import resolve
from litaagent_std.tournament.competitors.smoke import check_competitor
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup


def test_agents_of_the_league_play_with_whole_numbers_unless_told_otherwise():
    [cast], [shipped] = resolve(["top-2024:1"]), resolve(["top-2024:1"], integer_offers=False)
    assert cast.path == integer_path(shipped.path)
    assert original_path(cast.path) == shipped.path
    assert integer_path(cast.path) == cast.path
    loaded, original = cast.spec.load(), shipped.spec.load()
    assert issubclass(loaded, original)
    assert (loaded.__name__, loaded.__module__) == (original.__name__, original.__module__)
    assert cast.spec.load() is loaded, "one class, however often it is loaded"


def offers_of(path, watching_agents, record_world):
    setup = official_setup(21, n_days=5, n_levels=2).with_agents({0: AgentSpec(path)})
    turns = record_world(setup).tables["turns"].to_pylist()
    return [t for t in turns if t["factory"] == 0 and t["quantity"] is not None]


def test_fractions_are_dropped_from_offers_where_negmas_would_drop_the_offer(watching_agents, record_world):
    plain = offers_of("watching_agents.OffersFractions", watching_agents, record_world)
    cast = offers_of(integer_path("watching_agents.OffersFractions"), watching_agents, record_world)
    assert not plain
    assert len(cast) > 20


@pytest.mark.parametrize("agent", ["scml.std.agents.rand.SyncRandomStdAgent", "scml.std.agents.greedy.GreedyStdAgent"])
def test_casting_changes_nothing_for_agents_that_offer_whole_numbers(agent):
    setup = official_setup(22, n_days=6, n_levels=2)
    seats = range(0, setup.n_seats, 2)
    alone = run_world(setup.with_agents({seat: AgentSpec(agent) for seat in seats}))
    cast = run_world(setup.with_agents({seat: AgentSpec(integer_path(agent)) for seat in seats}))
    assert alone == cast


def test_numbers_of_numpy_are_cast_too():
    offer = integer_offers._whole((np.int64(3), np.int32(4), np.float64(5.7)))
    assert offer == (3, 4, 5)
    assert {type(value) for value in offer} == {int}


def test_casting_sync_agents_casts_first_proposals_and_counters(watching_agents, record_world):
    path = "watching_agents.SyncFractions"
    assert not offers_of(path, watching_agents, record_world)
    assert len(offers_of(integer_path(path), watching_agents, record_world)) > 20


def test_smoke_check_tells_players_from_failures(watching_agents):
    [good, bad] = resolve(["RandomStd", "watching_agents.Raises"])
    assert check_competitor(good).ok
    result = check_competitor(bad)
    assert not result.ok
    assert result.errors == 3

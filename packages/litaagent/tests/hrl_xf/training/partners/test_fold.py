"""Signatures from a record are those that the agent had in play, bit by bit; labels come from classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from litaagent_std.hrl_xf.training.partners.fold import COLUMNS, decisions, fold_world, type_of
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.partners.signature import FEATURES
from litaagent_std.policy.side import Side
from litaagent_std.world.setup import AgentSpec, official_setup

OURS = "litaagent_std.agents.hrl.LitaAgentHRL"


def setup_with_ours(seed, n_levels=3, n_days=12, **params):
    """A world of default agents with one of ours at each level."""
    setup = replace(official_setup(seed, n_days=n_days, n_levels=n_levels), neutral_names=True)
    seats = [next(s for s, f in enumerate(setup.factories) if f.level == level) for level in range(n_levels)]
    return setup.with_agents({seat: AgentSpec(OURS, params, competitor=True) for seat in seats}), seats


@pytest.fixture
def live(monkeypatch):
    """What our agents see in play: features and hand-written beliefs by level, day, partner and round."""
    features, beliefs = {}, {}
    observe, update = Side._observe_types, Side.on_counter_offers

    def observe_types(side, threads):
        observe(side, threads)
        for thread in threads if side._types is not None else ():
            values = side._signature(thread.partner).features(selling=side.selling, edge=side._edge, opens=thread.opens)
            features[side._obs.level, thread.day, thread.partner, thread.round] = values

    def on_counter_offers(side, threads):
        update(side, threads)
        for thread in threads if side._types is None else ():
            weights = side._model(thread.partner).weights
            beliefs[side._obs.level, thread.day, thread.partner, thread.round] = weights

    monkeypatch.setattr(Side, "_observe_types", observe_types)
    monkeypatch.setattr(Side, "on_counter_offers", on_counter_offers)
    return features, beliefs


@pytest.mark.parametrize(("seed", "inventory"), [(5, "as_shipped"), (6, "depleting")])
def test_features_of_a_record_are_those_in_play_bit_by_bit(record_world, live, seed, inventory):
    features, _ = live
    setup, seats = setup_with_ours(seed, l3="types")
    record = record_world(setup, inventory=inventory)
    seen = set()
    for view in decisions(record):
        me, partner = view.seats
        if me in seats:
            key = (record.factories[me]["level"], view.frame.day, record.names[partner], view.round)
            assert view.features() == features[key]
            seen.add(key)
    assert len(seen) > 400
    assert {key[3] for key in features.keys() - seen} <= {0}  # opened with nothing to offer: no turn


def test_the_recorded_mixture_is_the_one_in_play(record_world, live):
    _, beliefs = live
    setup, seats = setup_with_ours(7, l3="model")
    record = record_world(setup)
    compared = set()
    for view in decisions(record, mixture=True):
        me, partner = view.seats
        if me in seats:
            key = (record.factories[me]["level"], view.frame.day, record.names[partner], view.round)
            np.testing.assert_allclose(view.mixture.weights, beliefs[key], rtol=1e-9)
            compared.add(key)
        else:
            assert view.mixture is None  # a default agent
    assert len(compared) > 400
    assert {key[3] for key in beliefs.keys() - compared} <= {0}


def test_types_come_from_classes():
    assert [ARCHETYPES[type_of(f"scml.std.agents.{name}")] for name in (
        "rand.RandomStdAgent", "greedy.GreedyStdAgent", "rand.SyncRandomStdAgent"
    )] == ["random", "greedy", "sharing"]  # fmt: skip
    assert ARCHETYPES[type_of("scml_agents.scml2024.standard.team.PenguinAgent")] == "able"
    assert ARCHETYPES[type_of("my_module.GreedyStdAgent")] == "able"


def test_a_world_becomes_arrays_with_all_threads_of_the_first_days(record_world):
    setup, _ = setup_with_ours(8, n_days=8)
    record = record_world(setup)
    arrays = fold_world(record, mixture=True)
    assert {name: values.dtype.str.lstrip("<|") for name, values in arrays.items()}["features"] == "f4"
    assert arrays.keys() == COLUMNS.keys()
    assert arrays["features"].shape == (len(arrays["label"]), len(FEATURES))
    assert np.isfinite(arrays["features"]).all()
    first = (arrays["decision"] == 0) & (arrays["day"] == 0)
    threads = sum(1 for view in decisions(record) if view.decisions == 0 and view.frame.day == 0)
    assert first.sum() == threads
    computed = ~np.isnan(arrays["mixture"][:, 0])
    assert (computed == (arrays["observer"] > 0)).all()
    again = fold_world(record, mixture=True)
    assert all(np.array_equal(arrays[name], again[name], equal_nan=name == "mixture") for name in arrays)

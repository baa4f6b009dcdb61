"""Signatures from a record are those that the agent had in play, bit by bit; labels come from classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from litaagent_std.hrl_xf.training.partners.fold import COLUMNS, fold_world, snapshots, type_of
from litaagent_std.policy.brain import Side
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.partners.signature import FEATURES
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
    on_round = Side.on_round

    def watched(side, situation, index):
        on_round(side, situation, index)
        level = situation.day.live[0].level
        weights = side.acceptance.belief.weights(index)
        for row, thread in enumerate(situation.rows):
            key = (level, thread.day, thread.partner, thread.round)
            beliefs[key] = weights[row]
            if side._typed is not None:
                edge = side.market.edge[0]
                features[key] = side._typed.signatures.features(
                    index[[row]], selling=side.selling, edge=edge, opens=thread.opens
                )[0]

    monkeypatch.setattr(Side, "on_round", watched)
    return features, beliefs


def rows_of(record, made, seats):
    """The turns of some seats, each with the moment that the live agent noted."""
    for row, (me, partner) in enumerate(made.seats.tolist()):
        if me in seats:
            day, round_ = int(made.day[row]), int(made.round[row])
            yield row, (record.factories[me]["level"], day, record.names[partner], round_)


@pytest.mark.parametrize(("seed", "inventory"), [(5, "as_shipped"), (6, "depleting")])
def test_features_of_a_record_are_those_in_play_bit_by_bit(record_world, live, seed, inventory):
    features, _ = live
    setup, seats = setup_with_ours(seed, l3="types")
    record = record_world(setup, inventory=inventory)
    made, seen = snapshots(record), set()
    for row, key in rows_of(record, made, seats):
        assert made.features[row].tolist() == features[key].tolist()
        seen.add(key)
    assert len(seen) > 300
    assert {key[3] for key in features.keys() - seen} <= {0}  # opened with nothing to offer: no turn


def test_the_recorded_mixture_is_the_one_in_play(record_world, live):
    _, beliefs = live
    setup, seats = setup_with_ours(7, l3="model")
    record = record_world(setup)
    made, compared = snapshots(record, mixture=True), set()
    for row, key in rows_of(record, made, seats):
        np.testing.assert_allclose(made.mixture[row], beliefs[key], rtol=1e-9)
        compared.add(key)
    assert len(compared) > 300
    assert {key[3] for key in beliefs.keys() - compared} <= {0}
    default_agents = ~np.isin(made.seats[:, 0], seats)
    assert np.isnan(made.mixture[default_agents]).all()


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
    made = snapshots(record)
    assert first.sum() == ((made.decision == 0) & (made.day == 0)).sum()
    computed = ~np.isnan(arrays["mixture"][:, 0])
    assert (computed == (arrays["observer"] > 0)).all()
    again = fold_world(record, mixture=True)
    assert all(np.array_equal(arrays[name], again[name], equal_nan=name == "mixture") for name in arrays)

"""The network of types: a floor under every type, weights of the right kind, the shipped file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.learned import load_layers
from litaagent_std.policy.networks.weights import Weights, WeightsError, load_weights
from litaagent_std.policy.partners.signature import FEATURES, Frames, Signatures
from litaagent_std.policy.partners.types import FLOOR, SHIPPED, PartnerTypes, shipped_types


def test_the_shipped_network_gives_probabilities_with_a_floor():
    rows = np.random.default_rng(0).normal(size=(50, len(FEATURES))).astype(np.float32)
    posterior = shipped_types().of_features(rows)
    assert posterior.shape == (50, len(ARCHETYPES))
    np.testing.assert_allclose(posterior.sum(1), 1.0, atol=1e-6)
    assert posterior.min() >= FLOOR - 1e-9


def frames(day, count=1):
    return Frames.of(*(np.full(count, value) for value in (day, 10, 10, 20, 30, True)))


def test_partners_of_a_side_are_named_together_as_one_by_one():
    signatures, pairs = Signatures(3), np.arange(3)
    for round_ in range(4):
        offers = np.array([(12, 0, price) for price in (20, 25, 30)])
        signatures.receive(pairs, frames(0, 3), offers, np.full(3, 2 * round_ > 20), np.zeros(3, bool), offers)
    features = signatures.features(pairs, selling=True, edge=False, opens=False)
    together = shipped_types().of_features(features)
    alone = np.concatenate([shipped_types().of_features(features[[row]]) for row in range(3)])
    assert together.tolist() == alone.tolist(), "bit by bit"
    assert shipped_types().of_features(features[:0]).shape == (0, len(ARCHETYPES))


def test_a_back_and_forth_of_large_offers_is_random():
    signatures, one = Signatures(1), np.array([0])
    for day in range(6):
        signatures.start_day(one)
        for round_, (quantity, price) in enumerate([(25, 30), (3, 20), (18, 27), (28, 22), (9, 29), (30, 20)]):
            offer = np.array([[quantity, day + (7 * round_) % 10, price]])
            late, refused = np.array([2 * round_ > 20]), np.array([round_ > 0])
            signatures.receive(one, frames(day), offer, late, refused, np.array([[5, day + 1, 29]]))
    [posterior] = shipped_types().of_features(signatures.features(one, selling=True, edge=False, opens=False))
    assert ARCHETYPES[int(posterior.argmax())] == "random"


@pytest.mark.parametrize("change", [{"signature_digest": "other"}, {"types": ["a", "b"]}])
def test_weights_of_another_signature_are_refused(change):
    weights = load_weights(SHIPPED)
    with pytest.raises(WeightsError, match="another signature"):
        PartnerTypes(Weights(weights.arrays, {**weights.meta, **change}, "made"))


def test_a_folder_may_hold_the_network_alone():
    layers = load_layers(SHIPPED)
    assert layers.types is not None
    assert (layers.goal, layers.decision, layers.coordination) == (None, None, None)


def test_the_card_of_the_shipped_weights_says_how_they_were_made():
    card = json.loads(SHIPPED.with_suffix(".card.json").read_text())
    assert {"command", "seed", "data", "commit", "measured", "intended_use", "limits"} <= card.keys()

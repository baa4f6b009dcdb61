"""The network of types: a floor under every type, weights of the right kind, the shipped file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.learned import load_layers
from litaagent_std.policy.networks.weights import Weights, WeightsError, load_weights
from litaagent_std.policy.observation import Offer
from litaagent_std.policy.partners.signature import FEATURES, Frame, Signature
from litaagent_std.policy.partners.types import FLOOR, SHIPPED, PartnerTypes, shipped_types


def test_the_shipped_network_gives_probabilities_with_a_floor():
    rows = np.random.default_rng(0).normal(size=(50, len(FEATURES))).astype(np.float32)
    posterior = shipped_types().of_features(rows)
    assert posterior.shape == (50, len(ARCHETYPES))
    np.testing.assert_allclose(posterior.sum(1), 1.0, atol=1e-6)
    assert posterior.min() >= FLOOR - 1e-9


def test_partners_of_a_side_are_named_together_as_one_by_one():
    frame = Frame(0, 10, 10, 20, 30, 20, True)
    signatures = [Signature() for _ in range(3)]
    for price, signature in zip((20, 25, 30), signatures, strict=True):
        for round_ in range(4):
            signature.receive(frame, Offer(12, 0, price), round_)
    side = {"selling": True, "edge": False, "opens": False}
    together = shipped_types().posterior(signatures, **side)
    alone = np.concatenate([shipped_types().posterior([signature], **side) for signature in signatures])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert shipped_types().posterior([], **side).shape == (0, len(ARCHETYPES))


def test_a_back_and_forth_of_large_offers_is_random():
    signature = Signature()
    for day in range(6):
        for round_, (quantity, price) in enumerate([(25, 30), (3, 20), (18, 27), (28, 22), (9, 29), (30, 20)]):
            frame = Frame(day, 10, 10, 20, 30, 20, True)
            signature.receive(frame, Offer(quantity, day + (7 * round_) % 10, price), round_)
            signature.propose(frame, Offer(5, day + 1, 29), round_ / 19)
    [posterior] = shipped_types().posterior([signature], selling=True, edge=False, opens=False)
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

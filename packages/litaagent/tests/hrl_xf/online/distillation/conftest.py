from itertools import pairwise

import numpy as np
import pytest

from litaagent_std.agents.online.acting import INPUTS, LAYERS, NAMES, ActingNet, PolicySet


def make_net(layer, hidden, size=1.5, seed=1):
    rng = np.random.default_rng(seed)
    widths = [INPUTS[layer], *hidden, len(NAMES[layer])]
    shapes = list(pairwise(widths))
    return ActingNet(
        tuple(rng.normal(0, size / np.sqrt(rows), (rows, columns)).astype(np.float32) for rows, columns in shapes),
        tuple(rng.normal(0, 0.2, columns).astype(np.float32) for _, columns in shapes),
        np.full(len(NAMES[layer]), -1.0, np.float32),
    )


@pytest.fixture(scope="session")
def random_net():
    """Makes a net with random weights: (layer, hidden widths, size of its weights, seed)."""
    return make_net


@pytest.fixture(scope="session")
def teacher():
    """A policy of all layers that nobody has trained, but that does something."""
    return PolicySet({layer: make_net(layer, (8,)) for layer in LAYERS}, 3)

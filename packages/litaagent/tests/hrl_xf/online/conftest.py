import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from litaagent_std.agents.online.acting import INPUTS, NAMES, ActingNet


@pytest.fixture(scope="session")
def patient_market():
    """The module of a market with a known optimum, importable by name as its agents need it."""
    name = "patient_market"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


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

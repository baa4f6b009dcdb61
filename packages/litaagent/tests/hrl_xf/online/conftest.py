import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS, Hierarchy
from litaagent_std.hrl_xf.online.methods.networks import untrained


@pytest.fixture(scope="session")
def patient_market():
    """The module of a market with a known optimum, importable by name as its agents need it."""
    name = "patient_market"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def make_networks(layers=LAYERS, size=0.1, seed=1, width=8, version=0):
    """Return networks of some layers whose weights are all random; they explore."""
    rng = np.random.default_rng(seed)
    nets = {}
    for layer, weights in untrained(layers, seed, dict.fromkeys(LAYERS, width)).nets.items():
        arrays = {
            name: array if name == "log_std" else (array + rng.normal(0, size, array.shape)).astype(np.float32)
            for name, array in weights.arrays.items()
        }
        nets[layer] = replace(weights, arrays=arrays)
    return Hierarchy(nets, version, learning=tuple(layers))


@pytest.fixture(scope="session")
def random_networks():
    """Makes networks with random weights, see `make_networks`."""
    return make_networks

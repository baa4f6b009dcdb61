import pytest

from litaagent_std.agents.online.acting import LAYERS, PolicySet


@pytest.fixture(scope="session")
def teacher(random_net):
    """A policy of all layers that nobody has trained, but that does something."""
    return PolicySet({layer: random_net(layer, (8,)) for layer in LAYERS}, 3)

import pytest


@pytest.fixture(scope="session")
def teacher(random_networks):
    """Networks of all layers that nobody has trained, but that do something."""
    return random_networks(size=0.15, width=16, version=3)

"""What the tests of all packages share: how properties draw examples, and programs that start at once."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from tests.warm_python import WarmPython

# The same commit gets the same answer; `make test-search` looks for new counterexamples.
settings.register_profile("same", derandomize=True, deadline=None)  # a busy machine is no failure
settings.register_profile("search", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="session")
def warm_python() -> Iterator[WarmPython]:
    """Run programs in forks of an interpreter that has imported the heavy libraries."""
    with WarmPython() as python:
        yield python

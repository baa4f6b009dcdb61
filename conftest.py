"""How properties draw examples, for the tests of all packages."""

import os

from hypothesis import settings

# The same commit gets the same answer; `make test-search` looks for new counterexamples.
settings.register_profile("same", derandomize=True, deadline=None)  # a busy machine is no failure
settings.register_profile("search", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

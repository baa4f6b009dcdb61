"""Data of the packages' own tests, for tests of all learners together."""

from packages.apexrl.tests.conftest import make_env
from packages.hmasd.tests.conftest import small
from packages.litaagent.tests.hrl_xf.online.conftest import random_networks
from packages.litaagent.tests.hrl_xf.training.conftest import made_data

__all__ = ["made_data", "make_env", "random_networks", "small"]

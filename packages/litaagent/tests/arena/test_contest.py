"""An evaluation from its options: several opponents share one level of error."""

import pytest

from litaagent_std.arena.config import ArenaConfig
from litaagent_std.arena.contest import plan_of
from litaagent_std.arena.sequential import ALPHA

BUILT_IN = ("RandomStd", "GreedyStd", "SyncRandomStd")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_opponent_has_its_share_of_the_error(count):
    plan = plan_of(ArenaConfig(against=BUILT_IN[:count], opponents=("built-in",)))
    assert len(plan.against) == count
    assert plan.alpha == pytest.approx(ALPHA / count)

import random

import numpy as np
import pytest

from litaagent_std.world.scml.tournament_world import TournamentWorld

from scml.std.agents import GreedyStdAgent, RandomStdAgent, SyncRandomStdAgent  # isort: skip
from scml.std.world import SCML2024StdWorld  # isort: skip


@pytest.fixture
def world():
    random.seed(5)
    np.random.seed(5)
    types = [GreedyStdAgent, RandomStdAgent, SyncRandomStdAgent]
    return SCML2024StdWorld(**SCML2024StdWorld.generate(agent_types=types, n_steps=8, n_processes=2))


def test_an_adopted_world_keeps_scmls_books(world):
    names = list(world.agents)
    fast = TournamentWorld.adopt(world)
    assert isinstance(fast, SCML2024StdWorld)
    fast.run()
    assert list(fast.agents) == names
    assert fast.current_step == 8
    assert not fast.step()
    outcome = fast.fast.outcome()
    assert {agent: float(score) for agent, score in fast.scores().items()} == outcome.scores
    prices = [market.price for market in fast.fast._ledger.markets]
    assert fast.trading_prices == pytest.approx(prices, abs=0)
    assert len(fast.stats_df) == 8
    assert fast.stats_df["n_contracts_signed"].sum() * 2 == sum(fast.contracts_signed.values()) > 0
    assert fast.stats_df["n_negotiations"].sum() == sum(fast.negs_initiated.values())


def test_single_rounds_are_refused(world):
    with pytest.raises(ValueError, match="whole days"):
        TournamentWorld.adopt(world).step(n_neg_steps=1)

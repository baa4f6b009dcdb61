import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scml.std.agents.greedy import GreedyStdAgent

from litaagent_std.world.reproducible.streams import active
from litaagent_std.world.setup import OFFICIAL_DAYS, AgentSpec, WorldSetup, class_path, official_setup

GREEDY = "scml.std.agents.greedy.GreedyStdAgent"
RANDOM = "scml.std.agents.rand.RandomStdAgent"
SYNC = "scml.std.agents.rand.SyncRandomStdAgent"


@given(seed=st.integers(0, 10**9))
@settings(max_examples=25)
def test_official_worlds_are_inside_the_official_ranges(seed):
    setup = official_setup(seed, [GREEDY])
    levels = [factory.level for factory in setup.factories]
    assert OFFICIAL_DAYS[0] <= setup.n_days <= OFFICIAL_DAYS[1]
    assert 2 <= setup.n_levels <= 4
    assert all(levels.count(level) >= 4 for level in range(setup.n_levels))
    assert all(factory.n_lines == 10 for factory in setup.factories)
    assert 2 <= sum(agent.competitor for agent in setup.agents) <= 4
    assert all(agent.path in (GREEDY, RANDOM, SYNC) for agent in setup.agents)
    assert all(0.2 <= factory.shortfall_penalty[0] <= 1.0 for factory in setup.factories)
    assert all(0.01 <= factory.storage_cost[0] <= 0.05 for factory in setup.factories)
    assert all(contract.seller == -1 or contract.buyer == -1 for contract in setup.exogenous)


@given(seed=st.integers(0, 10**9), days=st.integers(6, 60))
@settings(max_examples=10)
def test_a_setup_survives_json(seed, days):
    setup = official_setup(seed, [GREEDY], n_days=days)
    again = WorldSetup.from_dict(json.loads(json.dumps(setup.to_dict())))
    assert again == setup
    assert again.digest == setup.digest
    assert np.array_equal(again.daily_costs().storage_cost, setup.daily_costs().storage_cost)


def test_the_same_seed_gives_the_same_world_in_any_process():
    code = (
        "from litaagent_std.world.setup import official_setup\n"
        f"print(official_setup(7, ['{GREEDY}', '{RANDOM}']).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": salt},
        ).stdout.strip()
        for salt in ("1", "2")
    }
    assert digests == {official_setup(7, [GREEDY, RANDOM]).digest}
    assert official_setup(8, [GREEDY, RANDOM]).digest not in digests


def test_drawing_a_setup_leaves_the_active_stream_alone():
    before = active()
    state = before.python.getstate()
    official_setup(3)
    assert active() is before
    assert before.python.getstate() == state


def test_without_competitors_the_default_agents_play_alone():
    setup = official_setup(1)
    assert {agent.path for agent in setup.agents} <= {GREEDY, RANDOM, SYNC}
    assert not any(agent.competitor for agent in setup.agents)


def test_every_competitor_sits_when_there_are_seats_enough():
    competitors = [f"somewhere.Agent{index}" for index in range(8)]
    setup = official_setup(2, competitors, fill="competitors")
    assert set(competitors) == {agent.path for agent in setup.agents}
    assert all(agent.competitor for agent in setup.agents)


def test_competitors_seats_need_competitors():
    with pytest.raises(ValueError, match="pass competitors"):
        official_setup(2, [], n_competitors=3)


def test_daily_costs_depend_on_the_seat_and_the_seed_alone():
    setup = official_setup(4, [GREEDY], n_days=50)
    other = setup.with_agents({0: AgentSpec(RANDOM)})
    assert other.agents[0].path == RANDOM
    assert other.agents[1:] == setup.agents[1:]
    assert np.array_equal(setup.daily_costs().shortfall_penalty, other.daily_costs().shortfall_penalty)
    assert not np.array_equal(setup.daily_costs().shortfall_penalty, setup.with_seed(5).daily_costs().shortfall_penalty)


def test_daily_costs_follow_mean_and_deviation():
    setup = official_setup(4, n_days=200)
    found = setup.daily_costs().shortfall_penalty
    for seat, factory in enumerate(setup.factories):
        mean, deviation = factory.shortfall_penalty
        assert found[seat].mean() == pytest.approx(mean, abs=5 * deviation / np.sqrt(200) + 1e-12)
        assert found[seat].std() == pytest.approx(deviation, rel=0.4, abs=1e-12)


def test_a_seat_without_agent_is_refused():
    data = official_setup(4).to_dict()
    data["agents"] = data["agents"][1:]
    with pytest.raises(ValueError, match="every seat needs exactly one"):
        WorldSetup.from_dict(data)


def test_a_path_that_is_no_agent_is_refused():
    with pytest.raises(TypeError, match="subclass of scml's OneShotAgent"):
        AgentSpec("collections.OrderedDict").load()


def test_class_paths():
    class Inner(GreedyStdAgent):
        pass

    assert class_path(GreedyStdAgent) == GREEDY
    assert class_path(GREEDY) == GREEDY
    assert AgentSpec(GREEDY).load() is GreedyStdAgent
    with pytest.raises(ValueError, match="top level of a module"):
        class_path(Inner)


def test_too_few_days_for_the_levels_are_refused():
    with pytest.raises(ValueError, match="3 days are too few for 4 levels"):
        official_setup(4, n_days=3)


def test_more_rounds_than_the_virtual_clock_can_count_are_refused():
    with pytest.raises(ValueError, match="n_rounds is 501"):
        WorldSetup.from_dict(official_setup(4).to_dict() | {"n_rounds": 501})

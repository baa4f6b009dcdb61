"""What must hold in every world of either engine, whatever the configuration and the agents."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litaagent_std.world.run import run_world
from litaagent_std.world.scml.published import YEARS, all_paths, paths_of_year
from litaagent_std.world.scml.trace import Trace, first_difference
from litaagent_std.world.setup import official_setup

QUICK = [path for path in all_paths() if not any(slow in path for slow in ("Arion", "XenoSota", "Agent01", "Katsudon"))]
DEFAULTS = [
    "scml.std.agents.greedy.GreedyStdAgent",
    "scml.std.agents.rand.RandomStdAgent",
    "scml.std.agents.rand.SyncRandomStdAgent",
]

worlds = st.builds(
    official_setup,
    seed=st.integers(0, 10**6),
    competitors=st.lists(st.sampled_from(QUICK + DEFAULTS), min_size=1, max_size=4),
    n_days=st.integers(6, 25),
    n_levels=st.integers(2, 4),
    fill=st.sampled_from(["defaults", "competitors"]),
)
inventories = st.sampled_from(["as_shipped", "depleting"])


@given(setup=worlds, inventory=inventories)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_fast_world_keeps_the_rules(auditor, setup, inventory):
    audit = auditor(setup, inventory)
    run_world(setup, engine="fast", observers=[audit], inventory=inventory)
    assert audit.phase == "after"
    assert audit.n_settled == setup.n_days * setup.n_seats


@given(setup=worlds)
@settings(max_examples=8)
def test_a_world_is_a_function_of_its_setup(setup):
    traces = []
    for _ in range(2):
        traces.append(Trace())
        run_world(setup, engine="fast", observers=traces[-1:])
    assert first_difference(*traces) is None


def test_bankruptcies_are_among_what_was_checked(auditor):
    setup = official_setup(1, n_days=30, n_levels=3)
    audit = auditor(setup)
    run_world(setup, engine="fast", observers=[audit])
    assert audit.n_bankrupt > 0


def test_the_standard_agents_of_three_years():
    assert [len(paths_of_year(year)) for year in YEARS] == [8, 7, 20]
    assert len(set(all_paths())) == 35
    with pytest.raises(ValueError, match="no Standard agents of 2023"):
        paths_of_year(2023)

import os
import subprocess
import sys
import time

import pytest

from litaagent_std.market.world.clock import elapsed_seconds, relative_time
from litaagent_std.market.world.scml_engine import make_scml_world, plain_scml_world
from litaagent_std.market.world.setup import AgentSpec, official_setup
from litaagent_std.market.world.streams import active
from litaagent_std.market.world.trace import Trace, Window, first_difference

GREEDY = "scml.std.agents.greedy.GreedyStdAgent"
RANDOM = "scml.std.agents.rand.RandomStdAgent"
SYNC = "scml.std.agents.rand.SyncRandomStdAgent"
CAUTIOUS = "scml_agents.scml2024.standard.team_miyajima_std.cautious.CautiousStdAgent"
PENGUIN = "scml_agents.scml2024.standard.team_penguin.penguinagent.PenguinAgent"


def trace_of(setup, **options):
    trace = Trace()
    make_scml_world(setup, [trace], **options).run_to_end()
    return trace


def in_another_process(seed, days, competitors, salt):
    code = (
        "from litaagent_std.market.world.setup import official_setup\n"
        "from litaagent_std.market.world.scml_engine import make_scml_world\n"
        "from litaagent_std.market.world.trace import Trace\n"
        "trace = Trace()\n"
        f"setup = official_setup({seed}, {competitors!r}, n_days={days}, n_levels=2, fill='competitors')\n"
        "make_scml_world(setup, [trace]).run_to_end()\n"
        "print(trace.digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": salt}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


def test_two_runs_tell_the_same_story_and_another_seed_another():
    setup = official_setup(11, [PENGUIN, SYNC], n_days=6, n_levels=2)
    first = trace_of(setup)
    assert first_difference(first, trace_of(setup)) is None
    assert first.counts["on_contract"] > 20
    assert first_difference(first, trace_of(setup.with_seed(12))) is not None


def test_the_story_depends_on_neither_process_nor_hash_seed():
    competitors = [GREEDY, RANDOM]  # neither iterates over a set of names, as most others do
    here = trace_of(official_setup(5, competitors, n_days=6, n_levels=2, fill="competitors")).digest
    assert {in_another_process(5, 6, competitors, salt) for salt in ("1", "2")} == {here}


def test_agents_that_iterate_over_names_repeat_under_a_fixed_hash_seed():
    competitors = [PENGUIN, SYNC]
    assert len({in_another_process(6, 6, competitors, "0") for _ in range(2)}) == 1


def test_the_story_does_not_depend_on_the_speed_of_the_machine(monkeypatch):
    setup = official_setup(3, [CAUTIOUS, "scml_agents.scml2026.standard.team_21084.emsel.EmSel"], n_days=5, n_levels=2)
    expected = trace_of(setup)
    offset, real, real_ns = [0.0], time.perf_counter, time.perf_counter_ns

    def slow():
        offset[0] += 0.3
        return real() + offset[0]

    monkeypatch.setattr(time, "perf_counter", slow)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: real_ns() + int(1e9 * (slow() - real())))
    assert first_difference(expected, trace_of(setup)) is None


def test_replacing_an_agent_leaves_the_luck_of_the_others(probe_agents):
    setup = official_setup(2, n_days=5, n_levels=2)
    watched = {0: AgentSpec("probe_agents.TellsItsLuck"), 5: AgentSpec("probe_agents.TellsItsLuck")}
    lucks = []
    for other in ("probe_agents.DrawsMuch", GREEDY):
        probe_agents.LUCK.clear()
        make_scml_world(setup.with_agents({**watched, 1: AgentSpec(other)})).run_to_end()
        lucks.append({seat: list(luck) for seat, luck in probe_agents.LUCK.items()})
    assert lucks[0] == lucks[1]
    assert len(lucks[0]["00"]) == 5
    assert lucks[0]["00"] != lucks[0]["05"]


def test_time_inside_negotiations_is_virtual(probe_agents):
    probe_agents.CLOCK.clear()
    make_scml_world(official_setup(2, ["probe_agents.TellsTheTime"], n_days=5, n_levels=2)).run_to_end()
    assert {round_ for round_, _, _ in probe_agents.CLOCK} >= {0, 5}
    for round_, seconds, relative in probe_agents.CLOCK:
        assert seconds == elapsed_seconds(round_) < 0.5
        assert relative == relative_time(round_, 20)


def test_no_stream_stays_active():
    before = active()
    make_scml_world(official_setup(2, n_days=5, n_levels=2)).run_to_end()
    assert active() is before


def test_the_reference_is_scmls_own_world_with_the_same_configuration():
    setup = official_setup(4, n_days=5)
    ours, plain = make_scml_world(setup), plain_scml_world(setup)
    for name in ("n_steps", "horizon", "price_range_fraction", "quantity_multiplier", "perishable", "bankruptcy_limit"):
        assert getattr(ours, name) == getattr(plain, name), name
    assert list(ours.agents) == list(plain.agents)
    assert ours.initial_balances == plain.initial_balances
    assert {day: len(c) for day, c in ours.exogenous_contracts.items()} == {
        day: len(c) for day, c in plain.exogenous_contracts.items()
    }


@pytest.mark.parametrize(("seed", "inventory"), [(0, "as_shipped"), (0, "depleting"), (1, "as_shipped")])
def test_every_day_is_settled_by_the_rules(auditor, seed, inventory):
    setup = official_setup(seed, [PENGUIN, CAUTIOUS], n_days=12, n_levels=2 + seed)
    audit = auditor(setup, inventory)
    make_scml_world(setup, [audit], inventory=inventory).run_to_end()
    assert audit.phase == "after"
    assert audit.n_settled == 12 * setup.n_seats
    assert audit.n_contracts > 0


def test_stock_depletes_only_under_the_rule_that_says_so():
    setup = official_setup(0, [CAUTIOUS], n_days=12, n_levels=2, fill="competitors")
    stocks = {}
    for inventory in ("as_shipped", "depleting"):
        world = make_scml_world(setup, inventory=inventory)
        world.run_to_end()
        stocks[inventory] = sum(world._inventory_input.values())
    assert stocks["depleting"] < stocks["as_shipped"]


def test_a_window_shows_the_place_of_a_difference():
    setup = official_setup(1, n_days=5, n_levels=2)
    one, other = trace_of(setup), trace_of(setup.with_seed(2))
    place = first_difference(one, other)
    window = Window(place)
    make_scml_world(setup, [window]).run_to_end()
    assert len(window.texts) == min(place, 4) + 1
    assert window.prints == one.prints

"""A world is a function of its setup: machine, process, hash seed and earlier worlds change nothing."""

import os
import subprocess
import sys
import time

import pytest

from litaagent_std.world.reproducible.clock import elapsed_seconds, relative_time
from litaagent_std.world.reproducible.streams import active
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.trace import Trace, first_difference
from litaagent_std.world.setup import AgentSpec, official_setup

GREEDY = "scml.std.agents.greedy.GreedyStdAgent"
RANDOM = "scml.std.agents.rand.RandomStdAgent"
SYNC = "scml.std.agents.rand.SyncRandomStdAgent"
CAUTIOUS = "scml_agents.scml2024.standard.team_miyajima_std.cautious.CautiousStdAgent"
EMSEL = "scml_agents.scml2026.standard.team_21084.emsel.EmSel"
PENGUIN = "scml_agents.scml2024.standard.team_penguin.penguinagent.PenguinAgent"

both_engines = pytest.mark.parametrize("engine", ["scml", "fast"])

PROGRAM = """
import sys
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import official_setup
from litaagent_std.world.scml.trace import Trace

setup = official_setup(int(sys.argv[1]), sys.argv[2:], n_days=6, n_levels=2, fill="competitors")
for engine in ("fast", "scml"):
    trace = Trace()
    run_world(setup, engine=engine, observers=[trace])
    print(trace.digest)
"""


def digests_in_another_process(seed, competitors, salt):
    """The digests of both engines' traces, under another salt of the hashes."""
    words = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(seed), *competitors]
    environment = {**os.environ, "PYTHONHASHSEED": salt}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def trace_of(setup, engine):
    trace = Trace()
    run_world(setup, engine=engine, observers=[trace])
    return trace


@both_engines
def test_two_runs_emit_the_same_events_and_another_seed_others(engine):
    setup = official_setup(11, [PENGUIN, SYNC], n_days=6, n_levels=2)
    first = trace_of(setup, engine)
    assert first_difference(first, trace_of(setup, engine)) is None
    assert first.counts["on_contract"] > 20
    assert first_difference(first, trace_of(setup.with_seed(12), engine)) is not None


def test_the_trace_depends_on_neither_process_nor_hash_seed():
    competitors = [GREEDY, RANDOM]  # neither iterates over a set of names, as most others do
    here = trace_of(official_setup(5, competitors, n_days=6, n_levels=2, fill="competitors"), "fast").digest
    assert digests_in_another_process(5, competitors, "1") | digests_in_another_process(5, competitors, "2") == {here}


def test_agents_that_iterate_over_names_repeat_under_a_fixed_hash_seed():
    runs = [digests_in_another_process(6, [PENGUIN, SYNC], "0") for _ in range(2)]
    assert len(runs[0] | runs[1]) == 1


@both_engines
def test_the_trace_does_not_depend_on_the_speed_of_the_machine(engine, monkeypatch):
    setup = official_setup(3, [CAUTIOUS, EMSEL], n_days=5, n_levels=2)
    expected = trace_of(setup, engine)
    offset, real, real_ns = [0.0], time.perf_counter, time.perf_counter_ns

    def slow():
        offset[0] += 0.3
        return real() + offset[0]

    monkeypatch.setattr(time, "perf_counter", slow)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: real_ns() + int(1e9 * (slow() - real())))
    assert first_difference(expected, trace_of(setup, engine)) is None


@both_engines
def test_replacing_an_agent_leaves_the_draws_of_the_others(engine, probe_agents):
    setup = official_setup(2, n_days=5, n_levels=2)
    watched = {0: AgentSpec("probe_agents.RecordsDraws"), 5: AgentSpec("probe_agents.RecordsDraws")}
    runs = []
    for other in ("probe_agents.DrawsMuch", GREEDY):
        probe_agents.DRAWS.clear()
        run_world(setup.with_agents({**watched, 1: AgentSpec(other)}), engine=engine)
        runs.append({seat: list(draws) for seat, draws in probe_agents.DRAWS.items()})
    assert runs[0] == runs[1]
    assert len(runs[0]["00"]) == 5
    assert runs[0]["00"] != runs[0]["05"]


@both_engines
def test_time_inside_negotiations_is_virtual(engine, probe_agents):
    probe_agents.CLOCK.clear()
    run_world(official_setup(2, ["probe_agents.RecordsTime"], n_days=5, n_levels=2), engine=engine)
    assert {round_ for round_, _, _ in probe_agents.CLOCK} >= {0, 5}
    for round_, seconds, relative in probe_agents.CLOCK:
        assert seconds == elapsed_seconds(round_) < 0.5
        assert relative == relative_time(round_, 20)


@both_engines
def test_no_stream_stays_active(engine):
    before = active()
    run_world(official_setup(2, n_days=5, n_levels=2), engine=engine)
    assert active() is before

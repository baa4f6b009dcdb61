import pytest
from benchmarks.world import DEFAULT, FASTEST, LOGGED, Listener, measure, plan, report

from litaagent_std.world.run import run_world
from litaagent_std.world.setup import official_setup


def made_up_results(units):
    """Ratios of 40, 20 and 8 in every configuration; a fifth of the samples outside the agents' code."""
    results = {}
    for key, unit in units.items():
        results[key] = {
            "compare": {"seats": 12, "fast": 10.0, LOGGED: 400.0, DEFAULT: 200.0, FASTEST: 80.0},
            "profile": {"agents": 80, "world: engine": 15, "world: observation": 5},
            "flatness": {"early": 2.0, "late": 1.9},
            "memory": {"before": 300.0, "after": 330.0},
        }[unit["kind"]]
    return results


def test_the_report_is_made_of_ratios():
    units = plan(False, [0, 1, 2])
    figures = {figure.name: figure for figure in report(units, made_up_results(units))}
    assert figures[f"official mix: {LOGGED} / fast"].value == 40
    assert figures[f"official mix: {DEFAULT} / fast"].ok
    assert figures[f"finalists only: {FASTEST} / fast"].value == 8
    share = next(figure for name, figure in figures.items() if "engine" in name)
    assert share.value == pytest.approx(20)
    assert share.ok
    memory = next(figure for name, figure in figures.items() if "memory" in name)
    assert not memory.ok, "a tenth more memory is a leak"


def test_a_quick_run_has_every_kind_of_unit():
    assert {unit["kind"] for unit in plan(True, [0]).values()} == {"compare", "profile", "flatness", "memory"}


def test_the_listener_counts_every_event():
    listener = Listener()
    setup = official_setup(0, n_days=5, n_levels=2)
    run_world(setup, observers=[listener])
    assert len(listener.clock) == 5
    assert listener.n_events > 5 * (2 + 16 + setup.n_seats)


def test_the_share_of_the_agents_is_measured():
    samples = measure("profile", seed=1, days=6)
    assert samples["agents"] > 0
    assert any(name.startswith("world: ") for name in samples)

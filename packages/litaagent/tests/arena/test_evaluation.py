"""Evaluations: what is played, what is not played again, and what the answers rest on."""

from dataclasses import replace

import numpy as np
import pytest

from apexrl.execution import make_executor
from litaagent_std.arena import evaluation as module
from litaagent_std.arena.evaluation import Plan, evaluate
from litaagent_std.arena.report import report_of
from litaagent_std.arena.seeds import SeedBlock
from litaagent_std.arena.units import UnitStore
from litaagent_std.arena.worlds import Rules, draw
from litaagent_std.tournament.competitors.names import Competitor
from litaagent_std.world.setup import AgentSpec

GREEDY = "scml.std.agents.greedy.GreedyStdAgent"
SYNC = "scml.std.agents.rand.SyncRandomStdAgent"
RANDOM = "scml.std.agents.rand.RandomStdAgent"
MEANS = {GREEDY: 1.0, SYNC: 0.98, RANDOM: 0.2}
asked: list[tuple[str, int]] = []


def pretend(rules, seed, agent):
    """A unit by formula: the agent's mean, the world's luck and a little noise of both."""
    asked.append((agent.path, seed))
    if agent.params.get("fails") == seed:
        raise RuntimeError("on purpose")
    noise = np.random.default_rng([seed, len(agent.path)]).normal(0, 0.1)
    score = MEANS[agent.path] + np.random.default_rng(seed).normal() + noise
    numbers = dict.fromkeys(["sales", "purchases", "produced", "stock", "shortfall", "storage"], 1.0)
    counts = {"shortfall_units": 0, "bankruptcies": 1, "bankrupt_on": None, "n_errors": 0, "interventions": None}
    cpu = dict.fromkeys(["decision_ms", "longest_decision_ms", "day_ms", "world_seconds"], 0.5)
    place = {"level": ("first", "last")[seed % 2], "n_days": 50, "errors": []}
    return {"score": float(score), **numbers, **counts, **place, "cpu": cpu}


@pytest.fixture
def pretended(monkeypatch):
    """Worlds are pretended; the list of those that were asked for."""
    monkeypatch.setattr(module, "play_unit", pretend)
    asked.clear()
    return asked


def make_plan(worlds=200, against=(SYNC, RANDOM), params=None, **options):
    focal = Competitor("focal", AgentSpec(GREEDY, params or {}))
    others = tuple(Competitor(path, AgentSpec(path)) for path in against)
    return Plan(focal, others, Rules((GREEDY,), days=(50,)), SeedBlock("tuning"), worlds, **options)


def run(plan, folder, **options):
    with make_executor("inline") as executor:
        return evaluate(plan, UnitStore(folder), executor, **options)


def test_a_clear_comparison_ends_and_the_others_go_on(pretended, tmp_path):
    found = run(make_plan(), tmp_path)
    clear, close = found.verdict(RANDOM), found.verdict(SYNC)
    assert (clear.answer, close.answer) == ("better", "open")
    assert clear.worlds < 50
    assert len(found.units["focal"]) == len(found.units[SYNC]) == close.worlds == 200
    assert len(found.units[RANDOM]) < 50


def test_all_worlds_are_played_where_that_is_asked_for(pretended, tmp_path):
    found = run(make_plan(60, stop_early=False), tmp_path)
    assert {len(units) for units in found.units.values()} == {60}
    assert found.verdict(RANDOM).worlds == 60


def test_finished_units_are_never_played_again_and_more_worlds_only_add(pretended, tmp_path):
    first = run(make_plan(40), tmp_path)
    assert first.played == len(pretended) == len(set(pretended))
    pretended.clear()
    again = run(make_plan(40), tmp_path)
    assert again.played == 0
    assert pretended == []
    assert report_of(again) == report_of(first)
    run(make_plan(48, against=(SYNC,)), tmp_path)
    assert len(pretended) == 16


def test_going_on_after_a_stop_equals_an_uninterrupted_evaluation(pretended, tmp_path):
    stopped = run(make_plan(50), tmp_path / "a", on_unit=lambda state: state.played < 33)
    assert stopped.played == 33
    resumed = run(make_plan(50), tmp_path / "a")
    whole = run(make_plan(50), tmp_path / "b")
    assert resumed.played + 33 == whole.played
    assert report_of(resumed) == report_of(whole)


def test_the_report_does_not_depend_on_what_was_under_way_at_the_end(pretended, tmp_path, monkeypatch):
    small = report_of(run(make_plan(against=(RANDOM,)), tmp_path / "a"))
    monkeypatch.setattr(module, "WORLDS_PER_WORKER", 64)
    large = run(make_plan(against=(RANDOM,)), tmp_path / "b")
    assert report_of(large) == small
    assert len(large.units["focal"]) == 64 > small["agents"]["focal"]["scores"]["all"]["worlds"]


def test_a_failed_world_is_left_out_told_and_tried_again(pretended, tmp_path):
    seed = SeedBlock("tuning").seed(3)
    found = run(make_plan(8, against=(SYNC,), params={"fails": seed}), tmp_path)
    assert found.shared(SYNC) == [0, 1, 2, 4, 5, 6, 7]
    [failure] = report_of(found)["failed"]
    assert (failure["agent"], failure["world"]) == ("focal", 3)
    assert "on purpose" in failure["reason"]
    pretended.clear()
    run(make_plan(8, against=(SYNC,), params={"fails": seed}), tmp_path)
    assert set(pretended) == {(GREEDY, seed)}


def test_contestants_of_one_name_are_refused():
    with pytest.raises(ValueError, match="not all different"):
        make_plan(against=(SYNC, SYNC))


def test_a_clear_answer_is_measured_as_precisely_as_asked_for(pretended, tmp_path):
    found = run(make_plan(400, against=(RANDOM,), fewest=60, precision=0.03), tmp_path)
    verdict = found.verdict(RANDOM)
    assert (verdict.answer, found.is_open(RANDOM)) == ("better", False)
    assert 60 <= verdict.worlds < 400
    assert verdict.high - verdict.mean <= 0.03
    assert run(make_plan(39, against=(RANDOM,), fewest=60), tmp_path).verdict(RANDOM).answer == "open"


def test_worlds_in_which_nobody_differs_are_left_out(pretended, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_DRAWS", 30)
    plan = make_plan(worlds=6, against=(SYNC,), places=("last",))
    found = run(plan, tmp_path)
    indices = found.shared(SYNC)
    assert len(indices) == 6
    assert indices == [i for i in range(indices[-1] + 1) if draw(plan.rules, plan.block.seed(i)).level == "last"]
    assert indices[-1] >= 6  # some were left out
    assert list(make_plan(worlds=4).indices()) == [0, 1, 2, 3]
    nowhere = replace(plan, rules=replace(plan.rules, levels=2), places=("middle",))
    with pytest.raises(ValueError, match="has the focal seat at middle"):
        next(nowhere.indices())

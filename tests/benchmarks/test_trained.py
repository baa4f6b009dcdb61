from dataclasses import replace

import pytest
from benchmarks.harness import Benchmark

from benchmarks import trained
from litaagent_std.arena.evaluation import Evaluation
from litaagent_std.arena.seeds import SeedBlock
from litaagent_std.arena.worlds import draw
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.policy.parameters import LEVELS, Parameters

START = untrained(("l2",), 0, {"l2": 4})


def make_plan(tmp_path, *words):
    START.save(tmp_path / "w")
    argv = ["--weights", str(tmp_path / "w"), *words]
    return trained.plan_of(Benchmark("trained", "", argv=argv, add_options=trained.add_options))


def test_the_trained_policy_meets_the_agent_that_it_started_from_on_the_verdicts_seeds(tmp_path):
    plan = make_plan(tmp_path)
    assert plan.focal.spec.path == trained.LITA
    assert plan.focal.spec.params == {"weights": str(tmp_path / "w")}
    assert [one.spec.path for one in plan.against] == [trained.LITA]
    assert plan.block.name == "verdict"
    assert plan.worlds == 1500


def test_gates_and_quick_runs_never_touch_the_verdict(tmp_path):
    verdict = {SeedBlock("verdict").seed(index) for index in range(2000)}
    for words in (["--quick"], ["--gate", "may"]):
        plan = make_plan(tmp_path, *words)
        assert verdict.isdisjoint(plan.block.seed(index) for index in range(plan.worlds))


def test_behaviour_cloning_is_compared_where_it_is_given(tmp_path):
    plan = make_plan(tmp_path, "--cloned", "runs/cloned")
    [cloned] = plan.against
    assert cloned.spec.params == {"l2": "learned", "weights": "runs/cloned"}
    assert plan.places == LEVELS


def test_weights_that_are_not_there_are_refused():
    with pytest.raises(SystemExit, match="nowhere"):
        trained.main(["--weights", "nowhere"])


def test_a_policy_is_judged_where_it_differs_from_the_heuristic_agent(tmp_path):
    assert make_plan(tmp_path).places == LEVELS
    replace(START, levels=("first",)).save(tmp_path / "first")
    assert trained.trained_agent(str(tmp_path / "first"))[1] == ("first",)
    tuned, places = trained.trained_agent("", "shipped")
    assert places == ("last",)
    assert tuned.spec.path == trained.LITA
    (tmp_path / "all.json").write_text(Parameters(hold=0.4).to_json())
    assert trained.trained_agent("", str(tmp_path / "all.json"))[1] == LEVELS


def test_the_advantage_is_shown_by_the_length_of_the_chain(tmp_path):
    plan = make_plan(tmp_path, "--quick")
    seeds = [plan.block.seed(index) for index in range(12)]
    levels = [draw(plan.rules, seed).setup.n_levels for seed in seeds]
    units = {
        "trained": {i: {"seed": seed, "score": 1.0 + 0.1 * levels[i]} for i, seed in enumerate(seeds)},
        "heuristic": {i: {"seed": seed, "score": 1.0} for i, seed in enumerate(seeds)},
    }
    figures = {figure.name: figure.value for figure in trained.by_chain(Evaluation(plan, units), "heuristic")}
    expected = {f"minus heuristic: chains of {number} levels": 0.1 * number for number in set(levels)}
    assert len(expected) > 1
    assert figures == pytest.approx(expected)

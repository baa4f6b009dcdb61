import pytest
from benchmarks.harness import Benchmark

from benchmarks import trained
from litaagent_std.agents.online.acting import ActingNet, PolicySet
from litaagent_std.agents.online.weights import save
from litaagent_std.arena.seeds import SeedBlock
from litaagent_std.policy.parameters import LEVELS, Parameters


def make_plan(tmp_path, *words):
    save(PolicySet({"l2": ActingNet.zeros("l2")}), tmp_path / "w.npz", seed=1)
    argv = ["--weights", str(tmp_path / "w.npz"), *words]
    return trained.plan_of(Benchmark("trained", "", argv=argv, add_options=trained.add_options))


def test_the_trained_policy_meets_the_agent_that_it_started_from_on_the_verdicts_seeds(tmp_path):
    plan = make_plan(tmp_path)
    assert plan.focal.spec.path == trained.ONLINE
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
    with pytest.raises(SystemExit, match="there is no file of weights 'nowhere'"):
        trained.main(["--weights", "nowhere"])


def test_a_policy_is_judged_where_it_differs_from_the_heuristic_agent(tmp_path):
    assert make_plan(tmp_path).places == LEVELS
    save(PolicySet({"l2": ActingNet.zeros("l2")}, levels=("first",)), tmp_path / "first.npz")
    assert trained.trained_agent(str(tmp_path / "first.npz"))[1] == ("first",)
    assert trained.trained_agent(trained.WEIGHTS)[1] == ("middle",)
    tuned, places = trained.trained_agent(trained.WEIGHTS, "shipped")
    assert places == ("last",)
    assert tuned.spec.path == trained.LITA
    (tmp_path / "all.json").write_text(Parameters(hold=0.4).to_json())
    assert trained.trained_agent(trained.WEIGHTS, str(tmp_path / "all.json"))[1] == LEVELS

"""What the benchmark of learned layers plays and says."""

import pytest
from benchmarks.harness import Benchmark

from benchmarks import layers
from litaagent_std.arena.evaluation import Evaluation


@pytest.fixture
def plan():
    bench = Benchmark("layers", "", argv=["--quick"], add_options=layers.add_options)
    return layers.plan_of(bench, layers.QUICK_TEACHERS)


def test_each_layer_takes_the_place_of_its_heuristic_alone_and_with_the_others(plan):
    learned = {one.name: dict(one.spec.params) for one in plan.against}
    folder = "training_runs/bench_layers_quick_LitaAgentHRL"
    assert learned["L3 by AWR from LitaAgentHRL"] == {"l3": "learned", "weights": f"{folder}/weights"}
    assert learned["L3 cloned from LitaAgentHRL"] == {"l3": "learned", "weights": f"{folder}/cloned"}
    everything = learned["all learned from GreedyStdAgent"]
    assert {name for name, value in everything.items() if value == "learned"} == {"l2", "l3", "l4"}
    assert dict(plan.focal.spec.params) == {}


def test_what_a_layer_adds_is_its_score_minus_the_heuristic_one(plan):
    better, worse = plan.against[0].name, plan.against[1].name
    luck = [0.01 * (i % 7) for i in range(60)]
    scores = {plan.focal.name: 1.0, better: 1.2, worse: 0.7}
    units = {
        name: {i: {"score": score + luck[i] * (name != plan.focal.name)} for i in range(60)}
        for name, score in scores.items()
    }
    figures = {figure.name: figure for figure in layers.report(Evaluation(plan, units))}
    assert figures[f"{better}: added"].value > 0.2
    assert figures[f"{better}: added"].note.endswith("better than its heuristic")
    assert figures[f"{worse}: added"].value < -0.2
    assert figures[f"{worse}: added"].note.endswith("worse than its heuristic")
    assert not figures["worlds that failed"].value

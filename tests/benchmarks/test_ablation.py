import json

import numpy as np
import pytest
from benchmarks.ablations import STEPS
from benchmarks.harness import Benchmark

from apexrl.runs.errors import ConfigurationError
from benchmarks import ablation
from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.arena.evaluation import Evaluation


def make_plan(when, regime="stock stays", *words):
    bench = Benchmark("ablation", "", argv=["--quick", *words], add_options=ablation.add_options)
    return ablation.plan_of(regime, when, bench)


def made_up(plan, worths):
    """An evaluation of three worlds in which every step has its worth, and the worlds differ in luck."""
    names = [one.name for one in (plan.focal, *plan.against)]
    return Evaluation(
        plan,
        {name: {i: {"score": worth + i} for i in range(3)} for name, worth in zip(names, worths, strict=True)},
    )


def test_each_layer_is_compared_with_the_step_before_it():
    evaluation = made_up(make_plan({"defaults": None}), [0.9, 1.0, 1.3, 1.2, 1.2, 1.4, 1.4])
    figures = {f.name: f for f in ablation.report({"stock stays": evaluation}, ["defaults"])}
    assert figures["stock stays, defaults, + L3: added"].value == pytest.approx(0.3)
    assert figures["stock stays, defaults, + L4: added"].value == pytest.approx(-0.1)
    assert figures["stock stays, defaults, L1: mean score"].value == pytest.approx(1.9)
    assert figures["stock stays, defaults, + types: added"].value == pytest.approx(0.2)
    assert "3 worlds" in figures["stock stays, defaults, + L2: added"].note


def test_what_tuning_added_is_a_difference_of_the_last_steps(tmp_path):
    path = tmp_path / "tuned.json"
    path.write_text(json.dumps({"format": "litaagent.parameters", "parameters": {"hold": 0.6}, "start": {"hold": 0.2}}))
    when = ablation.tuning(str(path))
    assert when == {"before tuning": {"hold": 0.2}, "after tuning": {"hold": 0.6}}
    plan = make_plan(when, "stock depletes")
    assert plan.rules.inventory == "depleting"
    assert [one.spec.params["parameters"]["hold"] for one in (plan.focal, *plan.against)] == [0.2] * 7 + [0.6] * 7
    evaluation = made_up(plan, [0.0] * 6 + [1.0] + [0.0] * 6 + [1.25])
    figures = {f.name: f.value for f in ablation.report({"stock depletes": evaluation}, list(when))}
    assert figures["stock depletes: tuning added"] == pytest.approx(0.25)


def test_a_stage_of_training_is_compared_with_the_stage_before_it():
    words = ("--stages", "cloned=runs/cloned", "online=runs/online")
    plan = make_plan({"defaults": None}, "stock stays", *words)
    assert [one.spec.params.get("weights") for one in plan.against][-2:] == ["runs/cloned", "runs/online"]
    evaluation = made_up(plan, [0.0] * 6 + [1.0, 0.75, 1.25])
    figures = {f.name: f.value for f in ablation.report({"stock stays": evaluation}, ["defaults"])}
    assert figures["stock stays, stage cloned: added"] == pytest.approx(-0.25)
    assert figures["stock stays, stage online: added"] == pytest.approx(0.5)
    assert len(make_plan({"defaults": None}, "stock depletes", *words).against) == 6
    with pytest.raises(ConfigurationError, match="NAME=FOLDER"):
        ablation.stages_of(["cloned"])


def test_a_file_that_is_not_there_is_refused_but_nothing_need_be_tuned(monkeypatch, tmp_path):
    from litaagent_std.tournament.competitors import parameter_files

    monkeypatch.setattr(parameter_files, "SHIPPED", tmp_path)
    assert ablation.tuning("shipped") == {"defaults": None}
    with pytest.raises(ConfigurationError, match="no file of parameters"):
        ablation.tuning("nowhere.json")


def test_steps_add_one_part_each_up_to_the_default_agent():
    layers = [(params.get("l3"), params.get("l4")) for _, params in STEPS.values()]
    typed = [("types", "joint")] * 2
    assert layers[1:] == [("baseline", "greedy"), ("model", "greedy"), *[("model", "joint")] * 2, *typed]
    urgent = ["parameters" not in params for _, params in STEPS.values()]
    assert urgent[1:] == [False, False, False, True, True, True]
    assert ["l2" in params for _, params in STEPS.values()] == [False, *[True] * 5, False]
    _, params = list(STEPS.values())[-1]
    assert LitaAgentHRL(**params).brain.layers == LitaAgentHRL().brain.layers
    assert np.unique([path for path, _ in STEPS.values()]).size == 2

import math

import pytest
from benchmarks.harness import Benchmark

from benchmarks import strength
from litaagent_std.arena.seeds import SeedBlock
from litaagent_std.tournament.competitors.names import Competitor
from litaagent_std.world.setup import AgentSpec


def make_row(name, low, mean, worlds=400, answer="better"):
    verdict = {"answer": answer, "low": low, "high": None if low is None else 2 * mean - low, "worlds": worlds}
    return {"against": name, "verdict": verdict, "difference": {"all": {"mean": mean, "worlds": worlds}}}


def make_plans(*words):
    return strength.plans(Benchmark("strength", "", argv=words, add_options=strength.add_options))


def test_the_lower_end_is_held_against_0_and_the_bar_needs_a_lead():
    [other] = strength.advantage(make_row("SBD", 0.01, 0.04))
    assert (other.value, other.ok) == (0.01, True)
    assert [figure.ok for figure in strength.advantage(make_row(strength.BAR, 0.05, 0.09))] == [False, False]
    assert [figure.ok for figure in strength.advantage(make_row(strength.BAR, 0.07, 0.11))] == [True, True]
    assert not strength.advantage(make_row("SBD", -0.01, 0.04, answer="open"))[0].ok


def test_too_few_worlds_claim_nothing():
    [figure] = strength.advantage(make_row("SBD", None, 0.1))
    assert figure.value == -math.inf
    assert not figure.ok


def test_a_quick_run_shows_means_without_goals():
    [figure] = strength.advantage(make_row(strength.BAR, None, 0.1, worlds=2, answer="open"), quick=True)
    assert (figure.value, figure.goal) == (0.1, None)


def test_quick_worlds_are_never_the_verdicts():
    verdict = {SeedBlock("verdict").seed(index) for index in range(2000)}
    for plan in make_plans("--quick"):
        assert verdict.isdisjoint(plan.block.seed(index) for index in range(plan.worlds))
    for plan in make_plans("--gate", "april"):
        assert plan.block.name == "gate:april"


def test_all_ten_are_met_and_the_bar_is_measured_precisely():
    bar, others = make_plans()
    assert [other.name for other in bar.against] == [strength.BAR]
    assert [other.name for other in others.against] == list(strength.OTHERS)
    assert bar.precision < others.precision == math.inf
    assert {bar.worlds, others.worlds} == {1500}
    assert {bar.alpha, others.alpha} == {0.005}
    assert bar.block.name == others.block.name == "verdict"
    assert all("integer_offers" in other.spec.path for other in others.against)
    assert bar.rules.days == (50, 100, 200)


def test_trained_weights_are_compared_with_the_agent_itself(monkeypatch):
    trained = Competitor("trained", AgentSpec("agents.Trained", competitor=True))
    monkeypatch.setattr(strength, "trained_agent", {"online_runs/mine": (trained, ("middle",))}.__getitem__)
    *_, plan = make_plans("--weights", "online_runs/mine")
    assert (plan.focal, [other.name for other in plan.against], plan.places) == (trained, ["lita"], ("middle",))
    assert strength.advantage(make_row("lita", 0.01, 0.04), of="trained")[0].name == "trained minus lita: lower end"


def test_weights_that_are_not_there_are_named():
    with pytest.raises(SystemExit, match="there are no weights 'nowhere'"):
        strength.main(["--weights", "nowhere"])


def test_other_questions_have_results_of_their_own():
    apart = ("as_shipped", "gate")

    def label(*words):
        return Benchmark("strength", "", argv=words, add_options=strength.add_options, apart=apart).label

    assert [label(), label("--as-shipped"), label("--gate", "may"), label("--as-shipped", "--gate", "may")] == [
        "strength",
        "strength_as_shipped",
        "strength_gate",
        "strength_as_shipped_gate",
    ]

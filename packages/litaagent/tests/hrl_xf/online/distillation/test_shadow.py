import pytest

from litaagent_std.hrl_xf.online.distillation.check import check_world, summarize_checks
from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights

PLAN = WorldPlan(seed=training_seed(9, 1), days=(5,), levels=3)


@pytest.fixture(scope="module")
def other(random_networks):
    return random_networks(size=0.3, seed=5)


@pytest.fixture(scope="module")
def check(teacher, other):
    return check_world(PLAN, teacher, {"student": teacher, "other": other, "zero": Hierarchy()})


def test_a_shadow_with_the_teacher_s_policy_always_agrees_and_others_do_not(check):
    same, other, zero = (check["agreement"][name] for name in ("student", "other", "zero"))
    assert same["threads"] == same["kinds"] == same["same"] > 20
    assert same["quantities"] == same["same_quantities"] > 0
    assert same["prices"] > 0
    assert same["price_gap"] == 0.0
    for counts in (other, zero):
        assert counts["threads"] == same["threads"]
        assert counts["same"] <= counts["kinds"] < counts["threads"]
        assert counts["same_quantities"] < counts["quantities"]
        assert counts["price_gap"] > 0.0


def test_shadows_leave_the_teacher_s_world_as_it_is(check, teacher):
    [played] = play_worlds([draw_world(PLAN)], teacher, DayWeights(), [None], record=True)
    assert check["scores"] == {"teacher": played.seats[0].score, "student": played.seats[0].score}
    assert check["cpu"]["asked"] == check["cpu"]["decisions"]["teacher"]["calls"] >= 20


def test_worlds_are_summarised(check):
    low = {"threads": 10, "kinds": 5, "same": 0, "quantities": 4, "same_quantities": 1, "prices": 2, "price_gap": 0.5}
    high = low | {"kinds": 10, "same": 5}
    cpu = {"answers": {"teacher": 4e-6, "student": 1e-6}, "asked": 2}
    spent = {"teacher": {"seconds": 4e-4, "calls": 2}, "student": {"seconds": 1e-4, "calls": 1}}
    checks = [
        {"agreement": {"student": counts}, "scores": scores, "cpu": cpu | {"decisions": spent}}
        for counts, scores in ((low, {"teacher": 1.0, "student": 1.1}), (high, {"teacher": 1.2, "student": 1.2}))
    ]
    summary = summarize_checks(checks)
    assert summary["agreement"]["student"] == {
        "decisions": 20,
        "same_kind": 0.75,
        "same_decision": 0.25,
        "same_goal_quantity": 0.25,
        "goal_price_gap": 0.25,
    }
    assert summary["score"]["difference"] == pytest.approx(0.05)
    assert summary["cpu"]["networks_us"] == pytest.approx({"teacher": 2.0, "student": 0.5, "ratio": 0.25})
    assert summary["cpu"]["decision_us"] == pytest.approx({"teacher": 200.0, "student": 100.0, "ratio": 0.5})
    assert summarize_checks([check])["agreement"]["student"]["same_decision"] == 1.0

"""What learning added: the plans, and the figures of made-up worlds."""

from dataclasses import replace

import pytest
from benchmarks.harness import Benchmark

from benchmarks import learned
from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.arena.evaluation import Evaluation
from litaagent_std.arena.seeds import SeedBlock
from litaagent_std.arena.worlds import draw


def plans(*words):
    return learned.plans(Benchmark("learned", "", argv=list(words), add_options=learned.add_options))


def played(plan, gain):
    """An evaluation of 6 worlds: the agents gain what is given over the reference, and the worlds differ."""
    units = {}
    for index in range(6):
        seed = plan.block.seed(index)
        world = draw(plan.rules, seed)
        facts = {"level": world.level, "n_days": world.setup.n_days, "seed": seed, "seat": world.seat, "n_errors": 0}
        for name in (plan.focal.name, *(other.name for other in plan.against)):
            score = 1.0 + 0.1 * index + gain.get(name, 0.0)
            unit = {
                **facts,
                "score": score,
                "cpu": {"day_ms": 1.0 if name == "lita-v1" else 2.0, "world_seconds": 3600.0},
            }
            units.setdefault(name, {})[index] = unit
    return Evaluation(plan, units)


def test_the_verdict_has_seeds_of_its_own_and_a_number_of_worlds_that_is_fixed():
    verdict = plans()["verdict"]
    assert verdict.block.name == "verdict:partners"
    assert verdict.block.seed(0) != SeedBlock("verdict").seed(0)
    assert not verdict.stop_early
    assert [other.name for other in verdict.against] == ["lita-v1"]
    assert verdict.rules.days == (50, 100, 200)
    assert len(verdict.rules.opponents) == 15


def test_a_quick_run_never_touches_the_verdict():
    for plan in plans("--quick").values():
        assert plan.block.name.startswith("gate:learned-quick-")
    assert set(plans("--groups", "parts")) == {"parts"}


def test_urgency_alone_is_the_default_agent_with_hand_written_beliefs():
    urgency = LitaAgentHRL(**learned.URGENT).brain
    assert urgency.layers.l3 == "model"
    assert urgency.all_parameters.urgency_high > 0.0


def test_figures_are_paired_differences_and_a_goal_can_be_missed():
    evaluation = played(plans("--quick")["verdict"], {"partner models": 0.03})
    figures = {figure.name: figure for figure in learned.REPORTS["verdict"](evaluation)}
    everywhere = figures["verdict, all levels: mean"]
    assert everywhere.value == pytest.approx(0.03)
    assert everywhere.ok
    worse = played(plans("--quick")["verdict"], {"partner models": -0.01})
    figures = {figure.name: figure for figure in learned.REPORTS["verdict"](worse)}
    assert not figures["verdict, all levels: mean"].ok
    assert not figures["verdict, all levels: lower end"].ok


def test_parts_are_added_one_by_one_in_the_worlds_of_the_verdict():
    planned = plans()
    assert planned["parts"].block.name == planned["verdict"].block.name
    assert planned["parts"].rules == planned["verdict"].rules
    evaluation = played(plans("--quick")["parts"], {"partner models": 0.03, "urgency": 0.02})
    figures = {figure.name: figure.value for figure in learned.REPORTS["parts"](evaluation)}
    assert figures["parts, urgency: mean"] == pytest.approx(0.02)
    assert figures["parts, types: mean"] == pytest.approx(0.01)
    assert figures["parts, both: mean"] == pytest.approx(0.03)


def test_the_default_agent_has_a_block_of_its_own():
    planned = plans("--groups", "hierarchy")["hierarchy"]
    assert planned.block.name == "verdict:hierarchy"
    assert planned.worlds == 600
    assert [competitor.name for competitor in (planned.focal, *planned.against)] == ["lita", "lita-v1"]
    evaluation = played(plans("--groups", "hierarchy", "--quick")["hierarchy"], {"lita": 0.02})
    figures = {figure.name: figure for figure in learned.REPORTS["hierarchy"](evaluation)}
    assert figures["hierarchy, all levels: mean"].value == pytest.approx(0.02)
    assert not figures["hierarchy, all levels: mean"].ok


def test_costs_and_exceptions_count():
    evaluation = played(plans("--quick")["verdict"], {})
    figures = {figure.name: figure for figure in learned.cost_figures([evaluation], 2.0)}
    assert figures["time per day, ratio (median)"].value == 2.0
    assert not figures["time per day, ratio (median)"].ok
    assert figures["CPU hours"].value == 12
    own = evaluation.units["partner models"]
    broken = replace(evaluation, units={**evaluation.units, "partner models": {0: {**own[0], "n_errors": 1}}})
    assert not {f.name: f for f in learned.cost_figures([broken], 1.0)}["our exceptions"].ok


def test_the_time_per_day_is_a_ratio_in_the_same_worlds(monkeypatch):
    seen = []

    def play(rules, seed, spec):
        seen.append((seed, spec.path.rsplit(".", 1)[1]))
        return {"cpu": {"day_ms": 1.0 if spec.path.endswith("V1") else 1.0 + len(seen)}}

    monkeypatch.setattr(learned, "play_unit", play)
    assert learned.day_ratio(worlds=3, days=10) == {"ratio": 4.0}, "the median of 2, 4 and 6"
    assert [name for _, name in seen] == ["LitaAgentHRL", "LitaAgentV1"] * 3
    assert len({seed for seed, _ in seen}) == 3

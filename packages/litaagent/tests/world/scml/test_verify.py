import json
from collections import Counter
from dataclasses import replace

import pytest

from litaagent_std.world.scml import verify
from litaagent_std.world.scml.published import all_paths
from litaagent_std.world.scml.verify import Plan, VerifyConfig, compare, main, plan

FAST_AGENTS = ("AS0", "BalancedGreedy", "COW", "DogAgent", "Rohn", "SBD", "TakaLink", "penguin")


def test_the_plan_seats_every_agent_often_enough():
    plans = plan(VerifyConfig())
    seats = Counter(path for case in plans for path in case.competitors)
    assert len(plans) == 200
    assert set(seats) == set(all_paths())
    assert min(seats.values()) >= 5
    assert {case.inventory for case in plans} == {"as_shipped", "depleting"}
    assert {case.fill for case in plans} == {"defaults", "competitors"}
    assert len({case.seed for case in plans}) == 200


def test_agents_can_be_chosen():
    plans = plan(VerifyConfig(agents=("penguin",), configs=3))
    assert {path for case in plans for path in case.competitors} == {path for path in all_paths() if "penguin" in path}
    with pytest.raises(ValueError, match="no agent's class path contains"):
        plan(VerifyConfig(agents=("nobody",)))


@pytest.mark.parametrize("index", range(5))
def test_both_engines_emit_the_same_events(index):
    chosen = [path for path in all_paths() if any(part in path for part in FAST_AGENTS)]
    seated = tuple(chosen[(2 * index + k) % len(chosen)] for k in range(3))
    fill = "competitors" if index == 3 else "defaults"
    result = compare(Plan(50 + index, seated, fill, "depleting" if index % 2 else "as_shipped", 8))
    assert result.equal, result.difference
    assert result.events > 500
    assert set(seated) <= set(result.seated)


def disturb(monkeypatch):
    """Gives the fast engine exogenous contracts that cost a little more on the third day."""

    def run(case, setup, engine, trace):
        if engine == "fast":
            exogenous = (replace(item, unit_price=item.unit_price + (item.day == 2)) for item in setup.exogenous)
            setup = replace(setup, exogenous=tuple(exogenous))
        return original(case, setup, engine, trace)

    original = verify._run_world
    monkeypatch.setattr(verify, "_run_world", run)


def test_a_difference_is_found_and_shown(monkeypatch):
    disturb(monkeypatch)
    result = compare(Plan(51, (all_paths()[0],), "defaults", "as_shipped", 6))
    assert not result.equal
    assert "day_start: DayStart(day=2" in result.difference
    assert "scml:" in result.difference
    assert "fast:" in result.difference


def test_a_killed_run_resumes_and_differences_decide_the_exit_status(tmp_path, capsys):
    results = tmp_path / "verify.jsonl"
    words = ["--workers", "1", "--configs", "2", "--days", "6", "--agents", "cow", "--results", str(results)]
    assert main(words) == 0
    first, second = results.read_text().strip().splitlines()
    results.write_text(first + "\n" + second[:50])  # killed while it wrote
    capsys.readouterr()
    assert main(words) == 0
    assert "identical: 2, different: 0" in capsys.readouterr().out
    lines = results.read_text().splitlines()
    assert lines[:2] == [first, second[:50]]
    assert [json.loads(line)["key"] for line in lines[2:]] == [json.loads(second)["key"]]
    results.write_text(json.dumps(json.loads(first) | {"equal": False, "difference": "event 1"}) + "\n" + second)
    assert main(words) == 1
    assert "different: 1" in capsys.readouterr().out

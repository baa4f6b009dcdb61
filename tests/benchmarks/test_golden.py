"""A subset of the golden worlds (all levels, both regimes) comes out as pinned; `make golden` plays all."""

import json
from pathlib import Path

import pytest
from benchmarks.golden.flipped import first_difference
from benchmarks.golden.worlds import cases, variant_spec

from litaagent_std.agents.variants import REFERENCE

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
FIRST = 22
"""Worlds that the tests play."""


@pytest.fixture
def golden(warm_python):
    """Runs ``python -m benchmarks.golden``."""

    def golden(*words):
        return warm_python.run("python", "-m", "benchmarks.golden", *words, "--quiet", folder=ROOT)

    return golden


def test_the_first_worlds_come_out_as_pinned(golden):
    done = golden("worlds", "--first", str(FIRST), "--check", str(RESULTS / "golden_worlds.json"))
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_twenty_of_them_are_of_the_reference_agent(tmp_path):
    variants = [{word.partition(":")[2] for word in case.ours} for case in cases()[:FIRST]]
    assert variants.count({"default"}) == 20
    assert variant_spec("default", tmp_path).params == REFERENCE  # the settings of lita-v1


def test_another_result_is_noticed(golden, tmp_path):
    rows = json.loads((RESULTS / "golden_worlds.json").read_text())
    rows[2]["scores"][0] = (0.5).hex()
    (tmp_path / "other.json").write_text(json.dumps(rows))
    done = golden("worlds", "--only", "2", "--first", "2", "--check", str(tmp_path / "other.json"))
    assert done.returncode == 1
    assert "case 2 differs in scores" in done.stdout


def test_decisions_do_not_depend_on_the_vector_instructions_of_the_machine(golden):
    done = golden("worlds", "--first", "4", "--baseline-cpu", "--check", str(RESULTS / "golden_worlds.json"))
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_the_first_decision_that_differs_is_named():
    before = ["day 0", "0,0,3,-1,5,2,20", "day 1", "7,1,3,1,5,2,20", "7,2,4,0,-1,-1,-1"]
    now = [*before[:3], "7,1,3,1,4,2,20", before[4]]
    assert first_difference(now, before) == (
        "first on day 1: negotiation 7, round 1, seat 3: response 1, offer of 4 units for day 2 at 20; "
        "before: negotiation 7, round 1, seat 3: response 1, offer of 5 units for day 2 at 20"
    )
    assert first_difference(before[:4], before).endswith("seat 4: response 0, no offer")
    assert first_difference(before, before) == "in no turn: the decisions are the same"

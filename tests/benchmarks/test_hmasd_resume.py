import pytest
import torch
from benchmarks.harness import Benchmark

from benchmarks import hmasd as bench
from benchmarks import hmasd_resume as resume

SAME = {"killed": True, "values": 770, "different": 0, "same_metrics": True}


@pytest.mark.parametrize(
    ("changes", "met"),
    [({}, True), ({"different": 1}, False), ({"killed": False}, False), ({"same_metrics": False}, False)],
    ids=str,
)
def test_the_goal_needs_a_kill_and_no_difference(tmp_path, monkeypatch, changes, met):
    monkeypatch.setattr("benchmarks.harness.RESULTS", tmp_path)
    harness = Benchmark("hmasd", "", argv=["--only", "nothing"], add_options=bench.options)
    harness.keep("killed-run", {"steps": 8 * resume.BATCH}, SAME | changes)
    [figure] = resume.resume_figures(harness)
    assert figure.ok is met
    assert "770" in figure.note


def test_leaves_are_compared_by_path_type_and_value():
    state = {"a": [torch.zeros(2), 3], "b": {"c": None}}
    leaves = dict(resume._leaves(state))
    assert list(leaves) == ["/a/0", "/a/1", "/b/c"]
    assert resume._equal(leaves["/a/0"], torch.zeros(2))
    assert not resume._equal(leaves["/a/0"], torch.ones(2))
    assert not resume._equal(leaves["/a/1"], 3.0)
    assert not resume._equal(leaves["/a/0"], None)

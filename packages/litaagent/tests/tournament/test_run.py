"""Tournaments: the same on every executor and engine, whatever is killed, and robust against accidents."""

import json

import pytest

from litaagent_std.records.manifest import Manifest
from litaagent_std.records.reader import open_records

pytestmark = pytest.mark.timeout(900)  # a busy machine takes long to import scml in every process

FINAL = ("records", "logs", "scores.csv", "total_scores.csv", "results.json")


@pytest.mark.parametrize("other", ["scml", "processes", "ray"])
def test_records_are_the_same_bytes_on_every_executor_and_engine(finished, tree, other):
    expected = tree(finished / "inline", *FINAL)
    assert len([name for name in expected if name.endswith(".parquet")]) == 22
    assert len([name for name in expected if name.endswith("negotiations.csv")]) == 6
    assert tree(finished / other, *FINAL) == expected


def test_killed_at_random_moments_nothing_is_lost_or_repeated(run_program, tree, tmp_path):
    struck, finished = map(int, run_program("kill", tmp_path, 0, 50).split())
    assert struck >= 50
    expected = tree(tmp_path / "whole", *FINAL)
    survivors = sorted(path for path in tmp_path.iterdir() if path.name.startswith("killed"))
    assert len(survivors) == finished
    for folder in survivors:
        assert tree(folder, *FINAL) == expected
        played = [json.loads(line)["world"] for line in (folder / "wall_clock.jsonl").read_text().splitlines()]
        assert len(played) == len(set(played)), "no finished world is played again"


def test_killed_at_every_file_operation_the_records_come_out_the_same(run_program, tree, tmp_path):
    kills = int(run_program("step", tmp_path)) - 1
    assert kills >= 10
    assert tree(tmp_path / "stepped", "records") == tree(tmp_path / "whole", "records")


def test_accidents_are_retried_then_recorded_and_never_stop_the_tournament(run_program, tmp_path):
    run_program("accidents", tmp_path)
    folder = tmp_path / "accidents"
    manifest = Manifest.read(folder / "records")
    assert manifest.complete
    reasons = " ".join(manifest.failed.values())
    assert len(manifest.failed) == 2
    assert "worker died" in reasons
    assert "raised: ValueError: never born" in reasons
    assert len(open_records(folder).keys) == 1
    attempts = [len(json.loads(line)["attempts"]) for line in (folder / "wall_clock.jsonl").read_text().splitlines()]
    assert sorted(attempts) == [1, 2, 2]
    assert len(json.loads((folder / "results.json").read_text())["failed"]) == 2
    [reason] = Manifest.read(tmp_path / "hanging" / "records").failed.values()
    assert "timed out: longer than the limit of 20 s" in reason

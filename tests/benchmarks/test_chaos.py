"""The short form of ``make chaos``: one command, a few kills; and the comparison itself."""

import json

import pytest
from benchmarks.chaos import ChaosConfig, Command, commands, main, results


@pytest.mark.timeout(900)
def test_a_disturbed_command_ends_like_an_undisturbed_one(tmp_path, capsys):
    config = ChaosConfig(output_dir=tmp_path, kills=2, seconds=200.0, commands=("arena",))
    assert main(config) == 0, capsys.readouterr().out
    lines = [json.loads(line) for line in (tmp_path / "chaos.jsonl").read_text().splitlines()]
    assert all(line["equal"] for line in lines)
    assert "with another result" in capsys.readouterr().out


def test_other_results_are_told_and_the_clock_does_not_count(tmp_path):
    command = Command((), ("run/*.json",))
    (tmp_path / "run").mkdir()
    (tmp_path / "run/a.json").write_text(json.dumps({"score": 1.0, "cpu": {"seconds": 3.0}}))
    before = results(tmp_path, command)
    (tmp_path / "run/a.json").write_text(json.dumps({"score": 1.0, "cpu": {"seconds": 4.0}}))
    assert results(tmp_path, command) == before
    (tmp_path / "run/a.json").write_text(json.dumps({"score": 1.5}))
    assert results(tmp_path, command) != before


def test_every_resumable_command_is_disturbed(tmp_path):
    named = " ".join(" ".join(command.words[:2]) for command in commands(tmp_path).values())
    for word in ("tournament", "arena", "tune", "dataset build", "train", "train-online", "distill", "hmasd train"):
        assert word in named

"""Tournaments: the same on every executor and engine, whatever is killed, and robust against accidents."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from apexrl.runs.errors import ConfigurationError
from apexrl.runs.reading import read_sealed
from litaagent_std.records.reader import open_records
from litaagent_std.records.storage.manifest import Manifest
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.play import make_setup
from litaagent_std.tournament.run import run_tournament

pytestmark = pytest.mark.timeout(900)  # a busy machine takes long to import scml in every process

FINAL = ("records", "logs", "scores.csv", "total_scores.csv", "results.json")


@pytest.mark.parametrize("other", ["scml", "processes", "ray"])
def test_records_are_the_same_bytes_on_every_executor_and_engine(finished, tree, other):
    expected = tree(finished / "inline", *FINAL)
    assert len([name for name in expected if name.endswith(".parquet")]) == 22
    assert len([name for name in expected if name.endswith("negotiations.csv")]) == 6
    assert tree(finished / other, *FINAL) == expected


def test_killed_at_random_moments_nothing_is_lost_or_repeated(run_program, tree, tmp_path):
    struck, finished = map(int, run_program("kill", tmp_path, 0, 20).split())
    assert struck >= 20
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
    assert run_program("accidents", tmp_path).split() == ["1"], "not one world of the last succeeded"
    folder = tmp_path / "accidents"
    manifest = Manifest.read(folder / "records")
    assert manifest.complete
    reasons = " ".join(manifest.failed.values())
    assert len(manifest.failed) == 1
    assert "worker died" in reasons
    assert read_sealed(folder / "broken.json") == {"RaisesAtBirth": "raised: ValueError: never born"}
    assert len(open_records(folder).keys) == 2
    results = json.loads((folder / "results.json").read_text())
    assert [standing["competitor"] for standing in results["standings"]] == ["RandomStdAgent"]
    attempts = [len(json.loads(line)["attempts"]) for line in (folder / "wall_clock.jsonl").read_text().splitlines()]
    assert sorted(attempts) == [1, 1, 2]
    assert len(results["failed"]) == 1
    [reason] = Manifest.read(tmp_path / "hanging" / "records").failed.values()
    assert "timed out: longer than the limit of 20 s" in reason


def test_competitors_that_cannot_play_are_named_before_the_start(tmp_path, capfd, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    words = {"configs": 1, "runs": 1, "steps": 5, "levels": 2, "executor": "inline", "retries": 0, "csv": False}
    born = "troubled_agents.RaisesAtBirth"
    with pytest.raises(ConfigurationError, match=r"no competitor can play: RaisesAtBirth: raised"):
        run_tournament(TournamentConfig(competitors=(born,), output_dir=tmp_path / "nobody", **words))
    both = TournamentConfig(competitors=(born, "RandomStd"), output_dir=tmp_path / "one", **words)
    outcome = run_tournament(both)
    assert outcome.exit_code == 0
    assert [standing.competitor for standing in outcome.results.standings] == ["RandomStdAgent"]
    assert "RaisesAtBirth cannot play (raised: " in capfd.readouterr().out


def test_failed_worlds_can_be_played_again(tmp_path, monkeypatch, tree):
    words = {"competitors": ("RandomStd", "GreedyStd"), "configs": 2, "runs": 1, "steps": 5, "levels": 2}
    words |= {"executor": "inline", "retries": 0, "csv": False, "quiet": True, "shard_size": 3}
    whole = TournamentConfig(output_dir=tmp_path / "whole", **words)
    assert run_tournament(whole).exit_code == 0
    mended = TournamentConfig(output_dir=tmp_path / "mended", **words)

    def fail(task):
        if task.spec.world in (0, 3):
            raise ValueError("bad day")
        return make_setup(task)

    with monkeypatch.context() as patch:
        patch.setattr("litaagent_std.tournament.play.make_setup", fail)
        run_tournament(mended)
    assert set(Manifest.read(tmp_path / "mended/records").failed) == {0, 3}
    assert run_tournament(replace(mended, retry_failed=True)).worlds == 2
    assert tree(tmp_path / "mended", "records", "results.json") == tree(tmp_path / "whole", "records", "results.json")


def test_what_agents_write_to_descriptors_is_not_seen(tmp_path, capfd, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    words = {"configs": 1, "runs": 1, "steps": 5, "levels": 2, "executor": "inline", "csv": False, "quiet": True}
    agents = ("troubled_agents.WritesToDescriptors",)
    assert run_tournament(TournamentConfig(competitors=agents, output_dir=tmp_path, **words)).exit_code == 0
    assert capfd.readouterr() == ("", "")

"""``lita collect``, ``lita competitors``, and ``lita records`` and ``lita export-scml`` on what was collected."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lita.main import main

ROOT = Path(__file__).parents[4]
SMALL = [
    *("--competitors", "RandomStd", "GreedyStd", "--configs", "1", "--runs", "1"),
    *("--steps", "5", "--levels", "2", "--parallelism", "serial"),
]


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A small tournament by ``runners.hrl_data_runner``: its folder and what was printed."""
    folder = tmp_path_factory.mktemp("runner") / "smoke_std"
    words = [sys.executable, "-m", "runners.hrl_data_runner", *SMALL, "--output-dir", str(folder), "--foreground"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_runner_prints_plan_progress_and_standings(collected):
    folder, printed = collected
    for part in (
        "2 competitors: RandomStdAgent, GreedyStdAgent",
        "1 configurations x 1 runs x 2 worlds each = 2 worlds",
        "world 1 (configuration 0, run 0, assignment 1)",
        "2 of 2 worlds",
        "standings (truncated mean, the official metric)",
        f"{folder}: finished; 2 worlds played",
    ):
        assert part in printed


def test_records_can_be_shown_checked_and_printed(collected, capsys):
    folder, _ = collected
    assert main(["records", str(folder), "--verify"]) == 0
    assert "every file is as it was written" in capsys.readouterr().out
    assert main(["records", str(folder), "--world", "1", "--day", "2", "--negotiation", "3"]) == 0
    assert capsys.readouterr().out.startswith("world 1, day 2, negotiation 3: ")
    assert main(["records", str(folder), "--world", "1", "--day", "99"]) == 2
    assert "world 1 has no negotiation on day 99. There are negotiations on days 0 to" in capsys.readouterr().err
    assert main(["records", str(folder), "--world", "1", "--day", "2", "--negotiation", "999"]) == 2
    assert "world 1 has no negotiation 999 on day 2. There are negotiations 0 to" in capsys.readouterr().err
    assert main(["export-scml", str(folder), "--worlds", "0", "999"]) == 2
    assert "--worlds 999: there are no such finished worlds" in capsys.readouterr().err
    assert main(["records", str(folder), "--world", "999"]) == 2
    assert "Worlds are 0 to 1" in capsys.readouterr().err


def test_logs_can_be_exported_later(collected, tmp_path, capsys):
    original, _ = collected
    folder = tmp_path / "copy"
    shutil.copytree(original / "records", folder / "records")
    assert main(["export-scml", str(folder), "--worlds", "1"]) == 0
    assert "logs of 1 worlds written" in capsys.readouterr().out
    assert {path.name for path in (folder / "logs").iterdir()} == {"world-000001"}
    assert main(["export-scml", str(folder)]) == 0
    assert "logs of 1 worlds written" in capsys.readouterr().out
    for name in ("world-000000/negotiations.csv", "world-000001/contracts.csv", "world-000001/stats.csv"):
        assert (folder / "logs" / name).read_bytes() == (original / "logs" / name).read_bytes()
    assert (folder / "scores.csv").read_bytes() == (original / "scores.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--competitors", "RandomStd", "GreedyStd", "--max-worlds-per-config", "1"], "2 competitors plays every seat"),
        (["--parallelism", "loky", "--executor", "ray"], "names of one option"),
        (["--competitors", "Nobody"], "there is no competitor 'Nobody'"),
        (["--competitors", "RandomStd", "nowhere.Nobody"], "No module named 'nowhere'"),
        (["--competitors", "os.Nobody"], "PYTHONPATH=FOLDER before the command"),
        (["--competitors", "os.system"], "a seat needs a subclass of scml's OneShotAgent"),
        (["--competitors", "RandomStd", "--steps", "4"], "more days than there are levels"),
    ],
)
def test_wrong_options_are_refused_with_the_reason(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["collect", *words]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "a refused command must leave no files"


def test_competitors_are_listed(capsys):
    assert main(["competitors", "built-in"]) == 0
    assert "scml.std.agents.greedy.GreedyStdAgent" in capsys.readouterr().out

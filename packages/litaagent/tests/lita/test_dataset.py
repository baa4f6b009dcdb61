"""``lita dataset``: build, stats and export from the command line."""

import json

import pytest

from lita.main import main


@pytest.fixture(scope="module")
def tournament(collect, tmp_path_factory):
    return collect(tmp_path_factory.mktemp("cli") / "one", steps=4)


def test_a_dataset_is_built_shown_and_exported(tournament, tmp_path, capsys):
    target = str(tmp_path / "dataset")
    build = [
        "dataset",
        "build",
        str(tournament),
        "--output-dir",
        target,
        "--agent-name",
        "Greedy",
        "--num-workers",
        "1",
    ]
    assert main(build) == 0
    first = capsys.readouterr().out
    assert "parsed" in first
    assert main(build) == 0
    assert "parsed" not in capsys.readouterr().out
    assert main(["dataset", "stats", target]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("target price", "delivery", "p99", "counter-offers taken"))
    assert main(["dataset", "stats", target, "--as-json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["worlds"] == 2
    assert main(["dataset", "export", target]) == 0
    assert {path.name for path in (tmp_path / "dataset" / "parquet").iterdir()} == {
        "README.md",
        "macro.parquet",
        "micro.parquet",
    }


def test_wrong_arguments_are_refused_without_a_traceback(tournament, tmp_path, capsys):
    assert main(["dataset", "build", str(tournament)]) == 2
    assert "no recorded factory matches agent_name='PenguinAgent'" in capsys.readouterr().err
    assert main(["dataset", "stats", str(tmp_path)]) == 2
    assert "lita dataset build" in capsys.readouterr().err

"""``lita explain``, ``lita export`` and ``lita new-agent``."""

import json
import subprocess
import sys
import zipfile

import pytest

from lita.main import main
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.training.export import export_layer
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import features_digest

SMALL = ["--days", "6", "--levels", "2"]


@pytest.fixture(autouse=True)
def no_restart(monkeypatch):
    """Keep the command from restarting the process of the tests with fixed string hashing."""
    monkeypatch.setattr("litaagent_std.world.reproducible.hashing.restart_with_fixed_hashing", lambda: None)


def test_explain_prints_goal_bounds_and_reasons(capsys):
    assert main(["explain", "3", "2", "09Gr@1", *SMALL]) == 0
    printed = capsys.readouterr().out
    for part in ("sells to 09Gr@1", "goal, units", "lines free (hard bound)", "covered by input", "our limit", "taken"):
        assert part in printed


def test_explain_takes_an_evaluation_of_the_arena(tmp_path, capsys):
    words = ["arena", "lita", "--against", "RandomStd", "--opponents", "built-in", "--worlds", "1", "--days", "6"]
    words += ["--levels", "2", "--executor", "inline", "--quiet", "--output-dir", str(tmp_path)]
    assert main(words) == 0
    [report] = tmp_path.glob("*/report.json")
    source = ["--source", str(report.parent)]
    capsys.readouterr()
    assert main(["explain", "0", "2", "nobody", *source]) == 2
    refusal = capsys.readouterr().err
    partner = refusal.partition("): ")[2].partition(",")[0].partition(".")[0]
    assert main(["explain", "0", "2", partner, *source]) == 0
    assert partner in capsys.readouterr().out
    assert main(["explain", "1", "2", partner, *source]) == 2
    assert "worlds 0 to 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["3", "6", "09Gr@1"], "days 0 to 5"),
        (["3", "2", "nobody"], "by seat: seat 0 (00LHR@0): 08Ra@1, 09Gr@1"),
        (["3", "2", "00LHR@0"], "Add --seat"),
        (["3", "2", "09Gr@1", "--source", "nowhere"], "neither a tournament nor an evaluation"),
    ],
)
def test_explain_refuses_wrong_arguments(words, message, capsys):
    assert main(["explain", *words, *SMALL]) == 2
    assert message in capsys.readouterr().err


def test_export_writes_and_verifies_a_submission(tmp_path, capsys):
    path = tmp_path / "mine.zip"
    assert main(["export", str(path), "--name", "Mine", "--days", "5"]) == 0
    printed = capsys.readouterr().out
    assert "class mine.Mine" in printed
    assert "without this project: 5 days" in printed
    assert path.is_file()


def test_export_refuses_wrong_options(tmp_path, capsys):
    assert main(["export", str(tmp_path / "x.zip"), "--l4", "learned"]) == 2
    assert "l4 shall be learned, but there are no weights" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "x.zip"), "--parameters", "nothing"]) == 2
    assert "'nothing'" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "x.zip"), "--weights", str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_the_written_agent_passes_its_own_test(tmp_path, capsys, mode, warm_python):
    """Also with the import mode of this project's own tests."""
    assert main(["new-agent", "MyFirstAgent", "--dir", str(tmp_path / "mine")]) == 0
    printed = capsys.readouterr().out
    test = tmp_path / "mine" / "test_my_first_agent.py"
    assert f"pytest {test}" in printed
    words = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    words += ["--import-mode", mode, str(test)]
    done = warm_python.run(*words, folder=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "2 passed" in done.stdout


def test_an_agent_with_weights_carries_and_plays_them(tmp_path, capsys, warm_python):
    run, mine = tmp_path / "run", tmp_path / "mine"
    (run / "weights").mkdir(parents=True)
    meta = {"features_digest": features_digest(), "l1_digest": l1_digest(), "horizon": 10}
    export_layer(HorizonManagerPPO(10, dim=8), run / "weights" / "l2.npz", meta)
    words = ["new-agent", "Trained", "--dir", str(mine), "--weights"]
    assert main([*words, str(tmp_path / "nowhere")]) == 2
    assert "there are no weights" in capsys.readouterr().err
    assert not mine.exists()
    assert main([*words, str(run)]) == 0
    assert (mine / "trained_weights" / "l2.npz").read_bytes() == (run / "weights" / "l2.npz").read_bytes()
    done = warm_python.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(mine), folder=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "2 passed" in done.stdout
    assert main([*words, str(run)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_the_written_files_pass_ruff(tmp_path):
    main(["new-agent", "Neat", "--dir", str(tmp_path)])
    for words in (["check", "--isolated", "--line-length", "120"], ["format", "--check", "--line-length", "120"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "."], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_new_agent_overwrites_nothing(tmp_path, capsys):
    (tmp_path / "test_other.py").write_text("mine")
    assert main(["new-agent", "Other", "--dir", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "test_other.py").read_text() == "mine"
    assert not (tmp_path / "other.py").exists()


@pytest.mark.parametrize("name", ["my-agent", "1st", "None", "_Hidden", "Ünder"])
def test_new_agent_needs_a_python_name(name, tmp_path, capsys):
    assert main(["new-agent", name, "--dir", str(tmp_path)]) == 2
    assert f"{name!r} cannot name an agent" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_explain_prints_types_and_urgency(capsys):
    agent = 'lita:{"l3": "types", "parameters": {"urgency_low": 0.6, "urgency_high": 1.0}}'
    assert main(["explain", "3", "4", "09Gr@1", *SMALL, "--agent", agent]) == 0
    printed = capsys.readouterr().out
    for part in ("type of 09Gr@1 at the first decision", "; at the last: ", "urgency"):
        assert part in printed


def test_export_leaves_the_layers_to_the_agent_by_default(tmp_path, capsys):
    weights, path = tmp_path / "run" / "weights", tmp_path / "mine.zip"
    weights.mkdir(parents=True)
    made_with = {"horizon": 10, "features_digest": features_digest(), "l1_digest": l1_digest()}
    export_layer(HorizonManagerPPO(10, dim=8), weights / "l2.npz", made_with)
    assert main(["export", str(path), "--weights", str(tmp_path / "run"), "--no-verify"]) == 0
    capsys.readouterr()
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("lita_agent_hrl/settings.json")) == {}
        assert b"Learned layers: l2." in archive.read("README.md")

"""``lita new-agent`` as people run it: what it writes works at once."""

import subprocess
import sys

import pytest

from lita.main import main


@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_the_written_agent_passes_its_own_test(tmp_path, capsys, mode):
    """Also with the import mode of this project, where people try it first."""
    assert main(["new-agent", "MyFirstAgent", "--dir", str(tmp_path / "mine")]) == 0
    printed = capsys.readouterr().out
    test = tmp_path / "mine" / "test_my_first_agent.py"
    assert f"pytest {test}" in printed
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    words += ["--import-mode", mode, str(test)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "2 passed" in done.stdout


def test_the_written_files_keep_the_house_style(tmp_path):
    main(["new-agent", "Neat", "--dir", str(tmp_path)])
    for words in (["check", "--isolated", "--line-length", "120"], ["format", "--check", "--line-length", "120"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "test_other.py").write_text("mine")
    assert main(["new-agent", "Other", "--dir", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "test_other.py").read_text() == "mine"
    assert not (tmp_path / "other.py").exists()


@pytest.mark.parametrize("name", ["my-agent", "1st", "None", "_Hidden", "Ünder"])
def test_a_name_must_be_one_of_python(name, tmp_path, capsys):
    assert main(["new-agent", name, "--dir", str(tmp_path)]) == 2
    assert f"{name!r} cannot name an agent" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

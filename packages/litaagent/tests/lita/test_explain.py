"""``lita explain`` as people run it."""

import pytest

from lita.main import main

SMALL = ["--days", "6", "--levels", "2"]


@pytest.fixture(autouse=True)
def no_restart(monkeypatch):
    """The command would replace a process that salts its hashes by a new one."""
    monkeypatch.setattr("litaagent_std.world.reproducible.hashing.restart_with_fixed_hashing", lambda: None)


def test_it_prints_goal_bounds_and_reasons(capsys):
    assert main(["explain", "3", "2", "09Gr@1", *SMALL]) == 0
    printed = capsys.readouterr().out
    for part in ("sells to 09Gr@1", "goal, units", "lines free (hard bound)", "covered by input", "our limit", "taken"):
        assert part in printed


def test_an_evaluation_of_the_arena_is_explained(tmp_path, capsys):
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
    ("words", "told"),
    [
        (["3", "6", "09Gr@1"], "days 0 to 5"),
        (["3", "2", "nobody"], "by seat: seat 0 (00LHR@0): 08Ra@1, 09Gr@1"),
        (["3", "2", "00LHR@0"], "Add --seat"),
        (["3", "2", "09Gr@1", "--source", "nowhere"], "neither a tournament nor an evaluation"),
    ],
)
def test_what_is_wrong_is_said(words, told, capsys):
    assert main(["explain", *words, *SMALL]) == 2
    assert told in capsys.readouterr().err

"""``lita arena``: tables, picture, the same report with every executor, refused options."""

import xml.etree.ElementTree as ElementTree

import pytest

from apexrl.runs.reading import read_sealed
from lita.main import main

SMALL = [
    *("arena", "RandomStd", "--against", "SyncRandomStd", "--opponents", "built-in", "--quiet"),
    *("--worlds", "3", "--days", "8", "--levels", "2"),
]


@pytest.fixture(scope="module")
def inline(tmp_path_factory, lita):
    """A small evaluation in one process of its own: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("arena")
    return folder, lita(folder, *SMALL, "--executor", "inline", "--output-dir", folder)


def report_in(folder):
    [path] = folder.glob("*/report.json")
    report = read_sealed(path)
    for agent in report["agents"].values():
        del agent["cpu"]
    return report


def test_it_prints_tables_and_writes_a_picture(inline):
    folder, printed = inline
    for part in ("how they played", "RandomStdAgent minus the other", "too few worlds", "6 worlds played now"):
        assert part in printed
    [picture] = folder.glob("*/picture.svg")
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    for text in ("RandomStdAgent minus the other", ">SyncRandomStdAgent<", ">8 days (3)<"):
        assert text in picture.read_text(encoding="utf-8")


def test_processes_give_the_same_report(inline, tmp_path):
    assert main([*SMALL, "--executor", "processes", "--workers", "1", "--output-dir", str(tmp_path)]) == 0
    assert report_in(tmp_path) == report_in(inline[0])


def test_the_same_command_plays_nothing_again(inline, capsys):
    before = report_in(inline[0])
    assert main([*SMALL, "--executor", "processes", "--output-dir", str(inline[0])]) == 0
    assert "0 worlds played now, 6 were known" in capsys.readouterr().out
    assert report_in(inline[0]) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--block", "verdict"], "--open-verdict"),
        (["--days", "2"], "Use lengths of 3 or more"),
        (["--against", "Nobody"], "no competitor 'Nobody'"),
        (["--against", "nowhere.Nobody"], "nowhere.Nobody cannot be loaded"),
        (["--opponents", "built-in", "nowhere.Nobody"], "nowhere.Nobody cannot be loaded"),
        (["--places", "middle"], "Use more --levels"),
    ],
)
def test_bad_options_are_refused(words, message, tmp_path, capsys):
    assert main([*SMALL, *words, "--output-dir", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_worlds_with_the_seat_elsewhere_are_left_out(inline, tmp_path, lita):
    lita(tmp_path, *SMALL, "--places", "last", "--executor", "inline", "--output-dir", tmp_path)
    [path] = tmp_path.glob("*/report.json")
    assert report_in(tmp_path)["comparisons"][0]["difference"]["last"]["worlds"] == 3
    assert not (inline[0] / path.parent.name).exists()

"""The report: one file that loads nothing, with figures for papers beside it."""

import re

import pytest

from lita.main import main
from litaagent_std.dashboard.page import Link, Page, Table
from litaagent_std.dashboard.render import render_report
from litaagent_std.dashboard.report import NothingToReportError, pages_of


def test_a_report_of_everything(recorded, tmp_path, capsys):
    output = tmp_path / "mail/report.html"
    paths = [str(recorded / name) for name in ("tournament_history/small", "runs/one", "hmasd/first")]
    assert main(["report", *paths, "--output", str(output), "--world", "2"]) == 0
    assert str(output) in capsys.readouterr().out
    text = output.read_text(encoding="utf-8")
    assert text.count("/*! For license") <= 1
    for heading in ("World 2", "Negotiation", "Ranking by the official truncated mean", "episode/mean_reward"):
        assert heading in text
    targets = re.findall(r'<li><a href="#([^"]+)">', text)
    assert len(targets) == 5
    assert all(f'id="{target}"' in text for target in targets)
    assert "negotiation 1</dd>" not in text  # the next negotiation is not in the file
    own = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)  # what is not Plotly's
    assert "http" not in own.replace("http-equiv", "")
    names = {path.name for path in (tmp_path / "mail/report_figures").iterdir()}
    assert {
        "1_ranking.png",
        "1_ranking.svg",
        "2_map.svg",
        "3_negotiation_price.png",
        "4_episode_mean_reward.svg",
    } <= names


def test_by_default_it_lies_in_the_folder_and_figures_can_be_left_out(small):
    assert main(["report", str(small), "--no-figures"]) == 0
    assert (small / "report.html").stat().st_size > 1_000_000
    assert not (small / "report_figures").exists()


def test_a_folder_with_nothing_is_refused(tmp_path):
    with pytest.raises(NothingToReportError, match="lita serve"):
        pages_of(tmp_path)


def test_hostile_names_stay_text(recorded, hostile_name):
    text = render_report(pages_of(recorded / "tournament_history/hostile"), hostile_name)
    assert "<img src=x" not in text
    assert "<script>window.broken" not in text
    assert "&lt;img src=x" in text


def test_tables_and_texts_are_escaped():
    table = Table("<r>", ["<c>"], [["<d>", Link("<l>", "/world", {"name": "<n>"})]], n_texts=2)
    page = Page(template="home", title="<t>", context={"facts": [("<x>", "<y>")], "tables": [table]})
    text = render_report([page], "t")
    for letter in "txyrcdl":
        assert f"&lt;{letter}&gt;" in text
    assert "/world" not in text.split("<script>")[0]  # a file has no other pages

"""The report: one file that loads nothing, with figures for papers beside it."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from apexrl.charts import Chart, Heat, Series
from apexrl.charts.matplotlib import save_figure
from lita.main import main
from litaagent_std.dashboard.page import Page, Rows, Text
from litaagent_std.dashboard.report import NothingToReportError, pages_of
from litaagent_std.dashboard.static_report import html_of


def test_a_report_of_everything(recorded, tmp_path, capsys):
    output = tmp_path / "mail/report.html"
    paths = [str(recorded / name) for name in ("tournament_history/small", "runs/one", "hmasd/first")]
    assert main(["report", *paths, "--output", str(output), "--world", "2"]) == 0
    assert str(output) in capsys.readouterr().out
    text = output.read_text(encoding="utf-8")
    assert text.count("/*! For license") <= 1
    for heading in ("World 2", "Negotiation", "Ranking by the official truncated mean", "episode/mean_reward"):
        assert heading in text
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
    text = html_of(pages_of(recorded / "tournament_history/hostile"), title=hostile_name)
    assert "<img src=x" not in text
    assert "<script>window.broken" not in text
    assert "&lt;img src=x" in text


@pytest.mark.parametrize("kind", ["line", "points", "bar", "box"])
def test_every_kind_of_chart_is_drawn_with_hostile_names(kind, tmp_path, hostile_name):
    y = [1.0, 2.0, -3.0] if kind != "line" else [1.0, None, float("nan")]
    series = Series(name=hostile_name, x=["a$b$", "<b>", "c"], y=y, kind=kind, low=[0.0] * 3, high=[3.0, None, 3.0])
    for sideways in (True, False):
        chart = Chart(name="chart", title=hostile_name, series=[series], horizontal=sideways, stacked=kind == "bar")
        png, svg = save_figure(chart, tmp_path)
        assert png.read_bytes().startswith(b"\x89PNG")
        ElementTree.fromstring(svg.read_bytes())
        assert "<img" not in svg.read_text()


def test_a_matrix_is_drawn_and_the_same_twice(tmp_path):
    heat = Heat(
        name="heat", title="a", x=["p", "q"], y=["r", "s"], values=[[1, None], [-2, 0.5]], texts=[["1", ""], ["-2", ""]]
    )
    [first] = save_figure(heat, tmp_path, ("svg",))
    before = first.read_bytes()
    save_figure(heat, tmp_path, ("svg",))
    assert first.read_bytes() == before


def test_tables_and_texts_are_escaped():
    page = Page(title="<t>", blocks=[Text("<x>", "error"), Rows("<r>", ["<c>"], [["<d>"]])])
    text = html_of([page], "t")
    for letter in "txrcd":
        assert f"&lt;{letter}&gt;" in text

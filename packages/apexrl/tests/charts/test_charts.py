"""Charts as data: what plotly gets as JSON and what matplotlib writes."""

import json
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from apexrl.charts import (
    Band,
    Chart,
    Curve,
    Estimate,
    Heat,
    Panels,
    Series,
    bar_chart,
    calibration_chart,
    color_of,
    confusion_matrix,
    curve_over_seeds,
    draw,
    escape_markup,
    forest_plot,
    learning_curves,
    line_chart,
    plotly_figure,
    save_figure,
    save_svg,
    svg_text,
)
from apexrl.statistics import interval_over_seeds

HOSTILE = "<b>&x</b> $a_1$ \"quoted\" 'é'"
CURVES = [
    Curve(name="PPO", x=[0, 10], mean=[1, 2], low=[0, 1], high=[2, 3]),
    Curve(name="MAPPO", x=[0, 10], mean=[2, 3], low=[1, 2], high=[3, 4]),
]
BINS = [
    {"predicted": 0.1, "observed": 0.2, "count": 100},
    {"predicted": 0.8, "observed": 0.7, "count": 25},
]
FOREST = {
    "short": {"all": Estimate(value=0.1, low=0.0, high=0.2)},
    "full": {"all": Estimate(value=0.3, low=0.2, high=0.4), "rare": Estimate(value=0.5)},
}
CHARTS = {
    "learning": learning_curves(CURVES, name="learning", title="t", x_title="steps", y_title="return"),
    "line": line_chart({"train": [(0, 1.0), (1, 0.5)], "validation": [(0, 1.2)]}, name="line", title="t"),
    "bar": bar_chart({"a": 0.25, "b": 0.75}, name="bar", title="t", texts=["25 %", "75 %"]),
    "confusion": confusion_matrix(np.array([[3, 1], [0, 0]]), ["0", "1"], name="confusion", title="t"),
    "calibration": calibration_chart(BINS, name="calibration", title="t"),
    "forest": forest_plot(FOREST, name="forest", title="t", x_title="difference", reference=0.0),
    "box": Chart(name="box", title="t", series=[Series(name="one", x=[], y=[1, 2, None, 9], kind="box")]),
    "replay": Chart(name="replay", title="t", series=[Series(name="a", x=[0, 1, 2], y=[3, 4, 5], steps=[0, 1, 2])]),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_json_for_plotly_and_svg_of_matplotlib(name):
    json.dumps(plotly_figure(CHARTS[name]), allow_nan=False)
    root = ET.fromstring(svg_text(CHARTS[name]))
    assert root.tag.endswith("svg")
    assert root.attrib["role"] == "img"


@pytest.mark.parametrize("horizontal", [True, False])
@pytest.mark.parametrize("kind", ["line", "points", "bar", "box"])
def test_names_are_literal_text(kind, horizontal):
    series = [
        Series(name=HOSTILE, x=[HOSTILE, "b"], y=[1, None], kind=kind, labels=[HOSTILE, ""]),
        Series(name="other", x=[HOSTILE, "b"], y=[-1, 2], kind=kind),
    ]
    chart = Chart(name="chart", title=HOSTILE, series=series, horizontal=horizontal, stacked=kind == "bar")
    heat = Heat(name="heat", title=HOSTILE, x=[HOSTILE], y=[HOSTILE], values=[[1.0]], texts=[[HOSTILE]])
    for picture in (chart, heat):
        text = json.dumps(plotly_figure(picture), ensure_ascii=False)
        assert "<b>" not in text
        assert escape_markup("<b>&x</b>") in text
        root = ET.fromstring(svg_text(picture))
        assert any("<b>&x</b> $a_1$" in "".join(node.itertext()) for node in root.iter())
        assert root.attrib["aria-label"] == HOSTILE


def test_what_json_lacks_becomes_a_gap():
    series = [Series(name="a", x=[0, 1, 2], y=[math.nan, math.inf, 1.0])]
    assert plotly_figure(Chart(name="c", title="", series=series))["data"][0]["y"] == [None, None, 1.0]


def test_svg_bytes_are_reproducible_and_hold_no_date(tmp_path):
    panels = Panels(name="both", title="Both", pictures=[CHARTS["learning"], CHARTS["confusion"], CHARTS["bar"]])
    first = save_svg(panels, tmp_path / "first.svg").read_bytes()
    assert save_svg(panels, tmp_path / "second.svg").read_bytes() == first
    assert not re.search(rb"<dc:date>", first)
    assert len(draw(panels).axes) == 3


def test_files_are_written_under_the_charts_name(tmp_path):
    paths = save_figure(CHARTS["bar"], tmp_path)
    assert [path.name for path in paths] == ["bar.png", "bar.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert b"75 %" in paths[1].read_bytes()


def test_curves_over_seeds_have_bootstrap_intervals():
    runs = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0]])
    curve = curve_over_seeds("PPO", [0, 10], runs)
    assert curve.mean == [2.0, 4.0]
    assert (curve.low[1], curve.high[1]) == interval_over_seeds(runs[:, 1])
    chart = learning_curves([curve], name="c", title="", x_title="", y_title="")
    assert [type(part) for part in (*chart.bands, *chart.series)] == [Band, Series]
    edges = plotly_figure(chart)["data"][:2]
    assert not any(edge["showlegend"] for edge in edges)


def test_a_confusion_matrix_shows_shares_of_the_true_class():
    assert CHARTS["confusion"].values == [[0.75, 0.25], [0.0, 0.0]]
    assert CHARTS["confusion"].texts[0] == ["75 %", "25 %"]


def test_a_forest_plot_keeps_the_order_of_the_most_complete_group():
    chart = CHARTS["forest"]
    assert chart.series[0].x == ["all", "rare"]
    assert chart.series[0].y == [0.1, None]
    figure = plotly_figure(chart)
    assert figure["layout"]["scattermode"] == "group"
    assert figure["layout"]["shapes"][0]["x0"] == 0.0
    axes = draw(chart).axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["all", "rare"]


def test_markers_of_a_calibration_curve_grow_with_the_count():
    sizes = CHARTS["calibration"].series[-1].sizes
    assert sizes[0] > sizes[1]
    assert plotly_figure(CHARTS["calibration"])["data"][-1]["marker"]["size"] == list(sizes)


def test_a_replay_has_a_frame_per_step():
    figure = plotly_figure(CHARTS["replay"])
    assert [len(frame["data"][0]["x"]) for frame in figure["frames"]] == [1, 2, 3]
    assert len(figure["layout"]["sliders"][0]["steps"]) == CHARTS["replay"].n_steps == 3


def test_intervals_of_several_groups_are_drawn_beside_each_other():
    estimates = {"all": Estimate(value=0.1, low=0.0, high=0.2)}
    figure = plotly_figure(forest_plot({"a": estimates, "b": estimates}, name="f", title="F", x_title="difference"))
    assert figure["layout"]["scattermode"] == "group"
    assert [(trace["orientation"], trace["offsetgroup"]) for trace in figure["data"]] == [("h", "a"), ("h", "b")]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1e-3, 1e-3], [5e-4, 1.5e-3]), ([0.5, 0.5 + 1e-9], [0.25, 0.75]), ([0.0], [-1.0, 1.0]), ([1e-3, 2e-3], None)],
)
def test_a_constant_is_shown_at_its_value(values, expected):
    chart = Chart(name="c", title="C", series=[Series(name="", x=list(range(len(values))), y=values)])
    found = plotly_figure(chart)["layout"]["yaxis"].get("range")
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-6))


@pytest.mark.parametrize(("steps", "expected"), [([1, 2, 13], 1), ([1, 14], None), ([1.0, 1.5], None), (["a"], None)])
def test_a_few_whole_steps_have_ticks_at_whole_numbers(steps, expected):
    chart = Chart(name="c", title="C", series=[Series(name="", x=steps, y=[float(i) for i in range(len(steps))])])
    assert plotly_figure(chart)["layout"]["xaxis"].get("dtick") == expected


def test_stacked_bars_start_where_the_last_ones_end():
    series = [Series(name=name, x=["a"], y=[2], kind="bar") for name in ("one", "two")]
    chart = Chart(name="c", title="", series=series, stacked=True)
    assert [bar.get_y() for bar in draw(chart).axes[0].patches] == [0.0, 2.0]
    assert plotly_figure(chart)["layout"]["barmode"] == "relative"


def test_colours_repeat():
    assert color_of(0) == color_of(9) != color_of(1)


def test_drawing_libraries_are_imported_only_when_drawing():
    code = "import sys, apexrl.charts; print({'plotly', 'matplotlib', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

"""Charts as plain data, drawn by plotly in the browser and by matplotlib for papers.

A chart says what is drawn: `Chart` (lines, points, bars and boxes between two axes, made of `Series` and `Band`) and
`Heat` (a matrix as colours). `learning_curves`, `curve_over_seeds`, `line_chart`, `bar_chart`, `confusion_matrix`,
`calibration_chart` and `forest_plot` build the usual ones. `plotly_figure` turns a chart into a figure for plotly.js;
`save_figure`, `save_svg` and `svg_text` draw it as PNG and SVG, also several side by side (`Panels`):

    from apexrl.charts import curve_over_seeds, learning_curves, save_svg

    curves = [curve_over_seeds("PPO", steps, returns)]  # returns: [seeds, len(steps)]
    chart = learning_curves(curves, name="ppo", title="PPO", x_title="environment steps", y_title="return")
    save_svg(chart, Path("ppo.svg"))

matplotlib is imported when something is drawn, plotly never: ``pip install "apexrl[charts]"`` brings both.
"""

from apexrl.charts.data import PALETTE, Band, Chart, Heat, Panels, Picture, Series, Value, color_of
from apexrl.charts.matplotlib import draw, save_figure, save_svg, svg_text
from apexrl.charts.plotly import CONFIG, escape_markup, plotly_figure
from apexrl.charts.standard import (
    Curve,
    Estimate,
    bar_chart,
    calibration_chart,
    confusion_matrix,
    curve_over_seeds,
    forest_plot,
    learning_curves,
    line_chart,
)

__all__ = [
    "CONFIG",
    "PALETTE",
    "Band",
    "Chart",
    "Curve",
    "Estimate",
    "Heat",
    "Panels",
    "Picture",
    "Series",
    "Value",
    "bar_chart",
    "calibration_chart",
    "color_of",
    "confusion_matrix",
    "curve_over_seeds",
    "draw",
    "escape_markup",
    "forest_plot",
    "learning_curves",
    "line_chart",
    "plotly_figure",
    "save_figure",
    "save_svg",
    "svg_text",
]

"""Charts as plain data, drawn by plotly for the browser and by matplotlib for papers.

A chart says what is to be seen: `Chart` (lines, points, bars and boxes between two axes, with `Series` and `Band`) and
`Heat` (a matrix as colours). `apexrl.charts.plotly.plotly_figure` turns it into a figure for the browser,
`apexrl.charts.matplotlib.save_figure` into PNG and SVG; each library is imported only where it draws
(``pip install "apexrl[charts]"``).
"""

from apexrl.charts.data import PALETTE, Band, Chart, Heat, Picture, Series, Value, color_of

__all__ = ["PALETTE", "Band", "Chart", "Heat", "Picture", "Series", "Value", "color_of"]

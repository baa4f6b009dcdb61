// Draws the charts of a page: each element .chart has its plotly figure as JSON beside it.
"use strict";

function drawCharts(root) {
  for (const chart of root.querySelectorAll(".chart:not(.js-plotly-plot)")) {
    const { figure, config } = JSON.parse(chart.parentElement.querySelector("script.figure").textContent);
    Plotly.newPlot(chart, { ...figure, config });
  }
}

drawCharts(document);

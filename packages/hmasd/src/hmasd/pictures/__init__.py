"""Pictures as SVG text: curves with intervals, bars, confusion matrices and animated episodes."""

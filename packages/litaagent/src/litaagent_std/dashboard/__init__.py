"""The dashboard: tournaments, evaluations and trainings in the browser (`server`) or as one HTML file (`report`).

`routes` finds the view of an address; `views/` turn data into pages (`page`), that is a Jinja template and its context;
`render` makes HTML of them, the same for server and report. Charts are drawn by plotly through `apexrl.charts`. Data
come from `history` (what a folder contains), `warehouse` (SQL on records), `curves` (metrics) and `decisions` (the
recorded reasons of our agent). `guard` checks requests; `source` makes the archive that every page links to.
"""

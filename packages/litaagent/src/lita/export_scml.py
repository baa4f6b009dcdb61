"""``lita export-scml``: logs in scml's own form, from records."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from apexrl.configuration import configuration


@configuration
class Config:
    """Write logs/*/negotiations.csv, contracts.csv, stats.csv and scores.csv in scml's own form from records.

    Worlds whose logs are there already are skipped, so a stopped export goes on.
    """

    path: Annotated[Path, Positional]
    """A tournament's folder, or a folder that holds several."""

    worlds: tuple[int, ...] = ()
    """Numbers of the worlds to export. Default: all."""


def run(config: Config) -> int:
    """Export every tournament under the path."""
    from litaagent_std.records.reader import find_sources, open_records
    from litaagent_std.tournament.export import export_configurations, export_logs, export_scores
    from litaagent_std.tournament.standings import results_of

    for source in find_sources([config.path]):
        records, folder = open_records(source), source.parent
        written = export_logs(records, folder, config.worlds or None)
        results = results_of(records)
        if results.scores:
            export_scores(records, results, folder)
        export_configurations(records, folder)
        print(f"{folder}: logs of {written} worlds written, {len(records.keys)} worlds finished")
    return 0

"""``lita records`` and ``lita export-scml``: show and verify records, and write logs in scml's own form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError
from lita.console import plain_console

if TYPE_CHECKING:
    from litaagent_std.records.reader import Records


@configuration
class RecordsConfig:
    """Show what the records under a path hold, check them, or print a negotiation.

    The exit status is 1 when --verify finds a damaged or missing file.
    """

    path: Annotated[Path, Positional]
    """A tournament's folder, a folder that holds several, or an address in object storage such as s3://bucket/path."""

    publish: str | None = None
    """Upload the complete shards to this address, such as s3://bucket/tournament; only what is not there is sent."""

    verify: bool = False
    """Check every file against its digest."""

    world: int | None = None
    """Index of a world. --day and --negotiation choose one of its negotiations; without them it is drawn at random."""

    day: int | None = None
    """A day of the world."""

    negotiation: int | None = None
    """Index of a negotiation within the day."""

    seed: int = 0
    """Seed of the random choice."""


def records(config: RecordsConfig) -> int:
    """Print a table of the records, or a negotiation."""
    from litaagent_std.records.reader import open_records

    records = open_records(config.path)
    if config.publish is not None:
        return _publish(records, config.publish)
    if config.world is not None or config.day is not None or config.negotiation is not None:
        print(_negotiation(config, records))
        return 0
    _show(records)
    problems = records.verify() if config.verify else []
    for problem in problems:
        print(problem)
    if config.verify and not problems:
        print("every file is as it was written")
    return 1 if problems else 0


def _publish(records: Records, address: str) -> int:
    from litaagent_std.records.storage.remote import publish

    for source in records.sources:
        name = source.folder.parent.name if len(records.sources) > 1 else ""
        target = "/".join(part for part in (address.rstrip("/"), name, source.folder.name) if part)
        print(f"{target}: {publish(source.folder, target)} files sent")
    return 0


def _show(records: Records) -> None:
    from rich.table import Table

    table = Table("folder", "worlds", "failed", "state", "MB", "MB per world")
    for source in records.sources:
        size = sum(path.stat().st_size for path in source.folder.rglob("*") if path.is_file()) / 1e6
        n, manifest = len(source.worlds), source.manifest
        state = "finished" if manifest.complete else f"unfinished, {manifest.n_worlds} planned"
        per_world = f"{size / n:.3f}" if n else "–"
        table.add_row(str(source.folder.parent), str(n), str(len(manifest.failed)), state, f"{size:.2f}", per_world)
    plain_console().print(table)


def _negotiation(config: RecordsConfig, records: Records) -> str:
    import random

    from litaagent_std.records.reader import WorldKey

    rng = random.Random(config.seed)
    key = rng.choice(records.keys) if config.world is None else WorldKey(0, config.world)
    world = records.world(key)
    rows = world.tables["negotiations"].select(["day", "negotiation"]).to_pylist()
    matching = [
        row for row in rows if config.day in (None, row["day"]) and config.negotiation in (None, row["negotiation"])
    ]
    if not matching:
        raise _no_negotiation(config, key.world, rows)
    chosen = rng.choice(matching)
    return f"world {key.world}, {world.negotiation(chosen['day'], chosen['negotiation'])}"


def _no_negotiation(config: RecordsConfig, world: int, rows: list[dict[str, int]]) -> ConfigurationError:
    asked = "" if config.negotiation is None else f" {config.negotiation}"
    when = "" if config.day is None else f" on day {config.day}"
    days = [row["day"] for row in rows]
    of_day = [row["negotiation"] for row in rows if config.day in (None, row["day"])]
    known = f"{min(of_day)} to {max(of_day)}" if of_day else f"on days {min(days)} to {max(days)}" if days else "none"
    return ConfigurationError(
        f"world {world} has no negotiation{asked}{when}",
        f"there are negotiations {known}",
        "choose one of them, or leave --day and --negotiation out",
    )


@configuration
class ExportScmlConfig:
    """Write logs/WORLD/negotiations.csv, contracts.csv, stats.csv and scores.csv in scml's own form from records.

    Worlds whose logs exist are skipped, so a stopped export resumes.
    """

    path: Annotated[Path, Positional]
    """A tournament's folder, or a folder that holds several."""

    worlds: tuple[int, ...] = ()
    """Indices of the worlds to export. Default: all."""


def export_scml(config: ExportScmlConfig) -> int:
    """Export every tournament under the path."""
    from litaagent_std.records.reader import find_sources, open_records
    from litaagent_std.tournament.export import export_configurations, export_logs, export_scores
    from litaagent_std.tournament.standings import results_of

    opened = [(open_records(source), source.parent) for source in find_sources([config.path])]
    finished = {key.world for records, _ in opened for key in records.keys}
    if missing := sorted(set(config.worlds) - finished):
        raise ConfigurationError(
            f"--worlds {' '.join(map(str, missing))}: there are no such finished worlds under {str(config.path)!r}",
            f"{len(finished)} worlds are finished",
            "correct the numbers, or leave --worlds out",
        )
    for records, folder in opened:
        written = export_logs(records, folder, config.worlds or None)
        results = results_of(records)
        if results.scores:
            export_scores(records, results, folder)
        export_configurations(records, folder)
        print(f"{folder}: logs of {written} worlds written, {len(records.keys)} worlds finished")
    return 0

"""``lita report``: one file of HTML to send by mail, and its figures for papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError

__all__ = ["Config", "run"]


@configuration
class Config:
    """Write a report of tournaments, evaluations of the arena and trainings as one file of HTML.

    The file loads nothing from elsewhere and can be sent by mail. The same figures are written as PNG and SVG into a
    folder beside it. Needs the extra `dashboard`.
    """

    paths: Annotated[tuple[Path, ...], Positional]
    """Folders of tournaments, evaluations, trainings or HMASD runs; each becomes a part of the report."""

    output: Path | None = None
    """The file to write. Default: report.html in the first folder."""

    world: int | None = None
    """Of a tournament, the world to show in detail. Default: the first finished one."""

    agent: str | None = None
    """Of a tournament, a competitor to show too. Of ours, the world is replayed for L2's goals, L1 and L4's choices."""

    figures: bool = True
    """Also write every figure as PNG and SVG, beside the report."""


def run(config: Config) -> int:
    """Write the report, and say where it is."""
    try:
        from litaagent_std.dashboard.report import make_report, pages_of
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the package {error.name!r} is missing",
            "lita report needs the extra `dashboard`",
            "pip install litaagent[dashboard]",
        ) from error
    if not config.paths:
        raise ConfigurationError("no PATH is given", "a report is about something", "name the folder of a tournament")
    pages = [page for path in config.paths for page in pages_of(path, config.world, config.agent)]
    output = config.output or config.paths[0] / "report.html"
    written = make_report(pages, output, title=config.paths[0].resolve().name, figures=config.figures)
    print(f"{written[0]}: {written[0].stat().st_size / 1e6:.1f} MB, to be opened in a browser")
    if config.figures:
        print(f"{written[1].parent if len(written) > 1 else output.parent}: {len(written) - 1} figures as PNG and SVG")
    return 0

"""``lita runs``: the training record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError

__all__ = ["Config", "run"]


@configuration
class Config:
    """List, show or compare training runs: parameters, data, stages, losses, evaluation, weights and log.

    ``lita runs list``, ``lita runs show RUN``, ``lita runs compare RUN RUN …``.
    """

    action: Annotated[Literal["list", "show", "compare"], Positional] = "list"
    """What to do."""

    runs: Annotated[tuple[Path, ...], Positional] = ()
    """Folders of runs, or their names inside --folder."""

    folder: Path = Path("training_runs")
    """Where runs are."""

    output: Path | None = None
    """Write to this file, as HTML with curves if it ends in .html, else as Markdown. Default: print Markdown."""


def run(config: Config) -> int:
    """Print or write the record."""
    from apexrl.runs.atomic import write_text
    from litaagent_std.hrl_xf.training.report import as_html, compare_runs, list_runs, show_run

    folders = [path if path.exists() else config.folder / path for path in config.runs]
    if config.action == "list":
        text = list_runs(config.folder)
    elif config.action == "show":
        if len(folders) != 1:
            raise ConfigurationError(f"{len(folders)} runs are named", "show takes one", "lita runs show RUN")
        text = show_run(folders[0])
    else:
        if len(folders) < 2:
            raise ConfigurationError(f"{len(folders)} runs are named", "compare takes two or more", "name them all")
        text = compare_runs(folders)
    if config.output is None:
        print(text)
    else:
        html = config.output.suffix == ".html"
        write_text(config.output, as_html(text, folders) if html else text)
        print(config.output)
    return 0

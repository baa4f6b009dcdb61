"""``lita checkpoint``: is a checkpoint sound, and what is inside?"""

from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.checkpoints.checkpoint import Checkpoint, load_checkpoint
from apexrl.runs.errors import CheckpointDamagedError, CheckpointMissingError

_ENDINGS = (".pt", ".pth")


@configuration
class Config:
    """Verify a checkpoint file, or every checkpoint in a folder, and show what is inside.

    Nothing stored in a file is executed. The exit status is 1 when a file is damaged.
    """

    path: Annotated[Path, Positional]
    """A checkpoint file, or a folder that holds some."""


def checkpoint_files(path: Path) -> list[Path]:
    """Return the checkpoint files that ``path`` means: itself, or those in the folder, by name.

    Raises:
        CheckpointMissingError: There is none.
    """
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix in _ENDINGS)
    else:
        found = [path] if path.exists() else []
    if not found:
        raise CheckpointMissingError(
            f"there is no checkpoint at {str(path)!r}",
            f"The path must name a checkpoint file or a folder with files that end in {' or '.join(_ENDINGS)}",
            "Correct the path",
        )
    return found


def run(config: Config) -> int:
    """Show one line per file; 1 when any of them is damaged."""
    table = Table("file", "state", "schema", "step", "metrics")
    damaged = []
    for file in checkpoint_files(config.path):
        try:
            table.add_row(file.name, "sound", *_content(load_checkpoint(file)))
        except CheckpointDamagedError as error:
            damaged.append(str(error))
            table.add_row(file.name, "damaged", "", "", "")
    Console().print(table)
    for reason in damaged:
        print(reason)
    return 1 if damaged else 0


def _content(checkpoint: Checkpoint) -> tuple[str, str, str]:
    metrics = ", ".join(f"{name}={value:.4g}" for name, value in checkpoint.metrics.items())
    return str(checkpoint.schema), str(checkpoint.step), metrics

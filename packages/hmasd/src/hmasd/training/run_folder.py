"""The folder of a training run: its file names, its newest checkpoint, and archiving it before another run."""

from itertools import count
from pathlib import Path
from typing import Final

from apexrl.runs.atomic import ensure_folder, sync_folder
from apexrl.runs.checkpoints.checkpoint import Checkpoint, CheckpointStore, load_checkpoint
from apexrl.runs.errors import CheckpointDamagedError, CheckpointMissingError
from hmasd.training.trainer import FINAL_NAME, PATTERN, SCHEMA

MODELS: Final = "models"
EVENTS: Final = "tf-logs"
LOGS: Final = "logs"
METRICS: Final = "logs/metrics.jsonl"
TIMINGS: Final = "logs/timings.jsonl"
EARLIER: Final = "earlier"


def newest_checkpoint(models: Path) -> Path | None:
    """Return the latest intact checkpoint of a run, the final one included; damaged ones are skipped.

    Raises:
        SchemaMismatchError: It was written by another release.
    """
    store = CheckpointStore(models, SCHEMA, pattern=PATTERN)
    latest, final = store.latest(), _load_intact(models / FINAL_NAME)
    if final is not None and (latest is None or latest.state["env_steps"] <= final.step):
        return models / FINAL_NAME
    return None if latest is None else store.path(latest.step)


def _load_intact(path: Path) -> Checkpoint | None:
    try:
        return load_checkpoint(path, SCHEMA)
    except (CheckpointMissingError, CheckpointDamagedError):
        return None


def archive_run(folder: Path) -> Path | None:
    """Move the run that is in ``folder`` to ``earlier/1`` or the next free number.

    Args:
        folder: Contains ``models``, ``tf-logs`` and ``logs``, or nothing yet.

    Returns:
        The new folder of the run, or None if there was none.
    """
    names = [name for name in (MODELS, EVENTS, METRICS, TIMINGS) if _is_nonempty(folder / name)]
    if not names:
        return None
    target = next(path for number in count(1) if not (path := folder / EARLIER / str(number)).exists())
    for name in names:
        ensure_folder((target / name).parent)
        (folder / name).rename(target / name)
        sync_folder((folder / name).parent)
        sync_folder((target / name).parent)
    return target


def _is_nonempty(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir())
    return path.exists() and path.stat().st_size > 0

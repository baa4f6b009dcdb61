"""The folder of a training run: the newest checkpoint in it, and where its files go when another run begins there."""

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
    """Return the sound checkpoint of a run that is furthest, the final one included; damaged ones are passed over.

    Raises:
        SchemaMismatchError: It was written by another release.
    """
    store = CheckpointStore(models, SCHEMA, pattern=PATTERN)
    latest, final = store.latest(), _sound(models / FINAL_NAME)
    if final is not None and (latest is None or latest.state["env_steps"] <= final.step):
        return models / FINAL_NAME
    return None if latest is None else store.path(latest.step)


def _sound(path: Path) -> Checkpoint | None:
    try:
        return load_checkpoint(path, SCHEMA)
    except (CheckpointMissingError, CheckpointDamagedError):
        return None


def set_aside(folder: Path) -> Path | None:
    """Move the run that is in ``folder`` to a folder of its own, ``earlier/1`` or the next number.

    Args:
        folder: Holds ``models``, ``tf-logs`` and ``logs``, or nothing yet.

    Returns:
        Where the run is now, or None if there was none.
    """
    found = [name for name in (MODELS, EVENTS, METRICS, TIMINGS) if _holds_something(folder / name)]
    if not found:
        return None
    place = next(path for number in count(1) if not (path := folder / EARLIER / str(number)).exists())
    for name in found:
        ensure_folder((place / name).parent)
        (folder / name).rename(place / name)
        sync_folder((folder / name).parent)
        sync_folder((place / name).parent)
    return place


def _holds_something(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir())
    return path.exists() and path.stat().st_size > 0

"""Which folder a tournament lives in: the one that is named, the newest unfinished one of its kind, or a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from apexrl.runs.digest import digest_config
from apexrl.runs.errors import RunDirError
from apexrl.runs.run_dir import RunRecord
from litaagent_std.records.manifest import Manifest, NoRecordsError
from litaagent_std.records.reader import RECORDS_FOLDER
from litaagent_std.tournament.config import TournamentConfig

__all__ = ["HISTORY", "Choice", "choose_folder", "is_finished"]

HISTORY: Final = Path("tournament_history")
"""Where tournaments are kept unless a folder is named."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A folder, and why it was chosen, in words for the person at the keyboard."""

    folder: Path
    reason: str


def is_finished(folder: Path) -> bool:
    """Whether every world of a tournament's folder has its outcome."""
    try:
        return Manifest.read(folder / RECORDS_FOLDER).complete
    except NoRecordsError:
        return False


def choose_folder(config: TournamentConfig, played: Mapping[str, Any], prefix: str) -> Choice:
    """Choose the folder.

    Args:
        config: The options.
        played: What is played; a tournament is gone on with only if it is the same.
        prefix: Beginning of the names of new folders.
    """
    if config.output_dir is not None:
        return Choice(config.output_dir, "as asked for")
    if not config.fresh and config.resumable:
        digest = digest_config(played)
        unfinished = [folder for folder in _of_digest(prefix, digest) if not is_finished(folder)]
        if unfinished:
            return Choice(unfinished[-1], "the newest unfinished one of the same tournament; --fresh starts another")
    stamp = datetime.now().strftime("%Y%m%d_%H%M%S_%f")
    return Choice(HISTORY / f"{prefix}_{stamp}_std", "a new one")


def _of_digest(prefix: str, digest: str) -> list[Path]:
    """Folders of the same tournament, oldest first."""
    found = []
    for folder in sorted(HISTORY.glob(f"{prefix}_*_std")):
        try:
            record = RunRecord.read(folder)
        except RunDirError:
            continue  # not a tournament, or one whose first moment was its last
        if digest_config(record.config.get("played")) == digest:
            found.append(folder)
    return found

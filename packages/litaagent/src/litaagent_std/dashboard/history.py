"""Finds what can be shown under a folder, and resolves names from addresses to paths inside it, and only inside it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from apexrl.runs.errors import ReadFailedError, UserFacingError
from apexrl.runs.reading import contained
from litaagent_std.records.reader import RECORDS_FOLDER
from litaagent_std.records.storage.manifest import MANIFEST_NAME

__all__ = ["History", "Item", "ItemKind", "NotHereError", "grows", "kind_of", "mark_of", "phase_files"]

ItemKind = Literal["tournament", "arena", "training", "hmasd"]

_MARKS: Final[dict[ItemKind, str]] = {
    "tournament": f"{RECORDS_FOLDER}/{MANIFEST_NAME}",
    "arena": "report.json",
    "hmasd": "logs/metrics.jsonl",
    "training": "metrics.jsonl",
}
"""The file by which a folder's kind is recognised."""

_DEPTH: Final = 4
_FRESH: Final = 900.0  # seconds
_MOST_FOLDERS: Final = 20_000
_SKIPPED: Final = frozenset(
    {"node_modules", "site-packages", "units", "checkpoints", "segments", "__pycache__", "_build"}
)


class NotHereError(UserFacingError):
    """A name leads to nothing that can be shown."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that can be shown.

    Attributes:
        kind: What it is.
        name: Its path from the history's folder, with ``/`` between the parts; ``.`` for the folder itself.
        path: Where it is.
        modified: When the file that marks its kind last changed, in seconds since 1970.
    """

    kind: ItemKind
    name: str
    path: Path
    modified: float


def kind_of(path: Path) -> ItemKind | None:
    """Return the kind of a folder; None if it holds nothing that can be shown."""
    return next((kind for kind in _MARKS if mark_of(path, kind) is not None), None)


def mark_of(path: Path, kind: ItemKind) -> Path | None:
    """Return the file that marks a folder as one of a kind; None if it is not."""
    if (mark := _regular(path, _MARKS[kind])) is not None:
        return mark
    return next(iter(phase_files(path).values()), None) if kind == "training" else None


def phase_files(path: Path) -> dict[str, Path]:
    """Return the metrics of each phase, of a training that has phases; the newest first."""
    if _regular(path, "run.json") is None:
        return {}
    names = [file.relative_to(path).as_posix() for file in path.glob("metrics/*/metrics.jsonl")]
    files = [file for name in names if (file := _regular(path, name)) is not None]
    return {file.parent.name: file for file in sorted(files, key=lambda file: -file.stat().st_mtime)}


def _regular(folder: Path, name: str) -> Path | None:
    """Return a file of a folder; None if it is none, or a link that leads out of the folder."""
    try:
        path = contained(folder, name)
        return path if path.is_file() else None
    except (OSError, ReadFailedError):
        return None


def grows(file: Path) -> bool:
    """Whether a file was written within the last 15 minutes, so that it may still grow."""
    try:
        return time.time() - file.stat().st_mtime < _FRESH
    except OSError:  # not there yet
        return True


class History:
    """A folder with tournaments, evaluations and trainings.

    Args:
        root: The folder; it need not exist yet.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def items(self) -> list[Item]:
        """Return everything that can be shown, the newest first. Symbolic links are not followed."""
        items = [item for path in self._folders() if (item := self._item(path)) is not None]
        return sorted(items, key=lambda item: -item.modified)

    def find(self, kind: ItemKind, name: str) -> Path:
        """Return the folder of a name that came with an address.

        Raises:
            NotHereError: If the name leads out of the history, or to nothing of the kind.
        """
        try:
            path = (self.root / name).resolve()
            inside = path.is_relative_to(self.root) and kind_of(path) == kind
        except (OSError, ValueError):  # too long, or not a valid name, such as one with a zero byte
            inside = False
        if not inside:
            raise NotHereError(
                f"there is no {kind} {name[:200]!r} here",
                "a name leads to a folder inside the one that is served",
                "choose one from the list",
            )
        return path

    def _item(self, path: Path) -> Item | None:
        kind = kind_of(path)
        if kind is None:
            return None
        mark = mark_of(path, kind)
        try:
            modified = 0.0 if mark is None else mark.stat().st_mtime
        except OSError:  # removed meanwhile
            return None
        return Item(kind, path.relative_to(self.root).as_posix(), path, modified)

    def _folders(self) -> Iterator[Path]:
        waiting = [(self.root, 0)]
        for _ in range(_MOST_FOLDERS):
            if not waiting:
                return
            path, depth = waiting.pop()
            yield path
            if depth < _DEPTH and kind_of(path) in {None, "arena"}:
                waiting += [(Path(entry), depth + 1) for entry in _folders_in(path)]


def _folders_in(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [
                entry.path
                for entry in entries
                if not entry.name.startswith(".") and entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:  # not readable, or removed
        return []

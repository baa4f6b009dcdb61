"""What identifies a tournament, and the folder it lives in: a named one, the newest unfinished one, or a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from apexrl.runs.atomic import ensure_folder
from apexrl.runs.digest import digest_config
from apexrl.runs.errors import RunDirError
from apexrl.runs.run_dir import RunRecord
from litaagent_std.records.reader import RECORDS_FOLDER
from litaagent_std.records.storage.manifest import Manifest, NoRecordsError
from litaagent_std.tournament.competitors.names import Competitor, agent_text, digest_named_files, read_agent
from litaagent_std.tournament.config import FREE, TournamentConfig

__all__ = ["HISTORY", "Choice", "choose_folder", "is_finished", "recorded_form", "what_is_played"]

HISTORY: Final = Path("tournament_history")
"""Where tournaments are kept unless a folder is named."""

_NAMES: Final = frozenset({"competitors", "max_top_2025", "max_top_2024", "integer_offers", "isolate"})
"""Options that name competitors; the agents they were resolved to stand in their place."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A folder, and why it was chosen, in words for the user."""

    folder: Path
    reason: str


def what_is_played(config: TournamentConfig, competitors: Sequence[Competitor]) -> dict[str, Any]:
    """Return what determines the worlds, in plain values; two tournaments with the same are one.

    Args:
        config: All options.
        competitors: The competitors, resolved from the names in the options.
    """
    names = [name for name in config.__dataclass_fields__ if name not in FREE and name not in _NAMES]
    agents = [agent_text(competitor.spec) for competitor in competitors]
    files = {competitor.name: digest_named_files(competitor.spec.params) for competitor in competitors}
    named = {name: digests for name, digests in files.items() if digests}
    played = {"competitors": agents, **{name: getattr(config, name) for name in names}}
    if not config.reasons:  # as before there were reasons
        del played["reasons"]
    return played | ({"files": named} if named else {})


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
        played: What is played; only the same tournament is resumed.
        prefix: Beginning of the names of new folders.
    """
    if config.output_dir is not None:
        ensure_folder(config.output_dir)  # refuses a path that is a file, or where nothing can be written
        return Choice(config.output_dir, "as asked for")
    if not config.fresh and config.resumable:
        same = [folder for folder in sorted(HISTORY.glob(f"{prefix}_*_std")) if _recorded(folder, played) is not None]
        unfinished = [folder for folder in same if not is_finished(folder)]
        if unfinished:
            return Choice(unfinished[-1], "the newest unfinished one of the same tournament; --fresh starts another")
    stamp = datetime.now().strftime("%Y%m%d_%H%M%S_%f")
    return Choice(HISTORY / f"{prefix}_{stamp}_std", "a new one")


def recorded_form(folder: Path, played: dict[str, Any]) -> dict[str, Any]:
    """Return what is played as a folder has recorded it, if it is the same; its class paths may be older ones."""
    recorded = _recorded(folder, played)
    return played if recorded is None else recorded


def _recorded(folder: Path, played: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a folder's tournament played; None if that is something else, or nothing."""
    try:
        recorded = RunRecord.read(folder).config.get("played")
    except RunDirError:
        return None  # not a tournament, or one that was killed in its first moment
    if not isinstance(recorded, dict) or digest_config(_present(recorded)) != digest_config(_present(played)):
        return None
    return recorded


def _present(played: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is played with the agents' class paths of today."""
    agents = [agent_text(read_agent(text)) for text in played.get("competitors", ())]
    return {**played, "competitors": agents}

"""The folder of a run: its configuration, its progress, and the lock of its writer.

::

    <run>/
      run.json         seed, configuration and its digest; versions, commit and command of every start
      config.yaml      the resolved configuration in YAML, for people and for --config
      metrics.jsonl    timings.jsonl    tensorboard/
      checkpoints/
      run.log
      run.lock

``run.json`` is authoritative and is replaced atomically: a folder is a run as soon as it has one. A run that makes
room for another one is moved to ``earlier/1`` or the next free number; nothing is erased. A first start that fails with
a message for the user before anything was written leaves no record, so the corrected command may use the folder.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from apexrl.runs.atomic import StrPath, ensure_folder, remove_leftovers, sync_folder, write_text
from apexrl.runs.checkpoints.seal import is_sealed
from apexrl.runs.digest import Plain, differences, digest_config, to_plain, to_yaml
from apexrl.runs.errors import ConfigMismatchError, RunDirError, UserFacingError
from apexrl.runs.lock import exclusive
from apexrl.runs.logs import log_to_file
from apexrl.runs.provenance import git_commit, package_versions
from apexrl.runs.reading import read_sealed, reading, write_sealed

logger = logging.getLogger(__name__)

FORMAT = "apexrl.run"
FORMAT_VERSION = 1

_WANTED = (
    "it must be the record that RunDir.start wrote",
    "restore it from a copy, or start a new run in another folder",
)
EARLIER = "earlier"
_OWN_NAMES = ("config.yaml", "metrics.jsonl", "timings.jsonl", "tensorboard", "checkpoints")
_MORE_NAMES = ("run.json", "run.log", "metrics.csv", "wandb")
_RECORD_NAMES = frozenset({"run.json", "config.yaml", "run.log", "run.lock"})
"""What a start writes before the run itself writes anything."""
_LOGGED = "_apexrl_is_logged"
"""Attribute of an error whose message is in the log."""

Existing: TypeAlias = Literal["resume", "refuse", "archive", "adopt"]
"""What to do with a run that the folder already holds: resume it if its settings are the same, refuse it, move it to
``earlier/``, or continue it with whatever settings. The last two continue the run of a given ``run_id`` and move any
other to ``earlier/``; files without a record are moved by ``archive`` and taken over by ``adopt``."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What ``run.json`` says."""

    config: dict[str, Plain]
    """The resolved configuration, in plain values."""
    seed: int
    """The one seed that everything random comes from."""
    starts: list[dict[str, Any]]
    """Time, versions, commit and command of every start, and which free fields it changed."""
    run_id: str = ""
    """Tells runs apart that use the same folder one after the other."""

    @property
    def config_digest(self) -> str:
        """SHA-256 of the configuration's canonical JSON."""
        return digest_config(self.config)

    @classmethod
    def read(cls, folder: StrPath) -> RunRecord:
        """Read the record of a run without locking it.

        Raises:
            RunDirError: If the folder is no run, or its record is damaged or of another format.
        """
        path = Path(folder) / "run.json"
        try:
            with reading(path, RunDirError, *_WANTED):
                return cls._parse(read_sealed(path))
        except FileNotFoundError as error:
            raise RunDirError(
                f"{os.fspath(folder)!r} is not a run: it has no run.json",
                "a run directory is made by RunDir.start",
                "correct the path, or start the run first",
            ) from error

    @classmethod
    def _parse(cls, content: dict[str, Any]) -> RunRecord:
        if content.get("format") != FORMAT:
            raise ValueError(f"it is not marked {FORMAT!r}")
        if content["format_version"] != FORMAT_VERSION:
            raise ValueError(f"its format is {content['format_version']}, this release reads {FORMAT_VERSION}")
        kinds = {"config": dict, "seed": int, "starts": list, "run_id": str}
        values = {"run_id": "", **{name: content[name] for name in kinds if name in content}}
        wrong = [name for name, kind in kinds.items() if not isinstance(values.get(name), kind)]
        if wrong or not all(isinstance(start, dict) for start in values["starts"]):
            raise ValueError(f"it has no usable {', '.join(wrong) or 'starts'}")
        record = cls(**values)
        if record.config_digest != content["config_digest"]:
            raise ValueError("its configuration does not match its digest")
        return record

    def write(self, folder: Path, *, yaml: bool = True) -> None:
        """Replace ``run.json`` and, if ``yaml``, ``config.yaml``, in this order, each whole or not at all."""
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "run_id": self.run_id,
            "seed": self.seed,
            "config_digest": self.config_digest,
            "config": self.config,
            "starts": self.starts,
        }
        write_sealed(folder / "run.json", content)
        if yaml:
            write_text(folder / "config.yaml", to_yaml(self.config))


class RunDir:
    """A run that this process may write. A context manager; make one with :meth:`start`.

    Attributes:
        path: The folder.
        record: What the run is made from.
        is_resumed: Whether there was a run before this start.
    """

    def __init__(self, path: Path, record: RunRecord, is_resumed: bool, resources: ExitStack) -> None:
        self.path = path
        self.record = record
        self.is_resumed = is_resumed
        self._resources = resources

    @classmethod
    def start(
        cls,
        path: StrPath,
        *,
        config: Any,  # noqa: ANN401 - a dataclass, a pydantic model or a mapping
        seed: int,
        free: Collection[str] = (),
        existing: Existing = "resume",
        run_id: str | None = None,
        has_log: bool = True,
    ) -> RunDir:
        """Create the run, or deal with the one that exists as ``existing`` says.

        Args:
            path: The folder, created if missing.
            config: The resolved configuration.
            seed: The one seed that everything random comes from.
            free: Dotted names of fields that may change between starts without changing the results up to
                there, such as the number of steps to train for or of workers.
            existing: What to do with a run that is there already.
            run_id: Identity of the run, if it has one already.
            has_log: Whether to write ``run.log`` and ``config.yaml``; a library that is called by a user's program
                writes neither.

        Raises:
            ConfigMismatchError: If the run was started with another configuration or seed.
            RunDirError: If the folder holds something else, or a run that is refused.
            RunLockedError: If another process is writing this run.
            WriteFailedError: If the folder cannot be written.
        """
        folder = ensure_folder(path)
        plain = to_plain(config)
        if not isinstance(plain, dict):
            raise TypeError(f"a configuration must be a mapping or a dataclass, not {type(config).__name__}")
        with ExitStack() as resources:
            resources.enter_context(exclusive(folder))
            record, is_resumed = _record_of(folder, plain, seed, free, existing, run_id)
            remove_leftovers(folder)
            remove_leftovers(folder / "checkpoints")
            record.write(folder, yaml=has_log)
            if has_log:
                resources.enter_context(log_to_file(folder / "run.log"))
                logger.info("%s run %s, seed %d", "resuming" if is_resumed else "new", folder, seed)
            return cls(folder, record, is_resumed, resources.pop_all())

    def close(self) -> None:
        """Close the log and release the lock; a second call does nothing."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            _log_end(error)
        if isinstance(error, UserFacingError):
            self._withdraw()
        self.close()

    def _withdraw(self) -> None:
        """Take the record of a first start away that wrote nothing, so that the folder is free for other settings."""
        if self.is_resumed or any(entry.name not in _RECORD_NAMES for entry in self.path.iterdir()):
            return
        for name in ("config.yaml", "run.json"):
            (self.path / name).unlink(missing_ok=True)


def _log_end(error: BaseException) -> None:
    """Log why a run ends; once per error, however many folders of runs it leaves."""
    if _LOGGED in vars(error):
        return
    vars(error)[_LOGGED] = True
    if isinstance(error, UserFacingError):
        logger.info("the run ends: %s", error)  # whoever called shows it
    elif isinstance(error, KeyboardInterrupt):
        logger.info("the run ends: interrupted")
    else:
        logger.error("the run ends with %s: %s", type(error).__name__, error)


def archive_run(folder: Path, names: Iterable[str] | None = None) -> Path | None:
    """Move the run that is in ``folder`` to ``earlier/1`` or the next free number.

    Args:
        folder: Holds files of a run, or nothing yet.
        names: Files and folders that belong to a run, relative to ``folder``; if None, those that runs of this
            package write: records, metrics, TensorBoard events and sealed checkpoints, whatever their names.

    Returns:
        The new folder of the run, or None if there was none.
    """
    present = [name for name in (_own_files(folder) if names is None else names) if _is_nonempty(folder / name)]
    if not present:
        return None
    target = next(path for number in count(1) if not (path := folder / EARLIER / str(number)).exists())
    for name in present:
        ensure_folder((target / name).parent)
        (folder / name).rename(target / name)
        sync_folder((folder / name).parent)
        sync_folder((target / name).parent)
    if any(is_sealed(path) for path in target.rglob("*") if path.is_file()):
        logger.warning("%r held an earlier run, which is not resumed: it is now in %s", os.fspath(folder), target)
    else:
        message = "%r held files of an earlier run and no checkpoint to resume from: they are now in %s"
        logger.warning(message, os.fspath(folder), target)
    return target


def _own_files(folder: Path) -> list[str]:
    """Return the names of what runs of this package write into a folder."""
    fixed = {*_OWN_NAMES, *_MORE_NAMES} - {"config.yaml"}
    if (folder / "run.json").exists():
        fixed.add("config.yaml")  # without a record it may be anybody's

    def is_own(entry: Path) -> bool:
        is_named = entry.name in fixed or entry.name.startswith("events.out.tfevents.")
        return is_named or (entry.is_file() and is_sealed(entry))

    return [entry.name for entry in sorted(folder.iterdir()) if is_own(entry)]


def _is_nonempty(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir())
    return path.exists() and path.stat().st_size > 0


def _record_of(
    folder: Path,
    config: dict[str, Plain],
    seed: int,
    free: Collection[str],
    existing: Existing,
    run_id: str | None,
) -> tuple[RunRecord, bool]:
    """Return the record to write, and whether it continues the run that is in the folder."""
    has_record = (folder / "run.json").exists()
    if existing in ("archive", "adopt"):
        known = RunRecord.read(folder) if has_record else None
        if known is not None and (known.run_id == run_id or (existing == "adopt" and run_id is None)):
            start = _this_start(differences(known.config, config))
            return RunRecord(config=config, seed=seed, starts=[*known.starts, start], run_id=known.run_id), True
        is_adopted = known is None and existing == "adopt"
        if not is_adopted:
            archive_run(folder)
        return _new_record(config, seed, run_id), is_adopted
    if has_record:
        return _continued(folder, config, seed, free, existing), True
    _refuse_foreign(folder)
    return _new_record(config, seed, run_id), False


def _new_record(config: dict[str, Plain], seed: int, run_id: str | None) -> RunRecord:
    return RunRecord(config=config, seed=seed, starts=[_this_start([])], run_id=run_id or secrets.token_hex(8))


def _continued(
    folder: Path, config: dict[str, Plain], seed: int, free: Collection[str], existing: Existing
) -> RunRecord:
    record = RunRecord.read(folder)
    if existing == "refuse":
        raise RunDirError(
            f"{os.fspath(folder)!r} already holds a run",
            "a new run needs a folder of its own",
            "resume it, or choose another folder",
        )
    conflicts = differences(record.config, config, free)
    if record.seed != seed:
        conflicts.append(f"seed of the run: {record.seed} -> {seed}")
    if conflicts:
        raise ConfigMismatchError(
            f"run {os.fspath(folder)!r} was started with other settings: {'; '.join(conflicts)}",
            "a run resumes only with the settings it was started with",
            "use the old settings, or choose another folder",
        )
    start = _this_start(differences(record.config, config))
    return RunRecord(config=config, seed=seed, starts=[*record.starts, start], run_id=record.run_id)


@cache
def _provenance() -> tuple[str | None, dict[str, str]]:
    """Return commit and versions; asked once per process, because git is slow beside a short run."""
    return git_commit(), package_versions()


def _this_start(changed: list[str]) -> dict[str, Any]:
    commit, versions = _provenance()
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(sys.argv),
        "commit": commit,
        "versions": versions,
        "changed": changed,
    }


def _refuse_foreign(folder: Path) -> None:
    taken = [name for name in _OWN_NAMES if (folder / name).exists()]
    if taken:
        raise RunDirError(
            f"{os.fspath(folder)!r} has {', '.join(taken)} but no run.json",
            "a new run must not write over what is not its own",
            "choose an empty folder",
        )

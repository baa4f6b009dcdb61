"""The folder of a run: its configuration, its progress, and the lock of its writer.

::

    <run>/
      run.json         seed, configuration and its digest; versions, commit and command of every start
      config.yaml      the resolved configuration in YAML, for people and for --config
      metrics.jsonl    timings.jsonl    tensorboard/
      checkpoints/
      run.log
      run.lock

``run.json`` is authoritative and is replaced atomically: a folder is a run as soon as it has one.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from apexrl.runs.atomic import StrPath, ensure_folder, remove_leftovers, write_json, write_text
from apexrl.runs.digest import Plain, differences, digest_config, to_plain, to_yaml
from apexrl.runs.errors import ConfigMismatchError, RunDirError
from apexrl.runs.lock import exclusive
from apexrl.runs.logs import log_to_file
from apexrl.runs.metrics.logger import MetricLogger, MetricSink
from apexrl.runs.provenance import git_commit, package_versions

if TYPE_CHECKING:
    from apexrl.runs.checkpoints.checkpoint import CheckpointStore, Retention, Schema

logger = logging.getLogger(__name__)

FORMAT = "apexrl.run"
FORMAT_VERSION = 1
_OWN_NAMES = ("config.yaml", "metrics.jsonl", "timings.jsonl", "tensorboard", "checkpoints")


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What ``run.json`` says."""

    config: dict[str, Plain]
    """The resolved configuration, in plain values."""
    seed: int
    """The one seed that everything random comes from."""
    starts: list[dict[str, Any]]
    """Time, versions, commit and command of every start, and which free fields it changed."""

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
            content = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise RunDirError(
                f"{os.fspath(folder)!r} is not a run: it has no run.json",
                "a run directory is made by RunDir.start",
                "correct the path, or start the run first",
            ) from error
        except (OSError, ValueError) as error:
            raise _damaged(path, str(error)) from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise _damaged(path, f"it is not marked {FORMAT!r}")
        if content["format_version"] != FORMAT_VERSION:
            raise _damaged(path, f"its format is {content['format_version']}, this release reads {FORMAT_VERSION}")
        record = cls(config=content["config"], seed=content["seed"], starts=content["starts"])
        if record.config_digest != content["config_digest"]:
            raise _damaged(path, "its configuration does not match its digest")
        return record

    def write(self, folder: Path) -> None:
        """Replace ``run.json`` and ``config.yaml``, in this order, each whole or not at all."""
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "seed": self.seed,
            "config_digest": self.config_digest,
            "config": self.config,
            "starts": self.starts,
        }
        write_json(folder / "run.json", content)
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
        self._loggers: list[MetricLogger] = []

    @classmethod
    def start(
        cls,
        path: StrPath,
        *,
        config: Any,  # noqa: ANN401 - a dataclass, a pydantic model or a mapping
        seed: int,
        free: Collection[str] = (),
        resume: bool = True,
    ) -> RunDir:
        """Create the run, or resume it if it exists and was made from the same configuration.

        Args:
            path: The folder, created if missing.
            config: The resolved configuration.
            seed: The one seed that everything random comes from.
            free: Dotted names of fields that may change between starts without changing the results up to
                there, such as the number of steps to train for or of workers.
            resume: False refuses to resume an existing run.

        Raises:
            ConfigMismatchError: If the run was started with another configuration or seed.
            RunDirError: If the folder holds something else, or a run although ``resume`` is False.
            RunLockedError: If another process is writing this run.
            WriteFailedError: If the folder cannot be written.
        """
        folder = ensure_folder(path)
        plain = to_plain(config)
        if not isinstance(plain, dict):
            raise TypeError(f"a configuration must be a mapping or a dataclass, not {type(config).__name__}")
        with ExitStack() as resources:
            resources.enter_context(exclusive(folder))
            is_resumed = (folder / "run.json").exists()
            if is_resumed:
                record = _continued(folder, plain, seed, free, resume)
            else:
                _refuse_foreign(folder)
                record = RunRecord(config=plain, seed=seed, starts=[_this_start([])])
            remove_leftovers(folder)
            remove_leftovers(folder / "checkpoints")
            record.write(folder)
            resources.enter_context(log_to_file(folder / "run.log"))
            logger.info("%s run %s, seed %d", "resuming" if is_resumed else "new", folder, seed)
            return cls(folder, record, is_resumed, resources.pop_all())

    @property
    def checkpoint_folder(self) -> Path:
        """Where :meth:`checkpoints` puts its files."""
        return self.path / "checkpoints"

    def checkpoints(
        self, schema: Schema, *, pattern: str = "checkpoint_{step}.pt", retention: Retention | None = None
    ) -> CheckpointStore:
        """Open the store of this run's checkpoints. Each save flushes the metrics first.

        Args:
            schema: What kind of state they hold.
            pattern: Their file name, with ``{step}`` in it once.
            retention: Which ones stay.
        """
        from apexrl.runs.checkpoints.checkpoint import (
            CheckpointStore,  # here, so that runs without checkpoints need no torch
        )

        return CheckpointStore(
            self.checkpoint_folder,
            schema,
            pattern=pattern,
            config=self.record.config,
            retention=retention,
            before_save=self._flush_metrics,
        )

    def metric_logger(
        self, after_step: int | None, *, tensorboard: bool = True, more: Collection[MetricSink] = ()
    ) -> MetricLogger:
        """Open the logger of this run's metrics; it is closed with the run.

        Args:
            after_step: The step of the checkpoint that the run resumes from: what was logged later is dropped.
                None if it starts from nothing.
            tensorboard: Whether to write TensorBoard events beside the lines of JSON.
            more: Further sinks, such as a :class:`~apexrl.runs.metrics.console.ConsoleSink`.
        """
        from apexrl.runs.metrics.jsonl import JsonlSink
        from apexrl.runs.metrics.tensorboard import TensorBoardSink

        sinks: list[MetricSink] = [JsonlSink(self.path / "metrics.jsonl", after_step)]
        if tensorboard:
            sinks.append(TensorBoardSink(self.path / "tensorboard", after_step))
        opened = MetricLogger([*sinks, *more], after_step)
        self._loggers.append(opened)
        return opened

    def close(self) -> None:
        """Close metrics and log, and release the lock; a second call does nothing."""
        with self._resources:
            for opened in self._loggers:
                opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            logger.error("the run ends with %s: %s", type(error).__name__, error)
        self.close()

    def _flush_metrics(self) -> None:
        for opened in self._loggers:
            opened.flush()


def _continued(folder: Path, config: dict[str, Plain], seed: int, free: Collection[str], resume: bool) -> RunRecord:
    record = RunRecord.read(folder)
    if not resume:
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
    changed = differences(record.config, config)
    return RunRecord(config=config, seed=seed, starts=[*record.starts, _this_start(changed)])


def _this_start(changed: list[str]) -> dict[str, Any]:
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": list(sys.argv),
        "commit": git_commit(),
        "versions": package_versions(),
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


def _damaged(path: Path, why: str) -> RunDirError:
    return RunDirError(
        f"{os.fspath(path)!r} cannot be used: {why}",
        "it must be the record that RunDir.start wrote",
        "restore it from a copy, or start a new run in another folder",
    )

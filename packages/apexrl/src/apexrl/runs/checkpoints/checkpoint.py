"""One checkpoint file, and the store that keeps several of them.

A checkpoint is a single file that ``torch.load(path, weights_only=True)`` opens directly; its layout is
described in ``docs/apexrl/checkpoints.md``.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from apexrl.runs.atomic import StrPath, ensure_folder, free_name, remove_leftovers, sync_folder
from apexrl.runs.checkpoints.seal import verify
from apexrl.runs.checkpoints.storable import storable
from apexrl.runs.checkpoints.tensors import load_tensors, save_tensors
from apexrl.runs.digest import Plain, to_plain
from apexrl.runs.errors import CheckpointDamagedError, CheckpointMissingError, SchemaMismatchError
from apexrl.runs.reading import read_bytes, reading
from apexrl.runs.rng import Generator, capture_rng, restore_rng

logger = logging.getLogger(__name__)

FORMAT = "apexrl.checkpoint"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What kind of state a checkpoint holds. Raise the version when the meaning of the state changes."""

    name: str
    """Who writes it, such as ``apexrl.ppo``."""
    version: int
    """Counts the layouts of the state under this name, from 1."""

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Everything that a run needs to resume exactly."""

    schema: Schema
    """What kind of state this is."""
    step: int
    """How far the run had come, in the run's own unit."""
    state: dict[str, Any]
    """Networks, optimisers, normalisers, counters: tensors and plain values."""
    config: dict[str, Plain] = field(default_factory=dict)
    """The resolved configuration."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What is known of the quality of this state."""
    rng: dict[str, Any] | None = None
    """Random-number states of :func:`~apexrl.runs.rng.capture_rng`; None for a bare model."""

    def restore_rng(self, generators: Mapping[str, Generator] | None = None) -> None:
        """Put the random-number states back; see :func:`~apexrl.runs.rng.restore_rng`."""
        if self.rng is not None:
            restore_rng(self.rng, generators)


def save_checkpoint(path: StrPath, checkpoint: Checkpoint) -> None:
    """Write a checkpoint to ``path``, whole or not at all, and sealed.

    Raises:
        NotPlainError: If the state holds something that cannot be loaded without running pickled code.
        WriteFailedError: If the file cannot be written.
    """
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "schema": {"name": checkpoint.schema.name, "version": checkpoint.schema.version},
        "step": checkpoint.step,
        "config": to_plain(checkpoint.config),
        "metrics": {name: float(value) for name, value in checkpoint.metrics.items()},
        "state": storable(checkpoint.state, "state"),
        "rng": storable(checkpoint.rng, "rng"),
    }
    save_tensors(path, content)


def load_checkpoint(path: StrPath, schema: Schema | None = None) -> Checkpoint:
    """Read a checkpoint whose seal holds, without running any code stored in it.

    All tensors come to the CPU; ``load_state_dict`` moves them to where a module or an optimiser is.

    Args:
        path: The file.
        schema: What the caller can read; None accepts any.

    Raises:
        CheckpointMissingError: If there is no such file.
        CheckpointDamagedError: If the file is cut short, altered, or no checkpoint of ours.
        SchemaMismatchError: If it was written under another schema.
    """
    name = os.fspath(path)
    expected, hint = "a checkpoint is a file that save_checkpoint wrote", "use another checkpoint, or train again"
    try:
        with reading(path, CheckpointDamagedError, expected, hint):
            return _load(name, schema)
    except FileNotFoundError as error:
        raise CheckpointMissingError(
            f"there is no checkpoint {name!r}",
            "the path must name an existing checkpoint file",
            "correct the path, or train one first",
        ) from error


def _load(name: str, schema: Schema | None) -> Checkpoint:
    data = read_bytes(name)
    verify(data, name)
    content = _unpack(data, name)
    written = Schema(**content["schema"])
    if schema is not None and written != schema:
        raise SchemaMismatchError(
            f"checkpoint {name!r} holds {written}",
            f"this program reads {schema}",
            "load it with the program and release that wrote it, or train again",
        )
    kinds = {"step": int, "state": dict, "config": dict, "metrics": dict, "rng": dict | None}
    wrong = [field for field, kind in kinds.items() if not isinstance(content[field], kind)]
    if wrong:
        raise ValueError(f"it has no usable {', '.join(wrong)}")
    return Checkpoint(schema=written, **{field: content[field] for field in kinds})


@contextmanager
def fitting(source: str, what: str) -> Iterator[None]:
    """Say in words that a loaded state does not fit.

    Args:
        source: Where the state comes from.
        what: What it is put into, such as ``"runner"``.

    Raises:
        SchemaMismatchError: Parts of the state are missing, or have other shapes or kinds.
    """
    try:
        yield
    except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else _shortened(str(error))
        raise SchemaMismatchError(
            f"{source} does not fit this {what}: {reason}",
            "networks, normalisers and optimiser must have the shapes that were saved",
            f"build the {what} with the same classes and configuration, or load another checkpoint",
        ) from error


def _shortened(text: str, lines: int = 3) -> str:
    """Return the first lines of a message as one; torch names every tensor that does not fit."""
    first, rest = [line.strip() for line in text.splitlines()][:lines], len(text.splitlines()) - lines
    return " ".join(first) + (f" … and {rest} more" if rest > 0 else "")


def _unpack(data: bytes, name: str) -> dict[str, Any]:
    try:
        content = load_tensors(data)
    except pickle.UnpicklingError as error:
        raise CheckpointDamagedError(
            f"checkpoint {name!r} holds more than tensors and plain values: loading it could run code that is inside",
            "a checkpoint must load without running anything",
            "do not use this file; train again, or ask its author for one that save_checkpoint wrote",
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointDamagedError(
            f"{name!r} is a file of tensors but no checkpoint",
            f"its content must be marked {FORMAT!r}",
            "use a file written by save_checkpoint",
        )
    if content["format_version"] != FORMAT_VERSION:
        raise SchemaMismatchError(
            f"checkpoint {name!r} has the file format {content['format_version']}",
            f"this release reads format {FORMAT_VERSION}",
            "load it with the release that wrote it",
        )
    return content


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Which checkpoints stay on disk: the last ones, and the best ones beside them."""

    keep_last: int | None = 3
    """How many of the newest stay; None keeps all."""
    metric: str | None = None
    """The metric that decides which are best; None keeps none for being good."""
    mode: Literal["max", "min"] = "max"
    """Whether large or small values of the metric are good."""
    keep_best: int = 1
    """How many of the best stay. Of equals, the earlier ones."""

    def __post_init__(self) -> None:
        if (self.keep_last is not None and self.keep_last < 1) or self.keep_best < 1:
            raise ValueError(f"keep_last={self.keep_last} and keep_best={self.keep_best} must be at least 1")

    def best(self, metrics: Mapping[int, Mapping[str, float]]) -> list[int]:
        """Return the steps to keep for being good, best first. NaN and missing values are never good."""
        if self.metric is None:
            return []
        sign = -1.0 if self.mode == "max" else 1.0
        scores = {step: sign * known.get(self.metric, math.nan) for step, known in metrics.items()}
        ranked = sorted((score, step) for step, score in scores.items() if not math.isnan(score))
        return [step for _, step in ranked[: self.keep_best]]

    def surplus(self, metrics: Mapping[int, Mapping[str, float]]) -> list[int]:
        """Return the steps that need not stay."""
        if self.keep_last is None:
            return []
        kept = {*sorted(metrics)[-self.keep_last :], *self.best(metrics)}
        return sorted(metrics.keys() - kept)


class CheckpointStore:
    """A folder of checkpoints of one schema, numbered by step.

    A damaged file is named in a warning, once, and skipped; it neither counts as kept nor is removed.

    Args:
        folder: Where the files are; it may be missing until the first save.
        schema: What kind of state they hold.
        pattern: The file name, with ``{step}`` in it once, such as ``l2_bc_epoch{step}.ckpt.pt``.
        config: The resolved configuration to put into every checkpoint.
        retention: Which checkpoints stay.
        before_save: Called before each save, so that what belongs to a step is on disk before its checkpoint.
    """

    def __init__(
        self,
        folder: StrPath,
        schema: Schema,
        *,
        pattern: str = "checkpoint_{step}.pt",
        config: Any = None,  # noqa: ANN401 - any configuration object
        retention: Retention | None = None,
        before_save: Callable[[], None] | None = None,
    ) -> None:
        parts = pattern.split("{step}")
        if len(parts) != 2 or "/" in pattern:
            raise ValueError(f"pattern {pattern!r} must be a file name that contains {{step}} once")
        self.folder = Path(folder)
        self.schema = schema
        self.retention = retention or Retention()
        self._before_save = before_save
        self._pattern = pattern
        self._name = re.compile(re.escape(parts[0]) + r"(0|[1-9][0-9]*)" + re.escape(parts[1]))
        self._config = _config_mapping(config)
        self._metrics: dict[int, dict[str, float]] | None = None  # of undamaged files, once they are known
        self._damaged: set[int] = set()  # steps of files that a warning has named

    def path(self, step: int) -> Path:
        """Return the file of the checkpoint at ``step``, existing or not."""
        return self.folder / self._pattern.replace("{step}", str(step))

    def steps(self) -> list[int]:
        """Return the steps of all files that have a checkpoint's name, ascending, damaged or not."""
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):  # saving says that a file is in the way
            return []
        return sorted(int(match[1]) for name in names if (match := self._name.fullmatch(name)))

    def save(
        self,
        step: int,
        state: Mapping[str, Any],
        *,
        metrics: Mapping[str, float] | None = None,
        generators: Mapping[str, Generator] | None = None,
    ) -> Path:
        """Write the checkpoint of a step with all random-number states, then remove what need not stay.

        Args:
            step: How far the run has come; a file of the same step is replaced.
            state: Tensors and plain values, nested in dictionaries, lists and tuples.
            metrics: What is known of its quality, for :class:`Retention`.
            generators: The run's own random generators, by name.

        Raises:
            NotPlainError: If the state holds something else.
            WriteFailedError: If the disk is full or the folder is not writable; older files are untouched.
        """
        if step < 0:
            raise ValueError(f"step {step} must not be negative")
        known = self._known_metrics()
        checkpoint = Checkpoint(
            schema=self.schema,
            step=step,
            state=dict(state),
            config=self._config,
            metrics=dict(metrics or {}),
            rng=capture_rng(generators),
        )
        ensure_folder(self.folder)
        if self._before_save is not None:
            self._before_save()
        save_checkpoint(self.path(step), checkpoint)
        self._damaged.discard(step)
        known[step] = checkpoint.metrics
        for surplus in self.retention.surplus(known):
            self.path(surplus).unlink(missing_ok=True)
            del known[surplus]
        return self.path(step)

    def latest(self) -> Checkpoint | None:
        """Load the newest undamaged checkpoint, or None if there is none.

        Raises:
            SchemaMismatchError: If the newest undamaged file was written under another schema.
        """
        return next((checkpoint for _, checkpoint in self._undamaged()), None)

    def resume(self) -> Checkpoint | None:
        """Load the newest undamaged checkpoint to resume from it, and set aside damaged ones that are newer."""
        checkpoint = self.latest()
        self.rewind(None if checkpoint is None else checkpoint.step)
        return checkpoint

    def best(self) -> Checkpoint | None:
        """Load the checkpoint with the best metric, or None if no undamaged one has the metric."""
        ranked = self.retention.best({step: checkpoint.metrics for step, checkpoint in self._undamaged()})
        return load_checkpoint(self.path(ranked[0]), self.schema) if ranked else None

    def rewind(self, step: int | None) -> list[Path]:
        """Set aside what lies after ``step``, so that a run that resumes from there is the newest.

        The files keep their content and get the suffix ``.set-aside``, with a number where that name is taken.

        Args:
            step: The step to resume from; None sets all aside.

        Returns:
            The new paths.
        """
        return self.set_aside([self.path(later) for later in self.steps() if step is None or later > step], step)

    def set_aside(self, paths: Iterable[Path], step: int | None) -> list[Path]:
        """Rename files of this folder that lie after ``step``, as :meth:`rewind` does."""
        moved = [path.rename(free_name(path)) for path in paths]
        if moved:
            sync_folder(self.folder)
            logger.warning("set aside, because the run resumes from step %s: %s", step, _names(moved))
        self._metrics = None
        return moved

    def _undamaged(self) -> Iterator[tuple[int, Checkpoint]]:
        """Load the undamaged checkpoints, newest first, naming the damaged ones in warnings."""
        steps = self.steps()
        for step in reversed(steps):
            try:
                yield step, load_checkpoint(self.path(step), self.schema)
            except CheckpointMissingError:
                continue  # removed by its writer since the folder was listed
            except CheckpointDamagedError as error:
                if step not in self._damaged:
                    instead = "there is none before it" if step == steps[0] else "using the one before it"
                    logger.warning("skipping %s: %s; %s", self.path(step).name, error.got, instead)
                self._damaged.add(step)

    def _known_metrics(self) -> dict[int, dict[str, float]]:
        if self._metrics is None:
            remove_leftovers(self.folder)
            self._metrics = {step: checkpoint.metrics for step, checkpoint in self._undamaged()}
        return self._metrics


def _config_mapping(config: Any) -> dict[str, Plain]:  # noqa: ANN401 - any configuration object
    plain = to_plain({} if config is None else config)
    if not isinstance(plain, dict):
        raise TypeError(f"a configuration must be a mapping or a dataclass, not {type(config).__name__}")
    return plain


def _names(paths: list[Path]) -> str:
    return ", ".join(path.name for path in paths)

"""Metrics as lines of JSON, in a file that survives being killed and being resumed.

``metrics.jsonl`` holds one object per call of the logger: ``{"step": 3, "loss": 0.5}``. What the clock
decides (every metric whose name starts with ``time/``, and the time of day) goes to ``timings.jsonl``
beside it, so that the metrics of a resumed run equal those of an uninterrupted one byte by byte.

NaN and infinities are written as the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``: strict JSON has
no numbers for them.
"""

from __future__ import annotations

import io
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from apexrl.runs.atomic import StrPath, ensure_folder, write_failure
from apexrl.runs.errors import MetricError
from apexrl.runs.reading import MALFORMED, read_bytes

_WALL_CLOCK_PREFIX = "time/"
_TIMINGS_NAME = "timings.jsonl"


class JsonlSink:
    """Appends metrics to ``path`` and wall-clock values to ``timings.jsonl`` in the same folder.

    Args:
        path: The file of the metrics.
        after_step: None starts afresh; a step keeps what was logged up to it and drops the rest.
    """

    def __init__(self, path: StrPath, after_step: int | None = None) -> None:
        self._metrics = JsonlFile(path, after_step)
        self._timings = JsonlFile(Path(path).with_name(_TIMINGS_NAME), after_step)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append one line; the values that the clock decides go to the other file."""
        lasting = {name: value for name, value in metrics.items() if not _is_wall_clock(name)}
        passing = {name: value for name, value in metrics.items() if _is_wall_clock(name)}
        if lasting:
            self._metrics.append({"step": step, **_encode(lasting)})
        self._timings.append({"step": step, "time": time.time(), **_encode(passing)})

    def flush(self) -> None:
        """Make sure that everything written so far survives a power cut."""
        self._metrics.sync()
        self._timings.sync()

    def close(self) -> None:
        """Close both files."""
        self._metrics.close()
        self._timings.close()


def _is_wall_clock(name: str) -> bool:
    """Return whether a metric depends on the clock, by its name."""
    return name.startswith(_WALL_CLOCK_PREFIX)


def read_jsonl(path: StrPath) -> list[dict[str, Any]]:
    """Read a file of metrics; a last line that was cut off by a kill is ignored.

    Raises:
        MetricError: If another line is not an object with a step.
    """
    return [_decode(record) for _, record in _records(Path(path))]


class JsonlFile:
    """A file of JSON objects with non-decreasing ``step``, to which lines are appended whole.

    Args:
        path: The file.
        after_step: None empties it; a step keeps the lines up to it.
    """

    def __init__(self, path: StrPath, after_step: int | None) -> None:
        self._path = Path(path)
        ensure_folder(self._path.parent)
        try:
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise write_failure(error, path) from error
        self._length = 0 if after_step is None else _length_up_to(self._path, after_step)
        os.ftruncate(self._descriptor, self._length)

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one line. If the disk is full, the file is cut back to its last whole line.

        Raises:
            WriteFailedError: If the line cannot be written.
        """
        line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        try:
            written = os.write(self._descriptor, line)
            while written < len(line):  # a full disk first takes a part, then refuses the rest
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            os.ftruncate(self._descriptor, self._length)
            raise write_failure(error, self._path) from error
        self._length += len(line)

    def sync(self) -> None:
        """Flush to the disk."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise write_failure(error, self._path) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each whole line's end, in bytes from the start, and its object."""
    end = 0
    # lines end with \n alone: JSON texts may hold the other separators
    for number, line in enumerate(io.BytesIO(read_bytes(path)), start=1):
        if not line.endswith(b"\n"):
            return
        end += len(line)
        try:
            record = json.loads(line)
            step = record["step"]
        except MALFORMED as error:
            raise _damaged(path, number) from error
        if type(step) is not int or not isinstance(record, dict):
            raise _damaged(path, number)
        yield end, record


def _damaged(path: Path, number: int) -> MetricError:
    return MetricError(
        f"line {number} of {os.fspath(path)!r} is no metrics record",
        "every line but an unfinished last one is a JSON object with an integer 'step'",
        "repair or remove that line, or start a new run in another folder",
    )


def _length_up_to(path: Path, step: int) -> int:
    length = 0
    for end, record in _records(path):
        if record["step"] > step:
            break
        length = end
    return length


def _encode(metrics: Mapping[str, float]) -> dict[str, float | str]:
    return {name: value if math.isfinite(value) else _NAMES[str(value)] for name, value in metrics.items()}


_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _decode(record: dict[str, Any]) -> dict[str, Any]:
    return {name: float(value) if value in _NAMES.values() else value for name, value in record.items()}

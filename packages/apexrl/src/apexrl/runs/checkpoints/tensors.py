"""Sealed files of tensors and plain values: checkpoints and weights."""

from __future__ import annotations

import io
import os
import zipfile
from typing import Any

import torch

from apexrl.runs.atomic import StrPath, write_bytes
from apexrl.runs.checkpoints.seal import LABEL, seal, verify
from apexrl.runs.errors import CheckpointDamagedError
from apexrl.runs.reading import read_bytes, reading

__all__ = ["load_tensors", "read_tensors", "save_tensors"]


def save_tensors(path: StrPath, content: Any) -> None:  # noqa: ANN401 - a tree of tensors and plain values
    """Write tensors and plain values, sealed, whole or not at all; ``torch.load(path, weights_only=True)`` opens it."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_bytes(path, seal(buffer.getvalue()))


def read_tensors(path: StrPath) -> Any:  # noqa: ANN401 - a tree of tensors and plain values
    """Read what `save_tensors` wrote. A file of a release without seals is checked by its zip checksums.

    Raises:
        FileNotFoundError: If it is not there.
        CheckpointDamagedError: If it is not what was written, or holds more than tensors and plain values.
    """
    name = os.fspath(path)
    with reading(path, CheckpointDamagedError, "a file of tensors is read as it was written", "make it again"):
        data = read_bytes(path)
        if LABEL in data[-512:] or not zipfile.is_zipfile(io.BytesIO(data)):
            verify(data, name)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if (wrong := archive.testzip()) is not None:
                raise ValueError(f"the checksum of its part {wrong!r} does not match")
        return load_tensors(data)


def load_tensors(data: bytes) -> Any:  # noqa: ANN401 - a tree of tensors and plain values
    """Parse what ``torch.save`` wrote, on the CPU and without running any code stored in it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        total = sum(entry.file_size for entry in archive.infolist())
    if total > len(data):  # torch does not compress
        raise ValueError(f"it has {len(data)} bytes and unpacks to {total}")
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)

"""The one reader of ``.npz`` weights: bounded, without pickled objects, its checksums compared.

A submission has only numpy beside it, so this module imports nothing else of the project.
"""

from __future__ import annotations

import io
import json
import math
import os
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..arrays import Array

__all__ = ["WeightsError", "read_npz"]

_LIMIT: Final = 1 << 30
_DAMAGE: Final = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


class WeightsError(ValueError):
    """Weights cannot be used; the message says why and what to do."""


def read_npz(path: str | os.PathLike[str], limit: int = _LIMIT) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read a file of weights: its arrays, and what its ``meta``, a JSON text, says.

    Args:
        path: The file.
        limit: Most bytes of all arrays together; sizes are known from the headers before memory is taken.

    Raises:
        FileNotFoundError: If it is not there.
        WeightsError: If it is no regular file, too large, damaged, or something else.
    """
    try:
        state = os.stat(path)
        if not stat.S_ISREG(state.st_mode) or state.st_size > limit:
            raise ValueError(f"it is no regular file of at most {limit} bytes")
        with zipfile.ZipFile(io.BytesIO(Path(path).read_bytes())) as archive:
            names = archive.namelist()
            if sum(entry.file_size for entry in archive.infolist()) > limit or len(set(names)) < len(names):
                raise ValueError(f"its arrays take more than {limit} bytes, or one is there twice")
            arrays = {name.removesuffix(".npy"): _array(archive.read(name)) for name in names}
        meta = json.loads(str(arrays.pop("meta")))
        if not isinstance(meta, dict):
            raise ValueError("its meta is no JSON object")
    except FileNotFoundError:
        raise
    except _DAMAGE as error:
        name = os.fspath(path)
        raise WeightsError(f"{name!r} is no weights file ({type(error).__name__}: {error}); make it again") from error
    return arrays, meta


def _array(data: bytes) -> Array:
    """Parse an ``.npy`` file; an array that claims to be larger than its file is refused before memory is taken."""
    file = io.BytesIO(data)
    major, _ = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} does not take {len(data) - file.tell()} bytes")
    file.seek(0)
    array: Array = np.load(file, allow_pickle=False)
    return array

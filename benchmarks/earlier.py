"""Code of an earlier commit, to compare with in the same run."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_PACKAGES: Final = ("packages/litaagent/src", "packages/apexrl/src", "packages/hmasd/src")


@contextmanager
def checkout(commit: str, *folders: str) -> Iterator[Path]:
    """Unpack folders of a commit into a temporary one."""
    command = ["git", "archive", commit, *folders]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="earlier-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


def environment(root: Path, *more: Path) -> dict[str, str]:
    """Return the environment of a process that imports the packages of a folder, on one thread, with fixed hashes."""
    paths = os.pathsep.join(str(path) for path in (*(root / package for package in _PACKAGES), *more))
    return os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}

"""The source code of the running version as a ZIP archive, which every page links to (section 13 of the AGPL)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Final

__all__ = ["source_archive"]

_PACKAGES: Final = ("litaagent_std", "lita", "apexrl")
_DISTRIBUTIONS: Final = ("litaagent", "apexrl")
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # the archive depends on the files alone


@cache
def source_archive() -> bytes:
    """Return the archive: the installed packages with their templates and weights, their metadata and licences."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted([*_sources(), *_metadata()]):
            information = zipfile.ZipInfo(name, _DATE)
            archive.writestr(information, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _sources() -> Iterator[tuple[str, bytes]]:
    for package in _PACKAGES:
        root = Path(str(files(package)))
        for path in root.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
                yield f"{package}/{path.relative_to(root).as_posix()}", path.read_bytes()


def _metadata() -> Iterator[tuple[str, bytes]]:
    for name in _DISTRIBUTIONS:
        try:
            paths = distribution(name).files or []
        except PackageNotFoundError:  # sources on the path, not installed
            continue
        for path in paths:
            located = Path(str(path.locate()))
            if (path.name == "METADATA" or "licenses" in path.parts) and located.is_file():
                yield f"{name}.metadata/{path.name}", located.read_bytes()

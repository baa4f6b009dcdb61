"""Files of weights that online training writes, and those that come with the package."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.runs.atomic import atomic_file
from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.tournament.competitors.parameter_files import named_file

__all__ = ["SHIPPED", "save", "weights_file"]

SHIPPED: Final = Path(__file__).parent / "shipped"
"""Folder of the trained weights that come with the package. A file there never changes: better ones get a new name."""


def weights_file(name: str | Path) -> Path:
    """Return the file of a path, or of the name of weights that come with the package.

    Raises:
        ConfigurationError: If there is none.
    """
    return named_file(name, SHIPPED, ".npz", what="weights", made_by="lita train-online")


def save(policies: PolicySet, path: str | PathLike[str], **meta: Any) -> None:  # noqa: ANN401 - plain values for JSON
    """Write policies as ``.npz`` without pickled objects, atomically; ``meta`` is stored beside the arrays."""
    arrays: dict[str, Any] = policies.arrays(**meta)
    with atomic_file(path) as file:
        np.savez(file, **arrays)

"""Weights of trained layers on disk: ``.npz`` files without pickled objects.

A file holds the arrays of a network, and ``meta``, a JSON string with their kind, sizes and digests.
Whether they fit the present features and the present L1 is checked where layers are made of them (`policy.learned`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..arrays import Array
from .npz import WeightsError, read_npz

__all__ = ["FORMAT", "FORMAT_VERSION", "Weights", "WeightsError", "load_weights", "read_weights", "weights_path"]

FORMAT: Final = "litaagent.weights"
FORMAT_VERSION: Final = 2
_OLDEST: Final = {"l2": 2, "l3": 2, "l4": 2}
"""Oldest version of the format by kind, 1 for the others: since 2 the layers give residuals on their heuristics."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The content of a weights file.

    Attributes:
        arrays: The network's arrays by their names in torch.
        meta: Kind, digests, horizon, sizes, and how they were made.
        source: Where they come from, for messages.
    """

    arrays: Mapping[str, Array]
    meta: Mapping[str, Any]
    source: str

    @property
    def kind(self) -> str:
        """``l2``, ``l3``, ``acceptance``, ``l4`` or ``partner``."""
        return str(self.meta["kind"])


def load_weights(path: str | Path) -> Weights:
    """Read an ``.npz`` weights file.

    Raises:
        WeightsError: If the file is missing, damaged or of another format.
    """
    name = str(path)
    if name.endswith((".pt", ".pth")):
        raise WeightsError(
            f"{name!r} is a file of a training run, which torch reads; play and --warm read the run's .npz weights, so "
            "name the folder of the run"
        )
    try:
        arrays, meta = read_npz(path)
    except FileNotFoundError as error:
        raise WeightsError(f"there are no weights {name!r}; correct the path, or train and export them") from error
    version, oldest = meta.get("format_version"), _OLDEST.get(str(meta.get("kind")), 1)
    if meta.get("format") != FORMAT or version not in range(oldest, FORMAT_VERSION + 1):
        raise WeightsError(
            f"{name!r} has format {meta.get('format')!r} version {version!r}, this version reads {FORMAT!r} version "
            f"{FORMAT_VERSION}; export the trained layer again"
        )
    if not isinstance(meta.get("kind"), str):
        raise WeightsError(f"{name!r} does not name its kind; export the trained layer again")
    return Weights(arrays, meta, name)


def read_weights(path: str | Path) -> dict[str, Weights]:
    """Read one weights file, or every one of a folder, by kind.

    Args:
        path: The file, the folder, or the folder of a run: what passed its gate, else its newest weights.

    Raises:
        WeightsError: If there are none, one cannot be used, or two are of the same kind.
    """
    folder = weights_path(path)
    files = sorted(folder.glob("*.npz")) if folder.is_dir() else [folder]
    if not files:
        raise WeightsError(f"folder {str(path)!r} holds no .npz weights; name the folder that training exported to")
    by_kind: dict[str, Weights] = {}
    for file in files:
        weights = load_weights(file)
        if weights.kind in by_kind:
            raise WeightsError(
                f"{by_kind[weights.kind].source!r} and {weights.source!r} are both of kind {weights.kind!r}; keep one "
                "of each kind in a folder"
            )
        by_kind[weights.kind] = weights
    return by_kind


def weights_path(path: str | Path) -> Path:
    """Return the file or folder that `read_weights` reads."""
    given = Path(path)
    if given.is_dir() and not any(given.glob("*.npz")):
        # the folder of a run: what passed the gate, or the only or newest weights
        known = [given / "best", *sorted((given / "weights").glob("v*"), reverse=True), given / "weights"]
        return next((folder for folder in known if any(folder.glob("*.npz"))), given)
    return given

"""Weights of trained layers on disk: ``.npz`` files without pickled objects.

A file holds the arrays of a network, and ``meta``, a JSON string with their kind, sizes and digests.
Weights made with other features or with another L1 are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from ..arrays import Array
from ..digest import l1_digest
from ..features import features_digest

__all__ = ["FORMAT", "FORMAT_VERSION", "Weights", "WeightsError", "check_made_with", "load_weights", "read_weights"]

FORMAT: Final = "litaagent.weights"
FORMAT_VERSION: Final = 1
_MADE_WITH: Final = ("features_digest", "l1_digest")


class WeightsError(ValueError):
    """Weights cannot be used; the message says why and what to do."""


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
        """``l2``, ``l3``, ``acceptance`` or ``l4``."""
        return str(self.meta["kind"])


def load_weights(path: str | Path, *, check: bool = True) -> Weights:
    """Read a weights file.

    Args:
        path: An ``.npz`` file.
        check: Whether to refuse weights that were made with other features or another L1.

    Raises:
        WeightsError: If the file is missing, damaged, of another format, or was made with something else.
    """
    name = str(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        meta = json.loads(str(arrays.pop("meta")))
    except FileNotFoundError as error:
        raise WeightsError(f"there are no weights {name!r}; correct the path, or train and export them") from error
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise WeightsError(f"{name!r} is no weights file ({error}); export the trained layer again") from error
    if meta.get("format") != FORMAT or meta.get("format_version") != FORMAT_VERSION:
        raise WeightsError(
            f"{name!r} has format {meta.get('format')!r} version {meta.get('format_version')!r}, this version reads "
            f"{FORMAT!r} version {FORMAT_VERSION}; export the trained layer again"
        )
    weights = Weights(arrays, meta, name)
    if check:
        check_made_with(weights)
    return weights


def check_made_with(weights: Weights) -> None:
    """Make sure that weights fit the present features and the present L1.

    Raises:
        WeightsError: If a digest differs.
    """
    present = {"features_digest": features_digest(), "l1_digest": l1_digest()}
    for name in _MADE_WITH:
        made = str(weights.meta.get(name))
        if made != present[name]:
            what = "features" if name == "features_digest" else "another L1"
            raise WeightsError(
                f"weights {weights.source!r} were made with {what} {made[:12]}…, present is {present[name][:12]}…; "
                "their inputs would mean something else: train again with this version, or use the version that "
                "made them"
            )


def read_weights(path: str | Path) -> dict[str, Weights]:
    """Read one weights file, or every one of a folder, by kind.

    Raises:
        WeightsError: If there are none, one cannot be used, or two are of the same kind.
    """
    folder = Path(path)
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

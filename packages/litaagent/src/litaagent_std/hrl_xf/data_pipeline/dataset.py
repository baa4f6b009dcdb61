"""A dataset on disk, memory-mapped.

::

    DATASET/
      manifest.json       provenance and counts
      world_split.json    configurations of train, val and test
      macro/goal_q.npy    an array per field, a row per day of a factory
      micro/history.npy   likewise, a row per action of a negotiation

Only the rows that are used are read, so a dataset may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.runs.reading import contained, read_sealed, reading, verify_file
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError, EmptySplitError
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS, Split
from litaagent_std.hrl_xf.data_pipeline.split import SPLIT_NAME, WorldSplit
from litaagent_std.policy.arrays import Array, Ints
from litaagent_std.policy.digest import check_l1_digest
from litaagent_std.policy.features import check_digest

__all__ = ["FORMAT", "MANIFEST_NAME", "SCHEMA_VERSION", "OfflineData", "Part"]

MANIFEST_NAME: Final = "manifest.json"
FORMAT: Final = "litaagent.dataset"
SCHEMA_VERSION: Final = 2

_WANTED: Final = (
    "the files of a dataset are not changed after the build",
    "remove the dataset's folder and build it again",
)


class Part:
    """The macro or the micro half of a dataset: arrays by name, all with the same number of rows.

    Args:
        folder: Folder of the arrays.
        shapes: Expected shape of each.
        split: The split of the dataset.
        digests: SHA-256 of each file; those of an earlier release have none.
    """

    def __init__(
        self, folder: Path, shapes: dict[str, list[int]], split: WorldSplit, digests: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        self._shapes, self._split, self._digests = shapes, split, digests or {}
        self._arrays: dict[str, Array] = {}
        self._rows: dict[Split, Ints] = {}

    def __len__(self) -> int:
        return next(iter(self._shapes.values()))[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __contains__(self, name: object) -> bool:
        return name in self._shapes

    def keys(self) -> tuple[str, ...]:
        """Return the names of the arrays."""
        return tuple(self._shapes)

    def __getitem__(self, name: str) -> Array:
        if name not in self._shapes:
            raise KeyError(f"there is no array {name!r}; there are {list(self._shapes)}")
        if name not in self._arrays:
            self._arrays[name] = self._map(name)
        return self._arrays[name]

    def chunks(self, size: int, names: Iterable[str] | None = None) -> Iterator[dict[str, Array]]:
        """Yield the arrays in pieces of so many rows; of an empty part one piece without rows.

        Args:
            size: Rows of a piece.
            names: Which arrays; default: all.
        """
        for start in range(0, max(1, len(self)), size):
            yield {name: np.asarray(self[name][start : start + size]) for name in (names or self)}

    def rows(self, split: Split) -> Ints:
        """Return the row numbers of a split.

        Raises:
            EmptySplitError: If it has none.
            DatasetError: If there is no such split.
        """
        if split not in SPLITS:
            raise DatasetError(f"there is no split {split!r}", f"splits are {', '.join(SPLITS)}", "choose one of them")
        if split not in self._rows:
            configs = np.array(self._split.configs[split], np.int64)
            self._rows[split] = np.flatnonzero(np.isin(self["config"], configs)).astype(np.int64)
        if not len(self._rows[split]):
            counts = {name: len(self._split.configs[name]) for name in SPLITS}
            raise EmptySplitError(
                f"the split {split!r} of {str(self.folder.parent)!r} has no rows",
                f"configurations go to splits whole, and there are {counts}",
                "collect more configurations, or build the dataset with other ratios",
            )
        return self._rows[split]

    def _map(self, name: str) -> Array:
        file = self.folder / f"{name}.npy"
        try:
            with reading(file, DatasetError, *_WANTED):
                path = contained(self.folder, file.name)
                if name in self._digests:
                    verify_file(path, self._digests[name])
                array: Array = np.load(path, mmap_mode="r" if len(self) else None, allow_pickle=False)
                if list(array.shape) != self._shapes[name]:
                    raise ValueError(f"its shape is {list(array.shape)}, the manifest says {self._shapes[name]}")
                return array
        except FileNotFoundError as error:
            raise DatasetError(f"there is no {str(file)!r}", *_WANTED) from error


@dataclass(frozen=True)
class OfflineData:
    """A dataset; see `OfflineData.open`.

    Attributes:
        folder: Folder of the dataset.
        manifest: Content of ``manifest.json``.
        split: Content of ``world_split.json``.
        macro: A row per day of a factory.
        micro: A row per action of a negotiation.
    """

    folder: Path
    manifest: dict[str, Any]
    split: WorldSplit
    macro: Part
    micro: Part

    @classmethod
    def open(cls, folder: str | Path, *, check: bool = True) -> OfflineData:
        """Open a dataset.

        Args:
            folder: Its folder.
            check: Whether to reject a dataset made with other features or another L1.

        Raises:
            DatasetError: If there is none, it is damaged, or its features or L1 differ.
        """
        path = Path(folder)
        manifest = read_manifest(path)
        if check:
            try:
                check_digest(manifest["features_digest"], f"dataset {str(path)!r}")
                check_l1_digest(manifest["l1_digest"], f"dataset {str(path)!r}")
            except ValueError as error:
                raise DatasetError(str(error)) from error
        split = WorldSplit.read(path / SPLIT_NAME)
        digests = manifest.get("array_digests", {})
        halves = ("macro", "micro")
        parts = [Part(path / name, manifest["arrays"][name], split, digests.get(name)) for name in halves]
        return cls(path, manifest, split, *parts)

    @property
    def digest(self) -> str:
        """Digest of everything that the dataset depends on."""
        return str(self.manifest["digest"])

    @property
    def horizon(self) -> int:
        """Delivery days after today that the arrays hold."""
        return int(self.manifest["horizon"])

    @property
    def league_horizon(self) -> int:
        """The league's horizon, which defines the buckets."""
        return int(self.manifest["league_horizon"])

    @property
    def features_digest(self) -> str:
        """Digest of the feature table."""
        return str(self.manifest["features_digest"])

    @property
    def l1_digest(self) -> str:
        """Digest of the L1 that computed the baselines."""
        return str(self.manifest["l1_digest"])

    @cached_property
    def config_seeds(self) -> dict[int, int]:
        """Seed of each configuration by its number."""
        seeds: dict[int, int] = {}
        for split in SPLITS:
            seeds.update(zip(self.split.configs[split], self.split.config_seeds[split], strict=True))
        return seeds


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a dataset's manifest.

    Raises:
        DatasetError: If there is none, or this release cannot read it.
    """
    path = folder / MANIFEST_NAME
    try:
        with reading(path, DatasetError, *_WANTED):
            return _parse(path, read_sealed(path))
    except FileNotFoundError as error:
        raise DatasetError(
            f"there is no {str(path)!r}", "a finished dataset has a manifest", "build it: lita dataset build"
        ) from error


def _parse(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    if manifest.get("format") != FORMAT:
        raise ValueError(f"it is not marked {FORMAT!r}")
    if manifest["schema_version"] != SCHEMA_VERSION:
        raise DatasetError(
            f"{str(path)!r} has schema version {manifest['schema_version']}",
            f"this release reads version {SCHEMA_VERSION}",
            "build the dataset again from its records",
        )
    for name in ("digest", "features_digest", "l1_digest"):
        if not isinstance(manifest[name], str):
            raise ValueError(f"its {name} is {manifest[name]!r}")
    for name in ("horizon", "league_horizon"):
        if type(manifest[name]) is not int:
            raise ValueError(f"its {name} is {manifest[name]!r}")
    digests = manifest.get("array_digests", {})  # a dataset of an earlier release has none
    for half in ("macro", "micro"):
        if not all(isinstance(digest, str) for digest in digests.get(half, {}).values()):
            raise ValueError(f"its digests of {half} arrays are no texts")
        shapes = manifest["arrays"][half]
        numbers = [number for shape in shapes.values() for number in shape]
        if not shapes or any(type(number) is not int or number < 0 for number in numbers):
            raise ValueError(f"its shapes of {half} arrays are none")
        if len({shape[0] for shape in shapes.values()}) > 1:
            raise ValueError(f"its {half} arrays have different numbers of rows")
    return manifest

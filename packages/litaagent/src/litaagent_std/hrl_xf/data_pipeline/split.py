"""The split of configurations into train, val and test: ``world_split.json``.

All worlds of a configuration are in one split: its runs and rotations share factories, prices and exogenous contracts.
Configurations are ordered by a hash of the split's seed and of their own seed, so the split does not depend on the
order of folders, and few configurations move when a dataset grows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from apexrl.runs.reading import read_sealed, reading, write_sealed
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS, Split

__all__ = ["SPLIT_NAME", "WorldSplit", "assign"]

SPLIT_NAME: Final = "world_split.json"
_FORMAT: Final = "litaagent.world_split"


@dataclass(frozen=True, slots=True)
class WorldSplit:
    """The content of ``world_split.json``.

    Attributes:
        seed: Seed of the assignment.
        ratios: Shares of configurations in train, val and test.
        records: Digest of each folder of records, by its path relative to the data folder.
        configs: Numbers of the configurations in the dataset, by split.
        config_seeds: Seeds of these configurations, by split.
        worlds: Worlds by split and folder of records.
    """

    seed: int
    ratios: tuple[float, float, float]
    records: Mapping[str, str]
    configs: Mapping[Split, tuple[int, ...]]
    config_seeds: Mapping[Split, tuple[int, ...]]
    worlds: Mapping[Split, Mapping[str, tuple[int, ...]]]

    @property
    def names(self) -> tuple[Split, ...]:
        """The splits that have worlds."""
        return tuple(split for split in SPLITS if self.configs[split])

    def n_worlds(self, split: Split) -> int:
        """Return the number of worlds of a split."""
        return sum(map(len, self.worlds[split].values()))

    def write(self, path: Path) -> None:
        """Replace the file, whole or not at all."""
        write_sealed(
            path,
            {
                "format": _FORMAT,
                "seed": self.seed,
                "ratios": list(self.ratios),
                "records": dict(self.records),
                "configs": {split: list(self.configs[split]) for split in SPLITS},
                "config_seeds": {split: list(self.config_seeds[split]) for split in SPLITS},
                "worlds": {split: {k: list(v) for k, v in self.worlds[split].items()} for split in SPLITS},
            },
        )

    @classmethod
    def read(cls, path: str | Path) -> WorldSplit:
        """Read the file, or the one in a folder.

        Raises:
            DatasetError: If it is missing or not a split.
        """
        file = Path(path)
        file = file / SPLIT_NAME if file.is_dir() else file
        try:
            with reading(file, DatasetError, "it must be a split of worlds", "build it again"):
                return cls._parse(read_sealed(file))
        except FileNotFoundError as error:
            raise DatasetError(f"there is no {str(file)!r}", "a dataset has it", "build the dataset again") from error

    @classmethod
    def _parse(cls, plain: Mapping[str, Any]) -> WorldSplit:
        if plain.get("format") != _FORMAT:
            raise ValueError(f"it is not marked {_FORMAT!r}")
        first, second, third = map(float, plain["ratios"])
        configs, seeds = _tuples(plain["configs"]), _tuples(plain["config_seeds"])
        if [len(configs[split]) for split in SPLITS] != [len(seeds[split]) for split in SPLITS]:
            raise ValueError("it does not have a seed for each configuration")
        return cls(
            int(plain["seed"]),
            (first, second, third),
            {str(name): str(digest) for name, digest in plain["records"].items()},
            configs,
            seeds,
            {split: _tuples(plain["worlds"][split]) for split in SPLITS},
        )


def _tuples(plain: Mapping[Any, Sequence[int]]) -> dict[Any, tuple[int, ...]]:
    """Return lists of whole numbers as tuples."""
    if any(type(value) is not int for values in plain.values() for value in values):
        raise ValueError("it has other values than whole numbers")
    return {key: tuple(values) for key, values in plain.items()}


def assign(config_seeds: Sequence[int], seed: int, ratios: tuple[float, float, float]) -> dict[Split, tuple[int, ...]]:
    """Assign configurations to splits.

    Shares are rounded to whole configurations; where there are enough configurations every split with a share gets
    at least one, and with fewer, train comes before val and val before test.

    Args:
        config_seeds: Seed of each configuration, by its number.
        seed: Seed of the assignment.
        ratios: Shares of train, val and test.

    Returns:
        Numbers of the configurations, by split.
    """
    order = sorted(
        range(len(config_seeds)), key=lambda n: hashlib.sha256(f"{seed}:{config_seeds[n]}".encode()).digest()
    )
    counts = _counts(len(order), ratios)
    splits: dict[Split, tuple[int, ...]] = {}
    start = 0
    for split, count in zip(SPLITS, counts, strict=True):
        splits[split] = tuple(sorted(order[start : start + count]))
        start += count
    return splits


def _counts(n: int, ratios: tuple[float, float, float]) -> list[int]:
    nonempty = [ratio > 0 for ratio in ratios]
    counts = [1 if wanted and sum(nonempty[:index]) < n else 0 for index, wanted in enumerate(nonempty)]
    while sum(counts) < n:
        # The split that is furthest below its share gets the next configuration.
        behind = [
            ratio * n - count if ratio > 0 else float("-inf") for ratio, count in zip(ratios, counts, strict=True)
        ]
        counts[behind.index(max(behind))] += 1
    return counts

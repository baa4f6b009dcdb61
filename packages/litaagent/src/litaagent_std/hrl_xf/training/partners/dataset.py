"""Snapshots of all worlds under some paths, folded in parallel and kept on disk.

Each world becomes a shard that appears whole or not at all, so a build that was stopped resumes with the same call. The
folder is named by the digest of everything that the snapshots depend on; what exists is not folded again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.execution import RunOptions, RunReport, Task, TaskReport, make_executor
from apexrl.execution.executor import available_cpus
from apexrl.runs.atomic import atomic_file, ensure_folder, remove_leftovers, write_json
from apexrl.runs.digest import digest_code, digest_config
from apexrl.runs.lock import exclusive
from litaagent_std.hrl_xf.data_pipeline.build import DATASETS_FOLDER, relative_paths, source_digest
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.extraction import columns
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS, Split
from litaagent_std.hrl_xf.data_pipeline.shards import read_tables
from litaagent_std.hrl_xf.data_pipeline.split import assign
from litaagent_std.hrl_xf.training.partners import fold, mixture
from litaagent_std.hrl_xf.training.partners.fold import COLUMNS, TABLES, fold_world
from litaagent_std.policy.arrays import Array, Ints
from litaagent_std.policy.l1 import baseline
from litaagent_std.policy.l3 import heuristic
from litaagent_std.policy.partners import signature
from litaagent_std.policy.partners.signature import signature_digest
from litaagent_std.records.reader import Records, WorldKey, open_records

__all__ = ["PartnerData", "build_partner_data"]

_FORMAT: Final = "litaagent.partner_dataset"
_MANIFEST: Final = "manifest.json"
_SHARDS: Final = "shards"
_WORLDS_PER_TASK: Final = 8
_CODE: Final = (fold, mixture, columns, signature, baseline, heuristic)
"""Modules that turn records into snapshots."""


@dataclass(frozen=True)
class PartnerData:
    """Snapshots on disk.

    Attributes:
        folder: Their folder.
        manifest: What they were made from.
    """

    folder: Path
    manifest: dict[str, Any]

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __len__(self) -> int:
        return len(self._arrays["label"])

    @cached_property
    def _arrays(self) -> dict[str, Array]:
        names = (*COLUMNS, "world", "config")
        return {name: np.load(self.folder / f"{name}.npy", mmap_mode="r") for name in names}

    @property
    def digest(self) -> str:
        """Digest of everything that they depend on."""
        return str(self.manifest["digest"])

    def rows(self, split: Split) -> Ints:
        """Return the rows of a split."""
        return np.flatnonzero(np.isin(self["config"], self.manifest["configs"][split]))

    def n_worlds(self, split: Split) -> int:
        """Return the number of worlds of a split."""
        return len(np.unique(self["world"][self.rows(split)]))


@dataclass(frozen=True, slots=True)
class FoldTask:
    """Worlds of one folder of records to fold.

    Attributes:
        records: The folder of records.
        worlds: Number of each world in the dataset and in its folder, and whether it is held out.
        folder: Folder of the shards.
    """

    records: str
    worlds: tuple[tuple[int, int, bool], ...]
    folder: str


def fold_worlds(task: FoldTask) -> int:
    """Fold the worlds of a task whose shards are missing; return their number."""
    folder = Path(task.folder)
    missing = [world for world in task.worlds if not _shard(folder, world[0]).exists()]
    read = read_tables(open_records(task.records), [WorldKey(0, number) for _, number, _ in missing], TABLES)
    for (index, _, held_out), record in zip(missing, read, strict=True):
        arrays: dict[str, Any] = dict(fold_world(record, mixture=held_out))
        with atomic_file(_shard(folder, index)) as file:
            np.savez(file, **arrays)
    return len(missing)


def _shard(folder: Path, index: int) -> Path:
    return folder / f"{index:06}.npz"


def build_partner_data(
    path: Path,
    folder: Path | None = None,
    *,
    split_seed: int,
    ratios: tuple[float, float, float],
    num_workers: int | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> PartnerData:
    """Fold all records under a path, or open what was folded before.

    The hand-written belief of competitors is folded in held-out worlds alone, where it is compared.

    Args:
        path: A tournament's folder, or one that holds several.
        folder: Parent of the dataset's folder; default: ``datasets`` of the path.
        split_seed: Seed of the assignment of configurations to splits.
        ratios: Shares of train, val and test.
        num_workers: Worlds to fold at once; default: as many as there are CPUs; 1 folds in this process.
        on_progress: Called with each progress message; default: no messages.

    Raises:
        NoRecordsError: If there are no records.
        DatasetError: If a world cannot be used.
    """
    records = open_records(path)
    content = _provenance(records, path, split_seed, ratios)
    target = (folder or path / DATASETS_FOLDER) / f"partner-{content['digest'][:16]}"
    if not (target / _MANIFEST).exists():
        ensure_folder(target)
        with exclusive(target):
            if not (target / _MANIFEST).exists():
                _build(records, target, content, num_workers, on_progress)
    return PartnerData(target, json.loads((target / _MANIFEST).read_bytes()))


def _provenance(records: Records, path: Path, split_seed: int, ratios: tuple[float, float, float]) -> dict[str, Any]:
    paths = relative_paths(records, [path])
    content: dict[str, Any] = {
        "sources": {name: source_digest(source) for name, source in zip(paths, records.sources, strict=True)},
        "split_seed": split_seed,
        "split_ratios": list(ratios),
        "signature_digest": signature_digest(),
        "code_digest": digest_code(Path(str(module.__file__)) for module in _CODE),
    }
    return {"format": _FORMAT, **content, "digest": digest_config(content)}


def _build(
    records: Records,
    target: Path,
    content: dict[str, Any],
    num_workers: int | None,
    on_progress: Callable[[str], None],
) -> None:
    keys, seeds = _worlds(records)
    splits = assign(seeds, content["split_seed"], tuple(content["split_ratios"]))
    held_out = {config for split in SPLITS if split != "train" for config in splits[split]}
    shards = ensure_folder(target / _SHARDS)
    remove_leftovers(shards)
    worlds = [(index, key, config in held_out) for index, (key, config) in enumerate(keys)]
    _fold(records, worlds, shards, num_workers, on_progress)
    counts = _gather(shards, target, [config for _, config in keys])
    manifest = {
        **content,
        "worlds": len(keys),
        "rows": counts,
        "config_seeds": seeds,
        "configs": {split: list(numbers) for split, numbers in splits.items()},
    }
    write_json(target / _MANIFEST, manifest)
    shutil.rmtree(shards)
    on_progress(f"{len(keys)} worlds, {counts} snapshots of partners")


def _worlds(records: Records) -> tuple[list[tuple[WorldKey, int]], list[int]]:
    """Return all worlds with the number of their configuration, and the seeds of the configurations."""
    numbers: dict[int, int] = {}
    keys = []
    for row in records.table("worlds", columns=["config_seed"]).to_pylist():
        config = numbers.setdefault(row["config_seed"], len(numbers))
        keys.append((WorldKey(row["source"], row["world"]), config))
    return keys, list(numbers)


def _fold(
    records: Records,
    worlds: Sequence[tuple[int, WorldKey, bool]],
    shards: Path,
    num_workers: int | None,
    on_progress: Callable[[str], None],
) -> None:
    missing = [world for world in worlds if not _shard(shards, world[0]).exists()]
    tasks = list(_tasks(records, missing, shards))
    workers = min(len(tasks), available_cpus() if num_workers is None else num_workers)
    done = len(worlds) - len(missing)

    def progress(_: TaskReport, report: RunReport) -> None:
        on_progress(f"folded {min(len(worlds), done + report.finished * _WORLDS_PER_TASK)} of {len(worlds)} worlds")

    settings = RunOptions(retries=1, progress=progress, ordered=False)
    with (
        make_executor("inline" if workers <= 1 else "processes", workers=max(1, workers)) as executor,
        closing(executor.run([Task(fold_worlds, (task,), label=task.records) for task in tasks], settings)) as run,
    ):
        for result in run:
            if result.failure is not None:
                raise DatasetError(
                    f"a world of {result.label} cannot be folded: {result.failure.message}",
                    "every recorded world must be readable",
                    "run lita records PATH --verify, then restore or collect those worlds again",
                )


def _tasks(records: Records, missing: Sequence[tuple[int, WorldKey, bool]], shards: Path) -> Iterator[FoldTask]:
    for source, group in groupby(missing, key=lambda world: world[1].source):
        folder = str(records.sources[source].folder)
        while batch := tuple(islice(group, _WORLDS_PER_TASK)):
            yield FoldTask(folder, tuple((index, key.world, held_out) for index, key, held_out in batch), str(shards))


def _gather(shards: Path, target: Path, configs: Sequence[int]) -> int:
    """Join the shards of all worlds, in order; return the number of snapshots."""
    parts: dict[str, list[Array]] = {name: [] for name in (*COLUMNS, "world", "config")}
    for index, config in enumerate(configs):
        with np.load(_shard(shards, index)) as shard:
            rows = len(shard["label"])
            for name in COLUMNS:
                parts[name].append(shard[name])
        parts["world"].append(np.full(rows, index, np.int32))
        parts["config"].append(np.full(rows, config, np.int32))
    for name, arrays in parts.items():
        with atomic_file(target / f"{name}.npy") as file:
            np.save(file, np.concatenate(arrays))
    return sum(map(len, parts["label"]))

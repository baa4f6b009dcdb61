"""Snapshots of all worlds under some paths, folded in parallel and kept on disk.

Each world becomes a file that appears whole or not at all, so a build that was stopped resumes with the same call. The
dataset is named by the digest of everything that its snapshots depend on. Folded worlds stay in a folder beside
it, named by the digest of their own content: when records grow, only new worlds are folded.
"""

from __future__ import annotations

import hashlib
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
from apexrl.runs.atomic import atomic_file, ensure_folder, remove_leftovers
from apexrl.runs.digest import digest_code, digest_config, digest_file
from apexrl.runs.lock import exclusive
from apexrl.runs.reading import contained, read_npz, read_sealed, reading, verify_file, write_sealed
from litaagent_std.hrl_xf.data_pipeline.build import DATASETS_FOLDER, relative_paths, source_digest
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS, Split
from litaagent_std.hrl_xf.data_pipeline.shards import read_tables
from litaagent_std.hrl_xf.data_pipeline.split import assign
from litaagent_std.hrl_xf.training.partners import fold
from litaagent_std.hrl_xf.training.partners.fold import COLUMNS, TABLES, fold_world
from litaagent_std.policy.arrays import Array, Ints
from litaagent_std.policy.l1 import baseline
from litaagent_std.policy.l3 import heuristic
from litaagent_std.policy.partners import signature
from litaagent_std.policy.partners.signature import signature_digest
from litaagent_std.records import columns
from litaagent_std.records.reader import Records, WorldKey, open_records
from litaagent_std.records.world import WorldRecord

__all__ = ["PartnerData", "build_partner_data"]

_FORMAT: Final = "litaagent.partner_dataset"
_MANIFEST: Final = "manifest.json"
_FOLDED: Final = "partner-folded"
_WORLDS_PER_TASK: Final = 8
_CODE: Final = (fold, columns, signature, baseline, heuristic)
"""Modules that turn records into snapshots."""


_WANTED: Final = (
    "it is not changed after it was folded",
    "remove the dataset's folder; the same command makes it again",
)


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
        return {name: self._map(name) for name in (*COLUMNS, "world", "config")}

    def _map(self, name: str) -> Array:
        path = self.folder / f"{name}.npy"
        with reading(path, DatasetError, *_WANTED):
            digests = self.manifest.get("array_digests", {})
            if name in digests:
                verify_file(contained(self.folder, path.name), digests[name])
            array: Array = np.load(path, mmap_mode="r")
            return array

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
        worlds: Number of each world in its folder, and whether it is held out.
        folder: Folder of folded worlds.
        code: Digest of the code that folds.
    """

    records: str
    worlds: tuple[tuple[int, bool], ...]
    folder: str
    code: str


def fold_worlds(task: FoldTask) -> list[str]:
    """Fold the worlds of a task that are not folded yet; return the names of their files."""
    folder, names = Path(task.folder), []
    read = read_tables(open_records(task.records), [WorldKey(0, number) for number, _ in task.worlds], TABLES)
    for (_, held_out), record in zip(task.worlds, read, strict=True):
        name = f"{_content_digest(record, task.code, held_out)}.npz"
        if not (folder / name).exists():
            arrays: dict[str, Any] = dict(fold_world(record, mixture=held_out))
            with atomic_file(folder / name) as file:
                np.savez(file, **arrays)
        names.append(name)
    return names


def _content_digest(record: WorldRecord, code: str, held_out: bool) -> str:
    """Return a digest of all that a folded world depends on: its tables, the code, and whether it is held out."""
    digest = hashlib.sha256(f"{code} {held_out}".encode())
    for name in TABLES:
        for column in record.tables[name].drop_columns(["world"]).combine_chunks().columns:
            values = np.asarray(column)
            # texts are objects, whose bytes would be addresses
            digest.update(repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes())
    return digest.hexdigest()[:32]


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
    with reading(target / _MANIFEST, DatasetError, *_WANTED):
        return PartnerData(target, read_sealed(target / _MANIFEST))


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
    folder = ensure_folder(target.parent / _FOLDED)
    remove_leftovers(folder)
    tasks = list(_tasks(records, [(key, config in held_out) for key, config in keys], folder, content["code_digest"]))
    files = _fold(tasks, len(keys), num_workers, on_progress)
    counts = _gather([folder / name for name in files], target, [config for _, config in keys])
    manifest = {
        **content,
        "worlds": len(keys),
        "rows": counts,
        "array_digests": {name: digest_file(target / f"{name}.npy") for name in (*COLUMNS, "world", "config")},
        "config_seeds": seeds,
        "configs": {split: list(numbers) for split, numbers in splits.items()},
    }
    write_sealed(target / _MANIFEST, manifest)
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
    tasks: Sequence[FoldTask], n_worlds: int, num_workers: int | None, on_progress: Callable[[str], None]
) -> list[str]:
    """Fold the worlds of all tasks in parallel; return the names of their files, in order."""
    workers = min(len(tasks), available_cpus() if num_workers is None else num_workers)

    def progress(_: TaskReport, report: RunReport) -> None:
        on_progress(f"folded {min(n_worlds, report.finished * _WORLDS_PER_TASK)} of {n_worlds} worlds")

    names: list[str] = []
    settings = RunOptions(retries=1, progress=progress, ordered=True)
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
            names += result.unwrap()
    return names


def _tasks(records: Records, worlds: Sequence[tuple[WorldKey, bool]], folder: Path, code: str) -> Iterator[FoldTask]:
    for source, group in groupby(worlds, key=lambda world: world[0].source):
        origin = str(records.sources[source].folder)
        while batch := tuple(islice(group, _WORLDS_PER_TASK)):
            yield FoldTask(origin, tuple((key.world, held_out) for key, held_out in batch), str(folder), code)


def _gather(files: Sequence[Path], target: Path, configs: Sequence[int]) -> int:
    """Join the folded worlds, in order; return the number of snapshots."""
    parts: dict[str, list[Array]] = {name: [] for name in (*COLUMNS, "world", "config")}
    for index, (path, config) in enumerate(zip(files, configs, strict=True)):
        with reading(path, DatasetError, hint="remove the file; the same command then folds that world again"):
            folded = read_npz(path)
            rows = len(folded["label"])
            for name in COLUMNS:
                parts[name].append(folded[name])
        parts["world"].append(np.full(rows, index, np.int32))
        parts["config"].append(np.full(rows, config, np.int32))
    for name, arrays in parts.items():
        with atomic_file(target / f"{name}.npy") as file:
            np.save(file, np.concatenate(arrays))
    return sum(map(len, parts["label"]))

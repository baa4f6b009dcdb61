"""Build a dataset from records: select worlds, parse them in parallel, gather in order, commit with the manifest.

Each world becomes a shard, a file that appears whole or not at all; shards are gathered in the order of worlds, one at
a time. A build that was killed resumes from its shards with the same call, and the dataset comes out the same, byte
by byte, with any number of workers. The manifest holds a digest of everything the dataset depends on (records,
options, features, L1, code); a finished dataset with the same digest is not built again.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

import litaagent_std.policy
import litaagent_std.records
from apexrl.execution import ExecutionOptions, RunOptions, RunReport, Task, TaskReport
from apexrl.execution.executor import available_cpus
from apexrl.runs.atomic import ensure_folder, remove_leftovers, write_json
from apexrl.runs.digest import differences, digest_code, digest_config
from apexrl.runs.lock import exclusive
from apexrl.runs.reading import write_sealed
from litaagent_std.hrl_xf.data_pipeline.dataset import FORMAT, MANIFEST_NAME, SCHEMA_VERSION, OfflineData, read_manifest
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS, DatasetOptions
from litaagent_std.hrl_xf.data_pipeline.selection import SelectedWorld, select_worlds
from litaagent_std.hrl_xf.data_pipeline.shards import (
    ShardTask,
    gather,
    make_shards,
    shard_path,
    with_tables,
    write_shards,
)
from litaagent_std.hrl_xf.data_pipeline.split import SPLIT_NAME, WorldSplit, assign
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import WiderHorizonWarning, features_digest
from litaagent_std.records.reader import Records, Source, open_records
from litaagent_std.records.storage.remote import local_path

__all__ = ["DATASETS_FOLDER", "OnProgress", "build_dataset"]

DATASETS_FOLDER: Final = "datasets"
"""Default folder of datasets inside the data folder."""

_SHARDS: Final = "shards"
_BUILDING: Final = "building.json"
_WORLDS_PER_TASK: Final = 8
_FEW_WORLDS: Final = 8
"""So few worlds are parsed faster than workers start."""

_SHA256_BYTES: Final = 32

OnProgress = Callable[[str], None]
Provenance = dict[str, Any]
"""What a dataset is provenance from and with, in plain values, with the digest of it."""


def build_dataset(
    paths: str | Path | Sequence[str | Path],
    folder: str | Path | None = None,
    options: DatasetOptions | None = None,
    *,
    num_workers: int | None = None,
    execution: ExecutionOptions | None = None,
    on_progress: OnProgress | None = None,
) -> OfflineData:
    """Build a dataset from all records under some paths, or open it if it exists.

    Args:
        paths: A tournament's folder, one that holds several, an address such as ``s3://bucket/path``, or a sequence
            of such.
        folder: Where the dataset goes; default: a folder named after the digest under ``datasets`` of the first
            path.
        options: Which samples; default: `DatasetOptions()`.
        num_workers: Worlds to parse at once; default: as many as there are CPUs; 1 parses in this process.
        execution: Where worlds are parsed, such as on a Ray cluster, whose nodes need no access to the folders; it
            says how many at once, too. Default: in processes of this machine.
        on_progress: Called with each progress message; default: no messages.

    Raises:
        NoRecordsError: If there are no records, or none of this schema.
        RecordsDamagedError: If a file of the records cannot be read.
        NoSuchAgentError: If no factory matches the options.
        DatasetError: If a world cannot be used, or the folder holds a dataset of other options or other records.
    """
    roots = [local_path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    chosen_options = options or DatasetOptions()
    records = open_records(roots)
    provenance = provenance_of(records, roots, chosen_options)
    target = Path(folder) if folder is not None else roots[0] / DATASETS_FOLDER / provenance["digest"][:16]
    if _exists(target, provenance):
        return OfflineData.open(target)
    _refuse_another(target, provenance)
    worlds = select_worlds(records, chosen_options)
    _check_horizon(worlds, chosen_options)
    ensure_folder(target)
    with exclusive(target):
        if not _exists(target, provenance):
            where = execution or ExecutionOptions(workers=num_workers)
            _build(records, worlds, target, provenance, chosen_options, where, on_progress or _silent)
    return OfflineData.open(target)


def _silent(_: str) -> None:
    return


def _exists(target: Path, provenance: Provenance) -> bool:
    return (target / MANIFEST_NAME).exists() and read_manifest(target)["digest"] == provenance["digest"]


def _refuse_another(target: Path, provenance: Provenance) -> None:
    """Refuse to replace a dataset of other options or other records; one of older code or fewer worlds is updated."""
    if not (target / MANIFEST_NAME).exists():
        return
    manifest = read_manifest(target)
    found = differences(manifest["options"], provenance["options"])
    lost = set(manifest["sources"]) - set(provenance["sources"])
    found += [f"records: {', '.join(sorted(lost))} -> {', '.join(sorted(provenance['sources']))}"] if lost else []
    if found:
        raise DatasetError(
            f"{str(target)!r} holds another dataset: {'; '.join(found)}",
            "a dataset is not replaced by another one",
            "choose another folder, or remove this one",
        )


def _check_horizon(worlds: Sequence[SelectedWorld], options: DatasetOptions) -> None:
    league, horizon = worlds[0].horizon, options.horizon
    if horizon is None or horizon == league:
        return
    if horizon < league:
        raise DatasetError(
            f"horizon={horizon} is smaller than the league's {league}",
            "standing contracts reach as far as the league's horizon",
            f"give at least {league}, or leave it out",
        )
    warnings.warn(
        f"horizon={horizon} exceeds the league's {league}; leads {league + 1} to {horizon} are masked, "
        f"and buckets come from the league's horizon",
        WiderHorizonWarning,
        stacklevel=3,
    )


def _build(
    records: Records,
    worlds: Sequence[SelectedWorld],
    target: Path,
    provenance: Provenance,
    options: DatasetOptions,
    execution: ExecutionOptions,
    on_progress: OnProgress,
) -> None:
    shards = target / _SHARDS
    _prepare(target, shards, provenance)
    _parse(records, worlds, shards, options, execution, on_progress)
    on_progress(f"gathering {len(worlds)} worlds")
    split = _split(worlds, provenance, options)
    counts = gather(records, worlds, shards, target)
    split.write(target / SPLIT_NAME)
    league = worlds[0].horizon
    content = {
        "format": FORMAT,
        **provenance,
        "horizon": options.horizon if options.horizon is not None else league,
        "league_horizon": league,
        "n_rounds": worlds[0].n_rounds,
        "counts": {
            "worlds": len(worlds),
            "configs": len({world.config for world in worlds}),
            "factories": sum(len(world.seats) for world in worlds),
            "mornings": counts.days,
            "actions": counts.actions,
            "skipped_mornings": counts.skipped,
        },
        "worlds_by_split": {name: split.n_worlds(name) for name in SPLITS},
        "arrays": {half: written.shapes for half, written in counts.arrays.items()},
        "array_digests": {half: written.digests for half, written in counts.arrays.items()},
    }
    write_sealed(target / MANIFEST_NAME, content)
    shutil.rmtree(shards)
    (target / _BUILDING).unlink()
    on_progress(f"{counts.days} days, {counts.actions} actions")


def _prepare(target: Path, shards: Path, provenance: Provenance) -> None:
    """Prepare the folder: remove what belongs to another dataset, keep the shards of this one."""
    (target / MANIFEST_NAME).unlink(missing_ok=True)
    marker = target / _BUILDING
    expected = f'"{provenance["digest"]}"\n'
    if not marker.exists() or marker.read_text(encoding="utf-8") != expected:
        shutil.rmtree(shards, ignore_errors=True)
        write_json(marker, provenance["digest"])
    for folder in (target, ensure_folder(shards), target / "macro", target / "micro"):
        if folder.exists():
            remove_leftovers(folder)


def _parse(
    records: Records,
    worlds: Sequence[SelectedWorld],
    shards: Path,
    options: DatasetOptions,
    execution: ExecutionOptions,
    on_progress: OnProgress,
) -> None:
    missing = [(index, world) for index, world in enumerate(worlds) if not shard_path(shards, index).exists()]
    tasks = list(_tasks(records, missing, options))
    where = _where(execution, len(tasks), len(missing))
    done = len(worlds) - len(missing)

    def progress(_: TaskReport, report: RunReport) -> None:
        on_progress(f"parsed {min(len(worlds), done + report.finished * _WORLDS_PER_TASK)} of {len(worlds)} worlds")

    settings = RunOptions(retries=1, time_limit=where.time_limit, progress=progress, ordered=False)
    ready = map(with_tables, tasks) if where.executor == "ray" else iter(tasks)  # read one by one, as workers are free
    with (
        where.make_executor() as executor,
        closing(executor.run((Task(make_shards, (task,), label=_label(task)) for task in ready), settings)) as run,
    ):
        for result in run:
            if result.failure is not None:
                raise DatasetError(
                    f"{result.label} cannot be used: {result.failure.message}",
                    "every selected world must be readable",
                    "run lita records PATH --verify, then restore or collect those worlds again",
                )
            write_shards(shards, tasks[result.index], result.unwrap())


def _where(execution: ExecutionOptions, n_tasks: int, n_worlds: int) -> ExecutionOptions:
    """Return where worlds are parsed: few of them in this process, unless workers are asked for."""
    if execution.executor != "processes":
        return execution
    workers = min(n_tasks, available_cpus() if execution.workers is None else execution.workers)
    if workers <= 1 or (execution.workers is None and n_worlds <= _FEW_WORLDS):
        return replace(execution, executor="inline")
    return replace(execution, workers=workers)


def _label(task: ShardTask) -> str:
    numbers = [world.key.world for _, world in task.worlds]
    return f"worlds {numbers[0]} to {numbers[-1]} of {task.records}"


def _tasks(
    records: Records, missing: Sequence[tuple[int, SelectedWorld]], options: DatasetOptions
) -> Iterator[ShardTask]:
    for source, group in groupby(missing, key=lambda item: item[1].key.source):
        folder = str(records.sources[source].folder)
        while batch := tuple(islice(group, _WORLDS_PER_TASK)):
            yield ShardTask(folder, batch, options.labels, options.horizon, options.reasons, options.decisions)


def _split(worlds: Sequence[SelectedWorld], provenance: Provenance, options: DatasetOptions) -> WorldSplit:
    seeds = {world.config: world.config_seed for world in worlds}
    configs = assign([seeds[number] for number in range(len(seeds))], options.split_seed, options.ratios)
    paths = list(provenance["sources"])
    split_of = {number: split for split, numbers in configs.items() for number in numbers}
    by_path: dict[str, dict[str, list[int]]] = {split: defaultdict(list) for split in SPLITS}
    for world in worlds:
        by_path[split_of[world.config]][paths[world.key.source]].append(world.key.world)
    return WorldSplit(
        options.split_seed,
        options.ratios,
        dict(provenance["sources"]),
        configs,
        {split: tuple(seeds[number] for number in configs[split]) for split in SPLITS},
        {split: {path: tuple(numbers) for path, numbers in by_path[split].items()} for split in SPLITS},
    )


@cache
def code_digest() -> str:
    """Return the digest of all code that turns records into samples; comments, docstrings and paths do not count."""
    files = [__file__, litaagent_std.policy.__file__, litaagent_std.records.__file__]
    folders = [Path(file).parent for file in files if file is not None]
    return digest_code(path for folder in folders for path in folder.rglob("*.py"))


def source_digest(source: Source) -> str:
    """Return the digest of a folder of records: of its shards, and of single worlds not yet packed into one."""
    shards = [
        [shard.number, [entry.sha256 for entry in shard.files.values()], sorted(shard.failed)]
        for shard in source.manifest.shards
    ]
    segments = [[world, _last_bytes(path)] for world, path in sorted(source.segments.items())]
    return digest_config({"shards": shards, "segments": segments})


def _last_bytes(path: Path) -> str:
    """Return a segment's own checksum, its last bytes."""
    with path.open("rb") as file:
        file.seek(-_SHA256_BYTES, os.SEEK_END)
        return file.read().hex()


def relative_paths(records: Records, roots: Sequence[Path]) -> list[str]:
    """Return the folders of records relative to the root, or to the common parent of several roots."""
    resolved = [root.resolve() for root in roots]
    base = resolved[0] if len(resolved) == 1 else Path(os.path.commonpath(resolved))
    return [Path(os.path.relpath(source.folder, base)).as_posix() for source in records.sources]


def provenance_of(records: Records, roots: Sequence[Path], options: DatasetOptions) -> Provenance:
    """Return everything that determines a dataset, with its digest."""
    paths = relative_paths(records, roots)
    sources = {path: source_digest(source) for path, source in zip(paths, records.sources, strict=True)}
    provenance: Provenance = {
        "schema_version": SCHEMA_VERSION,
        "sources": sources,
        "options": options.plain(),
        "features_digest": features_digest(),
        "l1_digest": l1_digest(),
        "code_digest": code_digest(),
    }
    return {**provenance, "digest": digest_config(provenance)}

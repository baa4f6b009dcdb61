"""What a dataset is made from and with, as one digest: any change of it makes another dataset."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import litaagent_std.policy
import litaagent_std.records
from apexrl.runs.digest import digest_config
from litaagent_std.hrl_xf.data_pipeline.dataset import SCHEMA_VERSION
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.policy.features import features_digest
from litaagent_std.policy.l1.digest import l1_digest
from litaagent_std.records.reader import Records, Source

__all__ = ["Made", "code_digest", "made_from", "relative_paths"]

_SHA256_BYTES = 32

Made = dict[str, Any]


@cache
def code_digest() -> str:
    """Return the SHA-256 of all code that turns records into samples."""
    known = hashlib.sha256()
    folders = [Path(__file__).parent]
    for package in (litaagent_std.policy, litaagent_std.records):
        assert package.__file__ is not None
        folders.append(Path(package.__file__).parent)
    for folder in folders:
        for path in sorted(folder.glob("*.py")):
            known.update(f"{folder.name}/{path.name}\n".encode())
            known.update(path.read_bytes())
    return known.hexdigest()


def source_digest(source: Source) -> str:
    """Return the digest of a folder of records: of its complete files, and of worlds that still stand alone."""
    shards = [
        [shard.number, [entry.sha256 for entry in shard.files.values()], sorted(shard.failed)]
        for shard in source.manifest.shards
    ]
    segments = [[world, _last_bytes(path)] for world, path in sorted(source.segments.items())]
    return digest_config({"shards": shards, "segments": segments})


def _last_bytes(path: Path) -> str:
    """Return a segment's own checksum, which stands at its end."""
    with path.open("rb") as file:
        file.seek(-_SHA256_BYTES, os.SEEK_END)
        return file.read().hex()


def relative_paths(records: Records, roots: Sequence[Path]) -> list[str]:
    """Return the folders of records relative to the folder that was asked for, or to what several share."""
    resolved = [root.resolve() for root in roots]
    base = resolved[0] if len(resolved) == 1 else Path(os.path.commonpath(resolved))
    return [Path(os.path.relpath(source.folder, base)).as_posix() for source in records.sources]


def made_from(records: Records, roots: Sequence[Path], options: DatasetOptions) -> Made:
    """Return all that determines a dataset, in plain values, with the digest of it."""
    paths = relative_paths(records, roots)
    sources = {path: source_digest(source) for path, source in zip(paths, records.sources, strict=True)}
    made: Made = {
        "schema_version": SCHEMA_VERSION,
        "sources": sources,
        "options": options.plain(),
        "features_digest": features_digest(),
        "l1_digest": l1_digest(),
        "code_digest": code_digest(),
    }
    return {**made, "digest": digest_config(made)}

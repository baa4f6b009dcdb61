"""One finished world as one file, until enough of them are gathered in a shard.

A segment is written whole or not at all, and carries a checksum. It holds a world's tables, or the reason why the
world failed for good::

    LITASEG1 | length of the header, 8 bytes little-endian | header, JSON | one Arrow stream per table | SHA-256

The header names the tables if there are optional ones among them.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from apexrl.runs.reading import read_bytes, reading
from litaagent_std.records.schema import ALL_TABLES, SCHEMA_VERSION, TABLES, arrow_schema, conform
from litaagent_std.records.storage.manifest import RecordsDamagedError

__all__ = ["RecordsDamagedError", "Segment", "pack_failure", "pack_world", "read_segment"]

_MAGIC = b"LITASEG1"
_LENGTH = struct.Struct("<Q")
_DIGEST = hashlib.sha256().digest_size
_WANTED = (
    "a segment is written whole and carries the SHA-256 of its content",
    "remove the file; the same command then plays that world again",
)

Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Segment:
    """A world's outcome.

    Attributes:
        world: Number of the world.
        tables: Its tables by name; None when it failed.
        failure: Why it failed for good; None when it did not.
    """

    world: int
    tables: Tables | None
    failure: str | None


def pack_world(world: int, tables: Tables) -> bytes:
    """Pack a finished world: its tables, and those of its reasons if there are any."""
    missing = TABLES.keys() - tables.keys()
    if missing:
        raise ValueError(f"world {world} lacks the tables {sorted(missing)}; a record has all of {list(TABLES)}")
    # fast, and the tables are small: a segment lives until its shard is complete
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    parts, names = [], [name for name in ALL_TABLES if name in tables]
    for name in names:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, arrow_schema(name), options=options) as writer:
            writer.write_table(tables[name])
        parts.append(sink.getvalue().to_pybytes())
    header = {"world": world, "lengths": [len(part) for part in parts]}
    return _pack(header | ({"tables": names} if len(names) > len(TABLES) else {}), b"".join(parts))


def pack_failure(world: int, reason: str) -> bytes:
    """Pack the reason why a world failed for good."""
    return _pack({"world": world, "failure": reason}, b"")


def read_segment(path: Path) -> Segment:
    """Read a segment.

    Raises:
        FileNotFoundError: If it is not there.
        RecordsDamagedError: If the file is not exactly what was written, or of another version.
    """
    with reading(path, RecordsDamagedError, *_WANTED):
        segment = _parse(path, read_bytes(path))
        if path.stem.isdecimal() and int(path.stem) != segment.world:
            raise ValueError(f"it holds world {segment.world}")
        return segment


def _parse(path: Path, data: bytes) -> Segment:
    start = len(_MAGIC) + _LENGTH.size
    if len(data) < start + _DIGEST or not data.startswith(_MAGIC):
        raise ValueError("it does not begin like a segment")
    if hashlib.sha256(memoryview(data)[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise ValueError("its content does not match its checksum")
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    header: dict[str, Any] = json.loads(data[start : start + length])
    payload = memoryview(data)[start + length : -_DIGEST]
    if header["schema_version"] != SCHEMA_VERSION:
        raise RecordsDamagedError(
            f"segment {str(path)!r} has schema version {header['schema_version']}",
            f"this release reads version {SCHEMA_VERSION}",
            "read it with the release that wrote it",
        )
    if type(header["world"]) is not int:
        raise ValueError(f"it holds world {header['world']!r}")
    if "failure" in header:
        return Segment(header["world"], None, str(header["failure"]))
    tables, offset = {}, 0
    if sum(header["lengths"]) != len(payload):
        raise ValueError(f"its tables have {header['lengths']} bytes, and there are {len(payload)}")
    for name, size in zip(header.get("tables", TABLES), header["lengths"], strict=True):
        if name in ALL_TABLES:
            with pa.ipc.open_stream(payload[offset : offset + size]) as stream:
                tables[name] = conform(stream.read_all(), name)
                tables[name].validate(full=True)
        offset += size
    if not tables.keys() >= TABLES.keys():
        raise ValueError(f"it lacks the tables {sorted(TABLES.keys() - tables.keys())}")
    return Segment(header["world"], tables, None)


def _pack(header: dict[str, Any], payload: bytes) -> bytes:
    text = json.dumps({"schema_version": SCHEMA_VERSION, **header}).encode()
    body = b"".join((_MAGIC, _LENGTH.pack(len(text)), text, payload))
    return body + hashlib.sha256(body).digest()

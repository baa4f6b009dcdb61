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

from apexrl.runs.errors import UserFacingError
from litaagent_std.records.schema import ALL_TABLES, SCHEMA_VERSION, TABLES, arrow_schema, conform

__all__ = ["RecordsDamagedError", "Segment", "pack_failure", "pack_world", "read_segment"]

_MAGIC = b"LITASEG1"
_LENGTH = struct.Struct("<Q")
_DIGEST = hashlib.sha256().digest_size

Tables = dict[str, pa.Table]


class RecordsDamagedError(UserFacingError):
    """A file of the records is not what was written."""


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
        RecordsDamagedError: If the file is not exactly what was written, or of another version.
    """
    data = path.read_bytes()
    start = len(_MAGIC) + _LENGTH.size
    if len(data) < start + _DIGEST or not data.startswith(_MAGIC):
        raise _damaged(path, "it does not begin like a segment")
    if hashlib.sha256(memoryview(data)[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise _damaged(path, "its content does not match its checksum")
    (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
    header: dict[str, Any] = json.loads(data[start : start + length])
    payload = memoryview(data)[start + length : -_DIGEST]
    if header["schema_version"] != SCHEMA_VERSION:
        raise RecordsDamagedError(
            f"segment {str(path)!r} has schema version {header['schema_version']}",
            f"this release reads version {SCHEMA_VERSION}",
            "read it with the release that wrote it",
        )
    if "failure" in header:
        return Segment(header["world"], None, header["failure"])
    tables, offset = {}, 0
    for name, size in zip(header.get("tables", TABLES), header["lengths"], strict=True):
        if name in ALL_TABLES:
            with pa.ipc.open_stream(payload[offset : offset + size]) as stream:
                tables[name] = conform(stream.read_all(), name)
        offset += size
    return Segment(header["world"], tables, None)


def _pack(header: dict[str, Any], payload: bytes) -> bytes:
    text = json.dumps({"schema_version": SCHEMA_VERSION, **header}).encode()
    body = b"".join((_MAGIC, _LENGTH.pack(len(text)), text, payload))
    return body + hashlib.sha256(body).digest()


def _damaged(path: Path, why: str) -> RecordsDamagedError:
    return RecordsDamagedError(
        f"segment {str(path)!r} is damaged: {why}",
        "a segment is written whole and carries the SHA-256 of its content",
        "remove the file; the same command then plays that world again",
    )

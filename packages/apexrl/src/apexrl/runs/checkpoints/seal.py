"""The checksum inside a file of tensors, such as a checkpoint or weights.

``torch.save`` writes a zip archive, and a zip archive may end with a comment. The seal is that comment::

    apexrl-seal sha256=<64 lower-case hexadecimal digits>

The digest covers every byte before it, the words ``apexrl-seal sha256=`` included. So the file stays one
that ``torch.load`` opens directly, one rename makes content and checksum visible together, and a change of
any bit anywhere is detected.
"""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

from apexrl.runs.errors import CheckpointDamagedError

LABEL = b"apexrl-seal sha256="
_DIGEST_LENGTH = 64
_COMMENT_LENGTH = struct.pack("<H", len(LABEL) + _DIGEST_LENGTH)
_END_RECORD = b"PK\x05\x06"  # opens a zip's last record, which is 22 bytes long when there is no comment


def seal(archive: bytes) -> bytes:
    """Append the seal to a zip archive that has no comment yet.

    Args:
        archive: What ``torch.save`` wrote.

    Returns:
        The archive with its seal, still a valid zip archive.
    """
    if archive[-22:-18] != _END_RECORD or archive[-2:] != b"\x00\x00":
        raise ValueError("only a zip archive without a comment can be sealed")
    body = archive[:-2] + _COMMENT_LENGTH + LABEL
    return body + hashlib.sha256(body).hexdigest().encode()


def is_sealed(path: Path) -> bool:
    """Return whether a file ends like a checkpoint; its content is not verified."""
    length = len(LABEL) + _DIGEST_LENGTH
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < length:
                return False
            file.seek(-length, os.SEEK_END)
            return file.read(len(LABEL)) == LABEL
    except OSError:
        return False


def verify(data: bytes, source: str) -> None:
    """Check the seal of a file's content.

    Args:
        data: The whole file.
        source: The name to put into the error.

    Raises:
        CheckpointDamagedError: If the seal is missing or does not match.
    """
    body, digest = data[:-_DIGEST_LENGTH], data[-_DIGEST_LENGTH:]
    hint = "use another checkpoint, or train again"
    if not body.endswith(_COMMENT_LENGTH + LABEL):
        raise CheckpointDamagedError(
            f"checkpoint {source!r} ({len(data)} bytes) is incomplete, or is not a checkpoint of this program",
            "a checkpoint ends with the SHA-256 digest of its content",
            hint,
        )
    actual = hashlib.sha256(body).hexdigest().encode()
    if actual != digest:
        raise CheckpointDamagedError(
            f"checkpoint {source!r} ({len(data)} bytes) is damaged: its content does not match its digest",
            "a checkpoint ends with the SHA-256 digest of its content",
            hint,
        )

import io
import struct
import zipfile

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apexrl.runs.checkpoints.seal import seal, verify
from apexrl.runs.errors import CheckpointDamagedError


def test_a_sealed_archive_verifies_and_is_still_an_archive(sealed_bytes):
    verify(sealed_bytes, "x")

    with zipfile.ZipFile(io.BytesIO(sealed_bytes)) as archive:
        assert archive.testzip() is None
        assert archive.comment.startswith(b"apexrl-seal sha256=")
    assert torch.load(io.BytesIO(sealed_bytes), weights_only=True)["step"] == 3


def test_every_single_flipped_bit_is_found(sealed_bytes):
    data = bytearray(sealed_bytes)
    missed = []
    for position in range(len(data)):
        for bit in range(8):
            data[position] ^= 1 << bit
            try:
                verify(bytes(data), "x")
                missed.append((position, bit))
            except CheckpointDamagedError:
                pass
            data[position] ^= 1 << bit

    assert missed == []
    verify(bytes(data), "x")


def test_every_truncation_is_found(sealed_bytes):
    for length in range(len(sealed_bytes)):
        with pytest.raises(CheckpointDamagedError):
            verify(sealed_bytes[:length], "x")


@given(data=st.data())
def test_overwritten_removed_doubled_and_appended_regions_are_found(sealed_bytes, data):
    start = data.draw(st.integers(0, len(sealed_bytes) - 1))
    end = data.draw(st.integers(start + 1, len(sealed_bytes)))
    patch = data.draw(st.sampled_from([b"", bytes(end - start), 2 * sealed_bytes[start:end], sealed_bytes]))
    damaged = sealed_bytes[:start] + patch + sealed_bytes[end:]
    if damaged != sealed_bytes:
        with pytest.raises(CheckpointDamagedError):
            verify(damaged, "x")


@given(garbage=st.binary(max_size=300))
def test_bytes_that_were_never_sealed_are_refused_by_name(garbage):
    with pytest.raises(CheckpointDamagedError, match="some/file"):
        verify(garbage, "some/file")


def test_only_an_archive_without_a_comment_is_sealed(sealed_bytes):
    for unfit in (b"", b"no archive at all, but longer than an end record", sealed_bytes, struct.pack("<22x")):
        with pytest.raises(ValueError, match="zip archive"):
            seal(unfit)

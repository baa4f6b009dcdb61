"""Files that nobody vouches for: one error, no hang, no memory beyond the limit."""

import contextlib
import io
import os
import zipfile

import numpy as np
import pytest
import torch

from apexrl.configuration import read_yaml
from apexrl.runs.checkpoints.tensors import read_tensors, save_tensors
from apexrl.runs.errors import CheckpointDamagedError, ConfigurationError, ReadFailedError, safe_text
from apexrl.runs.metrics.jsonl import read_jsonl
from apexrl.runs.reading import (
    contained,
    parse_yaml,
    read_bytes,
    read_json,
    read_npz,
    read_sealed,
    reading,
    verify_file,
    write_sealed,
)


class _NamelessError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("error", [ValueError("\ud800"), _NamelessError(), KeyError("x" * 10_000)])
def test_the_text_of_any_exception_can_be_written(error):
    assert 0 < len(safe_text(error).encode()) <= 2000


@pytest.mark.parametrize("read", [read_bytes, read_json, read_sealed, read_npz, read_tensors, read_jsonl, read_yaml])
def test_pipes_devices_and_folders_are_refused_at_once(tmp_path, read):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, *(tmp_path.__class__(name) for name in ("/dev/zero", "/dev/tty"))):
        with pytest.raises((ReadFailedError, ConfigurationError), match=r"regular file|cannot be read|is a folder"):
            read(path)


def test_a_file_beyond_its_limit_is_not_read(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(ReadFailedError, match="has 5 bytes"):
        read_bytes(tmp_path / "file", limit=4)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', "[" * 100_000, '{"a": ', '"\ud800'])
def test_json_that_would_be_read_as_something_else_is_refused(tmp_path, text):
    (tmp_path / "file").write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ReadFailedError, match="file' cannot be used"):
        read_json(tmp_path / "file")


def test_errors_of_a_package_speak_for_themselves_and_those_of_python_name_their_class():
    class OldWeightsError(ValueError):
        pass

    with pytest.raises(ReadFailedError, match="'w' cannot be used: too old"), reading("w"):
        raise OldWeightsError("too old")
    with pytest.raises(ReadFailedError, match="'w' cannot be used: KeyError: 'l2'"), reading("w"):
        raise KeyError("l2")


def test_sealed_json_tells_every_change_and_reads_files_without_a_digest(tmp_path):
    path = tmp_path / "file.json"
    content = {"name": "a", "values": [1, 2.5, None], "text": "é"}
    write_sealed(path, content)
    assert read_sealed(path) == content
    original = path.read_bytes()
    for position in range(len(original)):
        for bit in range(8):
            changed = bytearray(original)
            changed[position] ^= 1 << bit
            path.write_bytes(changed)
            with contextlib.suppress(ReadFailedError):
                assert read_sealed(path) == content, (position, bit)
    path.write_bytes(original.replace(b'"sha256": "', b'"sh`256": "v'))  # damaged in its name and in its value
    with pytest.raises(ReadFailedError):
        read_sealed(path)
    path.write_text('{"name": "of an older release"}')
    assert read_sealed(path) == {"name": "of an older release"}


def test_yaml_aliases_are_refused():
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    for text in (bomb, "[" * 10_000, "a: !!python/object/apply:os.getcwd []"):
        with pytest.raises(ReadFailedError):
            parse_yaml(text)
    assert parse_yaml("a: [1, {b: null}]") == {"a": [1, {"b": None}]}


def test_names_and_links_that_lead_out_of_a_folder_are_refused(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside").write_text("secret")
    (inside / "file").write_text("x")
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "near").symlink_to("file")
    assert contained(inside, "file") == contained(inside, "near") == inside.resolve() / "file"
    for name in ("../outside", str(tmp_path / "outside"), "link", ".", "", "a\0b"):
        with pytest.raises(ReadFailedError):
            contained(inside, name)


def test_a_file_is_compared_with_its_digest_once_for_each_of_its_states(tmp_path, monkeypatch):
    import hashlib

    path = tmp_path / "file"
    path.write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()
    verify_file(path, digest, 7)
    with monkeypatch.context() as patch:
        patch.setattr(hashlib, "file_digest", None)  # a second reading would fail
        verify_file(path, digest, 7)
    path.write_bytes(b"changed")
    os.utime(path, ns=(1, 1))
    with pytest.raises(ReadFailedError, match="not the file that was written"):
        verify_file(path, digest, 7)


def test_arrays_are_read_by_their_headers_first(tmp_path):
    path = tmp_path / "arrays.npz"
    arrays = {"a": np.arange(6.0).reshape(2, 3), "text": np.array("meta"), "empty": np.zeros((0, 4), np.float32)}
    np.savez_compressed(path, **arrays)
    assert {name: value.tolist() for name, value in read_npz(path).items()} == {
        name: value.tolist() for name, value in arrays.items()
    }
    np.savez_compressed(path, zeros=np.zeros(10_000_000))
    assert path.stat().st_size < 200_000
    with pytest.raises(ReadFailedError, match="take 80"):
        read_npz(path, limit=1_000_000)


def test_an_array_that_claims_more_than_it_has_takes_no_memory(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", header.getvalue() + bytes(64))
    with pytest.raises(ReadFailedError, match="does not take 64 bytes"):
        read_npz(tmp_path / "a.npz")


def test_a_flipped_bit_in_weights_is_found_with_and_without_a_seal(tmp_path):
    content = {"meta": {"kind": "l2"}, "model": {"weight": torch.arange(6.0)}}
    save_tensors(tmp_path / "sealed.pt", content)
    torch.save(content, tmp_path / "plain.pt")
    for path in (tmp_path / "sealed.pt", tmp_path / "plain.pt"):
        assert torch.equal(read_tensors(path)["model"]["weight"], content["model"]["weight"])
        original = path.read_bytes()
        for position in range(0, len(original), 7):
            changed = bytearray(original)
            changed[position] ^= 1
            path.write_bytes(changed)
            try:
                value = read_tensors(path)
            except CheckpointDamagedError:
                continue
            assert value["meta"] == {"kind": "l2"}
            assert torch.equal(value["model"]["weight"], content["model"]["weight"]), position


def test_pickled_code_in_weights_is_refused(tmp_path):
    torch.save({"model": os.system}, tmp_path / "a.pt")
    with pytest.raises(CheckpointDamagedError):
        read_tensors(tmp_path / "a.pt")

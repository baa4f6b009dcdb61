"""The short form of ``make fuzz``: a few mutations of every kind of file."""

import dataclasses
import random

import pytest
from benchmarks.fuzz import FuzzConfig, Kind, fuzz, main, make_kinds, mutate


@pytest.mark.timeout(600)
def test_no_reader_takes_damage_for_data_crashes_or_hangs(capsys):
    assert main(FuzzConfig(mutations=4, seconds=300.0, seed=4)) == 0, capsys.readouterr().out


@pytest.fixture
def kind(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(200)))
    return Kind(path, path.read_bytes)


def test_defects_are_found(kind):
    config = FuzzConfig(mutations=30, hang=0.2)
    counts, defects = fuzz("trusting", kind, config, 60.0)
    assert counts["changed"] == len(defects) >= 29, "a reader that accepts everything"

    def crash():
        return kind.path.read_bytes()[150] == 150 or [][0]

    counts, _ = fuzz("crashing", dataclasses.replace(kind, read=crash), config, 60.0)
    assert counts["crashed"] > 3

    def hang():
        while kind.path.read_bytes()[0] != 0:
            pass

    counts, _ = fuzz("hanging", dataclasses.replace(kind, read=hang), FuzzConfig(mutations=300, hang=0.01), 60.0)
    assert counts["hung"] + counts["crashed"] > 0


def test_mutations_follow_from_the_seed_and_every_kind_is_there(tmp_path):
    assert mutate(b"abc" * 50, random.Random(1)) == mutate(b"abc" * 50, random.Random(1)) != b"abc" * 50
    names = make_kinds(tmp_path).keys()
    for word in ("manifest", "segment", "array", "split", "samples", "weights", "checkpoint", "run", "unit", "config"):
        assert any(word in name for name in names)

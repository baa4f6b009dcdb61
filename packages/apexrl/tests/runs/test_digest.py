import dataclasses
import enum
import math
from pathlib import Path

import numpy as np
import pydantic
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apexrl.runs.digest import (
    canonical_json,
    differences,
    digest_bytes,
    digest_config,
    digest_file,
    to_plain,
    to_yaml,
)
from apexrl.runs.errors import NotPlainError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=12,
)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass(frozen=True)
class Optimiser:
    lr: float = 0.001
    betas: tuple[float, float] = (0.9, 0.999)


class Model(pydantic.BaseModel):
    width: int = 64


@dataclasses.dataclass(frozen=True)
class Config:
    optimiser: Optimiser
    model: Model
    colour: Colour = Colour.RED
    level: Level = Level.HIGH
    path: Path = Path("a/b")
    names: frozenset[str] = frozenset({"b", "a"})
    limit: float = math.inf
    nothing: None = None


def test_a_configuration_becomes_plain_values():
    assert to_plain(Config(Optimiser(), Model())) == {
        "optimiser": {"lr": 0.001, "betas": [0.9, 0.999]},
        "model": {"width": 64},
        "colour": "red",
        "level": 3,
        "path": "a/b",
        "names": ["a", "b"],
        "limit": "Infinity",
        "nothing": None,
    }
    numbers = to_plain([np.float32(0.5), np.int64(7), np.bool_(True), np.float64(0.1)])
    assert numbers == [0.5, 7, True, 0.1]
    assert isinstance(numbers, list)
    assert [type(number) for number in numbers] == [float, int, bool, float]


def test_infinity_is_read_back_by_pydantic():
    assert pydantic.TypeAdapter(float).validate_python(to_plain(-math.inf)) == -math.inf


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [0, math.nan]}, "config.a[1]"),
        ({"a": {1: 2}}, "config.a has the key 1"),
        ({"a": object()}, "config.a is a builtins.object"),
        ({"a": Optimiser}, "config.a is a builtins.type"),
        ({"a": np.zeros(2)}, "config.a is a numpy.ndarray"),
    ],
)
def test_what_is_not_plain_is_refused_by_its_place(value, where):
    with pytest.raises(NotPlainError) as caught:
        to_plain(value)
    assert where in str(caught.value)


@settings(max_examples=50)
@given(value=PLAIN)
@example(value={"\x85": "\u2028 \x85\ufeff\x00", "=": ["yes", "1e3", "<<", "~", "0x1f", "2020-01-01", "利塔"]})
def test_yaml_gives_back_what_canonical_json_describes(value):
    plain = to_plain(value)

    assert canonical_json(yaml.safe_load(to_yaml(value))) == canonical_json(value)
    assert to_plain(plain) == plain


def test_the_digest_ignores_the_order_of_keys_and_sees_everything_else():
    assert digest_config({"a": 1, "b": [1, 2]}) == digest_config({"b": (1, 2), "a": 1})
    different = [{"a": 1}, {"a": 1.0}, {"a": "1"}, {"a": True}, {"a": None}, {"a": [1]}, {"b": 1}, {}]
    assert len({digest_config(value) for value in different}) == len(different)
    # The digest of this text is a constant of SHA-256, so it must not change between releases.
    assert canonical_json({"b": 0.1, "a": "é"}) == '{"a":"\\u00e9","b":0.1}'


def test_a_file_has_the_digest_of_its_bytes(tmp_path):
    (tmp_path / "x").write_bytes(b"abc" * 100_000)

    assert digest_file(tmp_path / "x") == digest_bytes(b"abc" * 100_000)
    assert digest_bytes(b"").startswith("e3b0c44298fc1c14")


def test_differences_name_the_fields_and_both_values():
    old = {"optimiser": {"lr": 0.1, "eps": 1}, "steps": 10, "gone": 1, "same": [1]}
    new = {"optimiser": {"lr": 0.2, "eps": 1.0}, "steps": 20, "new": {}, "same": [1]}

    assert differences(old, new) == [
        "gone: 1 -> (absent)",
        "new: (absent) -> {}",
        "optimiser.eps: 1 -> 1.0",
        "optimiser.lr: 0.1 -> 0.2",
        "steps: 10 -> 20",
    ]
    assert differences(old, new, free=["optimiser", "steps", "gone", "new"]) == []
    assert differences({"optimiser_2": 1}, {"optimiser_2": 2}, free=["optimiser"]) == ["optimiser_2: 1 -> 2"]


@given(old=PLAIN, new=PLAIN)
def test_there_are_differences_exactly_if_the_digests_differ(old, new):
    assert (differences({"x": old}, {"x": new}) == []) == (digest_config({"x": old}) == digest_config({"x": new}))

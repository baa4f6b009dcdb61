"""Small made-up worlds: enough rows of the right types to keep, gather and read."""

import random

import pyarrow as pa
import pytest

from litaagent_std.records.assembly import from_rows
from litaagent_std.records.schema import TABLES
from litaagent_std.records.storage.segment import pack_world


def _value(column, draw):
    if column.nullable and draw.random() < 0.3:
        return None
    if pa.types.is_integer(column.type):
        return draw.randrange(100)
    if pa.types.is_floating(column.type):
        return draw.random()
    if pa.types.is_boolean(column.type):
        return draw.random() < 0.5
    if pa.types.is_list(column.type):
        return [draw.random() for _ in range(3)]
    return draw.choice(["accepted", "ended", "a.b.C"])


@pytest.fixture(scope="session")
def made_up():
    """Makes the tables of a world from its number."""

    def make(world):
        draw = random.Random(world)
        sizes = {"worlds": 1, "errors": draw.randrange(2)}
        return {
            name: from_rows(
                name,
                world,
                [
                    [_value(column, draw) for column in spec.columns]
                    for _ in range(sizes.get(name, draw.randrange(1, 9)))
                ],
            )
            for name, spec in TABLES.items()
        }

    return make


@pytest.fixture(scope="session")
def packed(made_up):
    """Makes the packed record of a world from its number."""
    return lambda world: pack_world(world, made_up(world))


@pytest.fixture(scope="session")
def tree():
    """The content of every file under a folder, by relative path."""
    return lambda folder: {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }

"""From plain columns to Arrow tables of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from litaagent_std.policy.arrays import Ints32
from litaagent_std.records.schema import ALL_TABLES, arrow_schema

__all__ = ["as_text", "from_columns", "from_rows"]


def from_columns(
    name: str, world: int, columns: Mapping[str, Any], missing: Mapping[str, Any] | None = None
) -> pa.Table:
    """Make a table from whole columns.

    Args:
        name: The table.
        world: The world that all rows belong to.
        columns: Values by column: Arrow arrays of the right type, numpy arrays or sequences, in any order.
        missing: For columns of numpy arrays, masks that are True where the value is missing.

    Raises:
        ValueError: If the columns are not those of the schema.
    """
    expected = [column.name for column in ALL_TABLES[name].columns]
    if set(columns) != set(expected):
        raise ValueError(f"table {name!r} has the columns {expected}, got {list(columns)}")
    schema = arrow_schema(name)
    masks = missing or {}
    n_rows = len(columns[expected[0]])
    arrays = [pa.array(np.full(n_rows, world, np.int32))]
    arrays += [_array(columns[key], schema.field(key).type, masks.get(key)) for key in expected]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Any, kind: pa.DataType, mask: Any) -> pa.Array:  # noqa: ANN401 - arrays or sequences
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, np.ndarray):
        values = values.astype(kind.to_pandas_dtype(), copy=False)
    return pa.array(values, kind, mask=mask)


def from_rows(name: str, world: int, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Make a table from rows that hold the columns after ``world`` in the schema's order."""
    expected = [column.name for column in ALL_TABLES[name].columns]
    columns = zip(*rows, strict=True) if rows else ((),) * len(expected)
    return from_columns(name, world, dict(zip(expected, map(list, columns), strict=True)))


def as_text(codes: Ints32, names: Sequence[str]) -> pa.Array:
    """Codes as the names that they stand for."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names)).cast(pa.string())

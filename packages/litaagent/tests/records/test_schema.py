"""The schema: documented column by column, and held to."""

from pathlib import Path

import pytest

from litaagent_std.records.assembly import from_columns, from_rows
from litaagent_std.records.schema import SCHEMA_VERSION, TABLES, arrow_schema, as_markdown

PAGE = Path(__file__).parents[4] / "docs" / "league" / "records.md"


def test_the_documentation_has_every_column():
    assert as_markdown() in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_marked_and_keyed_by_world(name):
    schema = arrow_schema(name)
    assert schema.names[0] == "world"
    assert len(set(schema.names)) == len(schema.names)
    assert schema.metadata == {
        b"litaagent.table": name.encode(),
        b"litaagent.schema_version": str(SCHEMA_VERSION).encode(),
    }


def test_columns_that_are_not_the_schemas_are_refused():
    with pytest.raises(ValueError, match="has the columns"):
        from_columns("errors", 0, {"day": [0]})


def test_a_table_without_rows_has_its_columns():
    table = from_rows("turns", 0, [])
    assert table.num_rows == 0
    assert table.schema.equals(arrow_schema("turns"), check_metadata=True)

"""Nothing of the future, and no deal of the same day, is in any input: scrambled, they change nothing."""

import numpy as np
import pyarrow as pa
import pytest

from litaagent_std.records.columns import ints
from litaagent_std.records.world import WorldRecord

DAY = 2
MACRO_INPUTS = ("x_static", "x_temporal", "x_role", "mask", "lines", "price")
MICRO_INPUTS = ("history", "history_mask", "ranges", "x_thread", "x_partner", "received", "issue_low", "issue_high")
BASELINE = ("baseline_op", "baseline")


@pytest.fixture(scope="module")
def samples(record, whole):
    return whole(record)


def changed(record, table, change):
    """The record with some columns of a table changed; None deletes the rows that ``change`` does not keep."""
    return WorldRecord({**record.tables, table: change(record.tables[table])})


def with_columns(table, rows, **values):
    for name, new in values.items():
        column = table[name].to_pylist()
        for row in rows.tolist():
            if column[row] is not None:
                column[row] = new(column[row])
        column_index = table.schema.get_field_index(name)
        table = table.set_column(
            column_index, table.schema.field(name), pa.array(column, table.schema.field(name).type)
        )
    return table


def days_of(samples):
    return samples.macro["day"], samples.macro["day"][samples.micro["day_row"]]


def assert_inputs_equal(old, new, *, macro, micro, baseline=True):
    for name in MACRO_INPUTS:
        assert np.array_equal(old.macro[name][macro], new.macro[name][macro]), name
    for name in MICRO_INPUTS + (BASELINE if baseline else ()):
        assert np.array_equal(old.micro[name][micro], new.micro[name][micro]), name


def test_later_days_change_nothing(record, whole, samples):
    """All that happened after a day: states, reports, markets, offers, contracts and scores."""
    draw = np.random.default_rng(0)
    tables = dict(record.tables)
    for name, columns in {
        "days": ("balance", "stock_in", "exogenous_in", "exogenous_out", "needed_sales", "needed_supplies"),
        "reports": ("cash", "assets", "breach_probability"),
        "markets": ("trading_price", "exogenous_quantity"),
        "turns": ("quantity", "unit_price"),
        "contracts": ("quantity", "unit_price"),
    }.items():
        later = np.flatnonzero(ints(tables[name]["day"]) > (DAY - 1 if name == "reports" else DAY))
        tables[name] = with_columns(
            tables[name], later, **dict.fromkeys(columns, lambda x: type(x)(x + draw.integers(1, 9)))
        )
    everybody = np.arange(tables["factories"].num_rows)
    tables["factories"] = with_columns(tables["factories"], everybody, score=lambda x: x + 1.0)
    new = whole(WorldRecord(tables))
    days, actions = days_of(samples)
    assert_inputs_equal(samples, new, macro=days <= DAY, micro=actions <= DAY)
    assert not np.array_equal(samples.macro["x_static"], new.macro["x_static"])
    assert not np.array_equal(samples.micro["history"], new.micro["history"])


def test_deals_of_the_same_day_change_nothing(record, whole, samples):
    """Without the day's contracts, and with other answers to the last offers, every input of the day is the same."""
    keep = ints(record.tables["contracts"]["day"]) != DAY
    assert 0 < keep.sum() < len(keep)
    new = whole(changed(record, "contracts", lambda t: t.filter(pa.array(keep))))
    days, actions = days_of(samples)
    assert_inputs_equal(samples, new, macro=days <= DAY, micro=actions <= DAY)
    after = days == DAY + 1
    assert not np.array_equal(samples.macro["x_temporal"][after], new.macro["x_temporal"][after])


@pytest.mark.parametrize("round_", [0, 3, 10])
def test_later_turns_of_the_same_negotiation_change_nothing(record, whole, samples, round_):
    """Offers of later rounds, and the own offer of the very action, are not in its input."""
    turns = record.tables["turns"]
    later = np.flatnonzero(ints(turns["round"]) >= round_)
    scramble = {"quantity": lambda q: 1 if q > 1 else 2, "unit_price": lambda p: p + 1}
    new = whole(changed(record, "turns", lambda t: with_columns(t, later, **scramble)))
    opens = samples.micro["x_thread"][:, 6] > 0
    first = samples.micro["round"] < round_
    # In the round itself the opener acts before anything of that round, the other side after the opener's offer.
    known = first | (opens & (samples.micro["round"] == round_))
    assert known.any()
    everything = np.ones(len(samples.macro["day"]), bool)
    assert_inputs_equal(samples, new, macro=everything, micro=known)
    if round_ < 10:
        assert not np.array_equal(samples.micro["history"], new.micro["history"])


def test_the_action_is_not_the_last_row_of_its_history(samples):
    """Copying the last row would be right by chance only."""
    lines = samples.macro["lines"][samples.micro["day_row"]]
    rows = np.flatnonzero((samples.micro["op"] == 1) & samples.micro["history_mask"].any(axis=1))
    last = samples.micro["history_mask"].sum(axis=1)[rows] - 1
    history = samples.micro["history"][rows, last]
    assert not history[:, 0].any()  # the last offer before an own action is the partner's
    same = np.isclose(history[:, 2] * lines[rows], samples.micro["offer"][rows, 0]).mean()
    assert same < 0.5

"""Reasons in records: what the agent's own log says, in optional tables that other records lack."""

import numpy as np
import pyarrow as pa
import pytest

from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import REASONS, world_samples
from litaagent_std.records.reader import WorldKey, open_records
from litaagent_std.records.reasons import turn_reasons
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.schema import ALL_TABLES, REASON_TABLES, TABLES, arrow_schema, conform
from litaagent_std.records.storage.segment import pack_world
from litaagent_std.records.storage.store import RecordStore
from litaagent_std.records.threads import decisions
from litaagent_std.records.world import WorldRecord
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import official_setup

OURS = "litaagent_std.agents.hrl.LitaAgentHRL"


@pytest.fixture(scope="module")
def setup():
    return official_setup(5, [OURS], n_days=7, n_levels=2)


@pytest.fixture(scope="module")
def logs(setup):
    """What our agents log by themselves, by seat."""
    world = FastWorld(setup, defaults="native")
    ours = [seat for seat in world.seats if hasattr(seat.agent, "brain")]
    for seat in ours:
        seat.agent.brain.keep_log = True
    world.run()
    return {seat.index: (tuple(seat.agent.brain.log), seat.agent.brain.interventions) for seat in ours}


def recorded(setup, *, reasons, world=0, **options):
    recorder = Recorder(setup, WorldFacts(world, 0, 0, 0, 5, (None,) * setup.n_seats), reasons=reasons)
    run_world(setup, observers=[recorder], **options)
    return recorder.tables()


@pytest.fixture(scope="module")
def tables(setup):
    return recorded(setup, reasons=True)


@pytest.fixture
def read(tmp_path):
    """Store worlds and read the first."""

    def read(*worlds, shard_size, reasons=True):
        store = RecordStore(tmp_path / "records", {}, len(worlds), shard_size=shard_size, reasons=reasons)
        for number, tables in enumerate(worlds):
            store.add(number, pack_world(number, tables))
        return open_records(tmp_path / "records")

    return read


@pytest.mark.parametrize("shard_size", [1, 5])  # gathered in a shard, or still a segment
def test_a_record_gives_back_what_the_agents_logged(setup, logs, tables, read, shard_size):
    records = read(tables, shard_size=shard_size)
    world = records.world(WorldKey(0, 0))
    assert set(world.tables) == set(ALL_TABLES)
    assert sum(len(log) for log, _ in logs.values()) > 100
    for seat in range(setup.n_seats):
        reasons = world.reasons(seat)
        if seat not in logs:
            assert reasons is None
            continue
        log, interventions = logs[seat]
        assert reasons.decisions == log
        assert reasons.layers == ("heuristic", "types", "joint"), (
            "L2's weights are of the middle level, which is missing"
        )
        assert len(reasons.regimes) == len(reasons.interventions) == setup.n_days
        assert sum(reasons.interventions) == interventions
    assert records.table("reasons", columns=["factory"]).num_rows == tables["reasons"].num_rows


def test_decisions_belong_to_their_negotiations(tables):
    negotiations = {(row["day"], row["negotiation"]): row for row in tables["negotiations"].to_pylist()}
    for row in tables["reasons"].to_pylist():
        negotiation = negotiations[row["day"], row["negotiation"]]
        sides = (negotiation["buyer"], negotiation["seller"])
        assert sides == ((row["factory"], row["partner"]) if row["buying"] else (row["partner"], row["factory"]))


def test_reasons_change_nothing_else_and_both_engines_give_the_same(setup, tables):
    without = recorded(setup, reasons=False)
    assert set(without) == set(TABLES)
    assert all(without[name].equals(tables[name]) for name in TABLES)
    other = recorded(setup, reasons=True, engine="scml")
    for name in REASON_TABLES:
        assert other[name].equals(tables[name]), name


def test_worlds_with_and_without_reasons_share_a_shard(setup, logs, read):
    worlds = [recorded(setup, reasons=number == 1, world=number) for number in range(3)]
    records = read(*worlds, shard_size=3)
    seat = next(iter(logs))
    assert [records.world(key).reasons(seat) is not None for key in records.keys] == [False, True, False]
    assert records.world(records.keys[1]).reasons(seat).decisions == logs[seat][0]


def test_records_without_reasons_have_no_rows_of_them(tables, read):
    records = read({name: tables[name] for name in TABLES}, shard_size=1, reasons=False)
    assert set(records.sources[0].manifest.shards[0].files) == set(TABLES)
    assert records.table("reasons").num_rows == 0
    world = records.world(WorldKey(0, 0))
    assert set(world.tables) == set(TABLES)
    assert world.reasons(0) is None


def test_unknown_columns_are_ignored_and_missing_ones_are_empty(tables):
    table = tables["reasons"]
    newer = table.append_column("mood", pa.array(["fine"] * table.num_rows))
    assert conform(newer, "reasons").equals(table)
    older = table.drop_columns(["residual", "alpha"])
    filled = conform(older, "reasons")
    assert filled.schema.equals(arrow_schema("reasons"))
    assert filled["residual"].null_count == filled["alpha"].null_count == table.num_rows
    with pytest.raises(KeyError, match=r"lacks the columns .*round"):
        conform(table.drop_columns(["round"]), "reasons")


def test_a_newer_release_may_add_a_table_and_a_column(tables, tmp_path, monkeypatch):
    from litaagent_std.records import schema
    from litaagent_std.records.storage import segment, store

    column = schema.Column("weather", pa.int8(), "of the day", True)
    spec = schema.TABLES["errors"]
    wider = schema.TableSpec("errors", spec.meaning, (*spec.columns, column))
    more = schema.TableSpec("moods", "of the day", (column,))
    known = dict(schema.ALL_TABLES)
    with monkeypatch.context() as newer:
        both = known | {"errors": wider, "moods": more}
        for module in (schema, segment, store):
            newer.setattr(module, "ALL_TABLES", both)
        arrow_schema.cache_clear()
        written = {
            **tables,
            "moods": arrow_schema("moods").empty_table(),
            "errors": arrow_schema("errors").empty_table(),
        }
        records = RecordStore(tmp_path / "records", {}, 3, shard_size=1, reasons=True)
        records.add(0, pack_world(0, written))
        (tmp_path / "one.segment").write_bytes(pack_world(1, written))
    arrow_schema.cache_clear()
    world = open_records(tmp_path / "records").world(WorldKey(0, 0))
    assert set(world.tables) == set(known)
    assert world.tables["errors"].schema.equals(arrow_schema("errors"))
    assert set(segment.read_segment(tmp_path / "one.segment").tables) == set(known)


def test_decisions_find_their_turns(tables, logs):
    record = WorldRecord(tables)
    found = turn_reasons(record.tables, record.columns)
    matched = 0
    for seat, (log, _) in logs.items():
        known = {(entry.day, entry.partner, entry.round): entry for entry in log}
        for thread, row in decisions(record.tables, record.columns, record.days, seat):
            entry = known[thread.day, thread.partner, thread.round]
            for name in ("reservation", "acceptance", "alpha", "urgency"):
                value = getattr(entry, name)
                assert np.isnan(found[name][row]) if value is None else found[name][row] == value
            matched += 1
    assert matched > 100
    others = ~np.isin(record.columns.factory, list(logs))
    assert all(np.isnan(values[others]).all() for values in found.values())
    without = turn_reasons({name: tables[name] for name in TABLES}, record.columns)
    assert all(np.isnan(values).all() for values in without.values())


def test_samples_may_hold_reasons(tables, logs):
    record, seats = WorldRecord(tables), sorted(logs)
    plain, more = world_samples(record, seats), world_samples(record, seats, reasons=True)
    assert set(more.micro) - set(plain.micro) == set(REASONS)
    assert all(np.array_equal(plain.micro[name], more.micro[name]) for name in plain.micro)
    urgency = more.micro["reason_urgency"]
    assert urgency.dtype == np.float32
    assert not np.isnan(urgency).any()
    assert np.isnan(more.micro["reason_reservation"]).any()

"""Samples from scml's own negotiation tables."""

import csv

import numpy as np
import pytest

from litaagent_std.hrl_xf import data_pipeline
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError, NoSuchAgentError
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.hrl_xf.data_pipeline.storage import load_samples, save_samples
from litaagent_std.records.reader import open_records
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.world import WorldRecord
from litaagent_std.tournament.export import export_logs
from litaagent_std.world.scml.engine import make_scml_world
from litaagent_std.world.setup import official_setup


@pytest.fixture(scope="module")
def exported(tournament, tmp_path_factory):
    """The tournament's first two worlds in scml's form."""
    folder = tmp_path_factory.mktemp("exported")
    export_logs(open_records(tournament), folder, worlds=[0, 1])
    return folder


@pytest.fixture(scope="module")
def table(exported):
    return data_pipeline.load_negotiation_csv(exported)


def test_tables_and_records_give_the_same_actions(tournament, table, tmp_path):
    """The same operations and offers in the same order, after the same number of offers."""
    data = data_pipeline.build_dataset(tournament, tmp_path, DatasetOptions(agent_name=""), num_workers=1)
    rows = np.flatnonzero(data.micro["world"] < 2)
    before = data.micro["history_mask"].sum(axis=1)
    actions = {}
    for row in rows.tolist():
        key = (int(data.micro["world"][row]), int(data.micro["thread"][row]), int(before[row]))
        actions[key] = (int(data.micro["op"][row]), *data.micro["offer"][row].tolist())
    samples = data_pipeline.build_micro_dataset(table)
    assert len(samples) == len(rows) == len(actions)
    numbers = thread_numbers(tournament)
    for sample in samples:
        world, name = sample.negotiation_id.split("/")
        key = (int(world.removeprefix("world-")), numbers[world, name], len(sample.history))
        assert tuple(sample.action.tolist()) == actions[key]


def thread_numbers(tournament):
    records = open_records(tournament)
    numbers = {}
    for key in records.keys[:2]:
        rows = records.world(key).tables["negotiations"].select(["day", "negotiation"]).to_pylist()
        for number, row in enumerate(rows):
            numbers[f"world-{key.world:06}", f"d{row['day']}n{row['negotiation']}"] = number
    return numbers


def test_goals_from_tables_are_the_deals(table):
    samples = data_pipeline.build_macro_dataset(table, agent_name="Greedy")
    deals = [row for row in table.to_pylist() if row["status"] == "agreement"]
    units = sum(
        row["offers"][-1]["quantity"] * sum(row[f"{role}_type"].startswith("Greedy") for role in ("buyer", "seller"))
        for row in deals
    )
    assert sum(float(sample.goal[[0, 2]].sum()) for sample in samples) == units > 0
    assert all((sample.goal[1::2][sample.goal[0::2] == 0] == 0).all() for sample in samples)


def test_states_from_tables_hold_no_deal_of_the_same_day(exported, tmp_path):
    """With every negotiation of the last day broken off, states are the same and goals are not."""
    plain = data_pipeline.build_macro_dataset(data_pipeline.load_negotiation_csv(exported))
    other = tmp_path / "logs"
    for path in sorted(exported.rglob("negotiations.csv")):
        target = other / path.parent.name / path.name
        target.parent.mkdir(parents=True)
        with path.open(newline="") as source, target.open("w", newline="") as sink:
            rows = list(csv.DictReader(source))
            last = max(int(row["sim_step"]) for row in rows)
            writer = csv.DictWriter(sink, list(rows[0]))
            writer.writeheader()
            for row in rows:
                if int(row["sim_step"]) == last:
                    row |= {"agreement": "", "broken": "True"}
                writer.writerow(row)
    changed = data_pipeline.build_macro_dataset(data_pipeline.load_negotiation_csv(other))
    assert all(np.array_equal(a.state_macro, b.state_macro) for a, b in zip(plain, changed, strict=True))
    assert any(not np.array_equal(a.goal, b.goal) for a, b in zip(plain, changed, strict=True))


def test_samples_of_tables_are_saved_and_loaded(table, tmp_path):
    macro, micro = data_pipeline.build_macro_dataset(table), data_pipeline.build_micro_dataset(table)
    save_samples(macro, micro, tmp_path)
    macro_back, micro_back = load_samples(tmp_path)
    assert [sample.day for sample in macro_back] == [sample.day for sample in macro]
    assert all(np.array_equal(a.goal, b.goal) for a, b in zip(macro, macro_back, strict=True))
    for a, b in zip(micro, micro_back, strict=True):
        assert a.negotiation_id == b.negotiation_id
        for name in ("history", "action", "baseline", "context", "scale"):
            assert np.array_equal(getattr(a, name), getattr(b, name))


def test_what_scml_itself_writes_is_read(tmp_path):
    """scml labels offers with negotiators; the agents are in a column of their own."""
    setup = official_setup(3, n_days=4, n_levels=2)
    recorder = Recorder(setup, WorldFacts(0, 0, 0, 0, 3, (None,) * setup.n_seats))
    world = make_scml_world(setup, [recorder])
    world.save_negotiations = True
    world.run_to_end()
    folder = tmp_path / "world"
    folder.mkdir()
    with (folder / "negotiations.csv").open("w", newline="") as file:
        rows = world.saved_negotiations
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    table = data_pipeline.load_negotiation_csv(tmp_path)
    record = WorldRecord(recorder.tables())
    names = record.names
    turns = record.tables["turns"].to_pylist()
    made = sorted(
        (names[t["factory"]], t["day"], t["quantity"], t["time"], t["unit_price"]) for t in turns if t["quantity"]
    )
    read = [
        (offer["by"], row["day"], offer["quantity"], offer["time"], offer["price"])
        for row in table.to_pylist()
        for offer in row["offers"]
    ]
    assert sorted(read) == made
    assert len(data_pipeline.build_micro_dataset(table)) == len(turns)


def test_tables_that_cannot_be_used_raise(exported, table, tmp_path):
    with pytest.raises(DatasetError, match="log_negotiations=True"):
        data_pipeline.load_negotiation_csv(tmp_path)
    (tmp_path / "negotiations.csv").write_text("id,buyer\n1,a\n")
    with pytest.raises(DatasetError, match="lacks the columns"):
        data_pipeline.load_negotiation_csv(tmp_path)
    whole = next(exported.rglob("negotiations.csv")).read_text()
    (tmp_path / "negotiations.csv").write_text(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="cut off"):
        data_pipeline.load_negotiation_csv(tmp_path)
    with pytest.raises(NoSuchAgentError, match="the tables hold GreedyStdAgent"):
        data_pipeline.build_micro_dataset(table, agent_name="Penguin")
    with pytest.raises(NoSuchAgentError, match="the tables hold GreedyStdAgent"):
        data_pipeline.build_macro_dataset(table, agent_name="Penguin")

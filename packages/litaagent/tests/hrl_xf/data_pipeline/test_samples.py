"""Documents 000 and 001's samples: one by one, saved, loaded, and from scml's own tables."""

import csv
import shutil

import numpy as np
import pytest

from litaagent_std.hrl_xf import data_pipeline
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError, NoSuchAgentError
from litaagent_std.hrl_xf.data_pipeline.extraction.columns import ACCEPT, END, REJECT
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.hrl_xf.data_pipeline.storage import load_samples, save_samples
from litaagent_std.policy.features import WiderHorizonWarning
from litaagent_std.records.reader import open_records
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.world import WorldRecord
from litaagent_std.tournament.export import export_logs
from litaagent_std.world.scml.engine import make_scml_world
from litaagent_std.world.setup import official_setup

DOCUMENT_000 = """
from litaagent_std.hrl_xf import data_pipeline

data_dir = "tournament_history/hrl_data_<timestamp>_std"
macro_ds, micro_ds = data_pipeline.load_tournament_data(
    data_dir,
    agent_name="LitaAgent",
    num_workers=4,  # 并行解析（默认自动）
)
data_pipeline.save_samples(macro_ds, micro_ds, f"{data_dir}/processed_samples", horizon=40)
"""


def test_the_pipeline_of_document_000_runs(tournament, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tournament / "records", tmp_path / "history" / "records")
    block = DOCUMENT_000.replace("tournament_history/hrl_data_<timestamp>_std", "history")
    block = block.replace('"LitaAgent"', '"GreedyStd"').replace("num_workers=4", "num_workers=1")
    names = {}
    with pytest.warns(WiderHorizonWarning, match="horizon=40 exceeds the league's 10"):
        exec(block, names)
    macro, micro = load_samples("history/processed_samples")
    assert len(macro) == len(names["macro_ds"]) > 0
    assert len(micro) == len(names["micro_ds"]) > 0
    assert macro.data.macro["x_temporal"].shape[1] == 41
    assert not macro.data.macro["mask"][:, 11:].any()


def test_samples_say_what_the_arrays_say(dataset):
    macro, micro = data_pipeline.MacroDataset(dataset), data_pipeline.MicroDataset(dataset)
    assert len(macro) == len(dataset.macro)
    assert len(micro) == len(dataset.micro)
    sample = macro[-1]
    assert sample.day == dataset.macro["day"][-1]
    assert np.array_equal(sample.goal[2], dataset.macro["goal_q"][-1, 1])
    assert np.array_equal(sample.goal[1], dataset.macro["goal_p"][-1, 0])
    row = 77
    action = micro[row]
    assert len(action.history) == dataset.micro["history_mask"][row].sum()
    assert action.action.tolist() == [dataset.micro["op"][row], *dataset.micro["offer"][row]]
    if action.action[0] == REJECT:
        assert action.residual.tolist() == (dataset.micro["offer"][row] - dataset.micro["baseline"][row]).tolist()
    ended = int(np.flatnonzero(dataset.micro["op"] != REJECT)[0])
    assert micro[ended].residual is None
    assert len(list(micro[:5])) == 5
    assert len(micro.of("train")) == len(dataset.micro.rows("train"))
    with pytest.raises(IndexError):
        micro[len(micro)]


def test_saved_samples_come_back_bit_by_bit(dataset, tmp_path, tree):
    macro, micro = data_pipeline.MacroDataset(dataset), data_pipeline.MicroDataset(dataset)
    save_samples(macro, micro, tmp_path / "saved")
    assert tree(tmp_path / "saved") == tree(dataset.folder)
    with pytest.raises(DatasetError, match="smaller than the samples' 10"):
        save_samples(macro, micro, tmp_path / "narrow", horizon=5)
    with pytest.raises(DatasetError, match="another folder"):
        save_samples(macro, micro, dataset.folder)
    with pytest.raises(DatasetError, match="no samples in"):
        load_samples(tmp_path / "nowhere")


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
    found = {}
    for row in rows.tolist():
        key = (int(data.micro["world"][row]), int(data.micro["thread"][row]), int(before[row]))
        found[key] = (int(data.micro["op"][row]), *data.micro["offer"][row].tolist())
    samples = data_pipeline.build_micro_dataset(table)
    assert len(samples) == len(rows) == len(found)
    numbers = thread_numbers(tournament)
    for sample in samples:
        world, name = sample.negotiation_id.split("/")
        key = (int(world.removeprefix("world-")), numbers[world, name], len(sample.history))
        assert tuple(sample.action.tolist()) == found[key]


def thread_numbers(tournament):
    records = open_records(tournament)
    found = {}
    for key in records.keys[:2]:
        rows = records.world(key).tables["negotiations"].select(["day", "negotiation"]).to_pylist()
        for place, row in enumerate(rows):
            found[f"world-{key.world:06}", f"d{row['day']}n{row['negotiation']}"] = place
    return found


def test_goals_from_tables_are_the_deals(table):
    samples = data_pipeline.build_macro_dataset(table, agent_name="Greedy")
    deals = [row for row in table.to_pylist() if row["status"] == "agreement"]
    units = sum(
        row["offers"][-1]["quantity"] * sum(row[f"{role}_type"].startswith("Greedy") for role in ("buyer", "seller"))
        for row in deals
    )
    assert sum(float(one.goal[[0, 2]].sum()) for one in samples) == units > 0
    assert all((one.goal[1::2][one.goal[0::2] == 0] == 0).all() for one in samples)


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
    assert [one.day for one in macro_back] == [one.day for one in macro]
    assert all(np.array_equal(a.goal, b.goal) for a, b in zip(macro, macro_back, strict=True))
    for a, b in zip(micro, micro_back, strict=True):
        assert a.negotiation_id == b.negotiation_id
        for name in ("history", "action", "baseline", "context", "scale"):
            assert np.array_equal(getattr(a, name), getattr(b, name))


def test_what_scml_itself_writes_is_read(tmp_path):
    """A negotiation table as scml saves it names offers after negotiators; who made them stands beside."""
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


def test_tables_that_cannot_be_used_are_told(exported, table, tmp_path):
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


def test_operations_are_numbered_as_documented():
    assert (ACCEPT, REJECT, END) == (0, 1, 2)

"""A dataset is the same bytes however it was built, and is built again exactly when something it depends on changed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from apexrl.execution import ExecutionOptions
from apexrl.runs.reading import write_sealed
from litaagent_std.hrl_xf.data_pipeline import build, shards
from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError, NoSuchAgentError
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.policy.features import WiderHorizonWarning
from litaagent_std.records.reader import open_records
from litaagent_std.records.storage.manifest import NoRecordsError

GREEDY = DatasetOptions(agent_name="Greedy")


class KilledError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize(("name", "after"), [("_write", 0), ("_write", 3), ("write_arrays", 1)])
def test_a_build_that_was_stopped_resumes_to_the_same_bytes(
    tournament, dataset, tmp_path, tree, monkeypatch, name, after
):
    calls, plain = [], getattr(shards, name)

    def stops(*args):
        calls.append(args)
        if len(calls) > after:
            raise KilledError
        return plain(*args)

    with monkeypatch.context() as patch:
        patch.setattr(shards, name, stops)
        with pytest.raises((KilledError, DatasetError)):
            build_dataset(tournament, tmp_path, GREEDY, num_workers=1)
    assert not (tmp_path / "manifest.json").exists()
    made = []
    monkeypatch.setattr(shards, "_write", lambda *args: (made.append(args), plain_write(*args)))
    build_dataset(tournament, tmp_path, GREEDY, num_workers=1)
    assert tree(tmp_path) == tree(dataset.folder)
    n_worlds = dataset.manifest["counts"]["worlds"]
    assert len(made) == (n_worlds - after if name == "_write" else 0)


plain_write = shards._write


def test_a_killed_process_leaves_what_the_next_one_needs(tournament, dataset, tmp_path, tree):
    target = tmp_path / "dataset"
    code = (
        "import sys, time\n"
        "from litaagent_std.hrl_xf.data_pipeline import build, shards\n"
        "from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions\n"
        "plain = shards._write\n"
        "def slow(*args):\n    plain(*args)\n    time.sleep(0.3)\n"
        "shards._write = slow\n"
        "build.build_dataset(sys.argv[1], sys.argv[2], DatasetOptions(agent_name='Greedy'), num_workers=1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tournament), str(target)])
    deadline = time.monotonic() + 60
    while not list(target.glob("shards/*.shard")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert list(target.glob("shards/*.shard"))
    assert not (target / "manifest.json").exists()
    build_dataset(tournament, target, GREEDY, num_workers=1)
    assert tree(target) == tree(dataset.folder)


def test_what_is_there_is_opened_not_built(tournament, tmp_path, monkeypatch):
    first = build_dataset(tournament, tmp_path, GREEDY, num_workers=1)
    monkeypatch.setattr(build, "_build", lambda *_: pytest.fail("built again"))
    assert build_dataset(tournament, tmp_path, GREEDY).digest == first.digest


def test_another_l1_features_code_or_options_make_another_dataset(tournament, monkeypatch):
    records = open_records(tournament)

    def digest(options=GREEDY):
        return build.provenance_of(records, [tournament], options)["digest"]

    first = digest()
    assert digest() == first
    digests = {first}
    for name in ("features_digest", "l1_digest", "code_digest"):
        with monkeypatch.context() as patch:
            patch.setattr(build, name, lambda: "other")
            digests.add(digest())
    for options in (
        DatasetOptions(agent_name="Random"),
        DatasetOptions(agent_name="Greedy", labels="deals"),
        DatasetOptions(agent_name="Greedy", horizon=12),
        DatasetOptions(agent_name="Greedy", split_seed=1),
        DatasetOptions(agent_name="Greedy", min_score=0.5),
    ):
        digests.add(digest(options))
    assert len(digests) == 9


def test_the_code_of_all_folders_counts(monkeypatch):
    files = []
    monkeypatch.setattr(build, "digest_code", lambda paths: files.extend(paths) or "digest")
    build.code_digest.__wrapped__()
    names = {"/".join(path.parts[-2:]) for path in files}
    assert {"data_pipeline/build.py", "extraction/labels.py", "records/world.py", "l1/baseline.py"} <= names


def test_more_worlds_make_another_dataset(tournament, dataset, tmp_path):
    both = tmp_path / "both"
    for name in ("one", "two"):
        shutil.copytree(tournament / "records", both / name / "records")
    one, two = build_dataset(both / "one", options=GREEDY), build_dataset(both, options=GREEDY)
    assert one.folder.parent == both / "one" / "datasets"
    assert len(two.macro) == 2 * len(one.macro)
    assert (
        two.manifest["counts"]["configs"] == one.manifest["counts"]["configs"]
    )  # the same seeds: the same configurations
    assert list(two.split.records) == ["one/records", "two/records"]
    assert np.array_equal(one.macro["goal_q"], dataset.macro["goal_q"])


def test_a_folder_of_another_dataset_is_refused_with_the_difference(tournament, tmp_path, tree):
    build_dataset(tournament, tmp_path, GREEDY, num_workers=1)
    before = tree(tmp_path)
    with pytest.raises(DatasetError, match=r'agent_name: "Greedy" -> "Random"'):
        build_dataset(tournament, tmp_path, DatasetOptions(agent_name="Random"), num_workers=1)
    elsewhere = shutil.copytree(tournament, tmp_path.parent / "elsewhere" / "other")
    with pytest.raises(DatasetError, match="records: "):
        build_dataset(elsewhere.parent, tmp_path, GREEDY, num_workers=1)
    assert tree(tmp_path) == before


def test_a_dataset_of_older_code_is_built_anew(tournament, tmp_path, tree, monkeypatch):
    monkeypatch.setattr(build, "code_digest", lambda: "older")
    build_dataset(tournament, tmp_path, GREEDY, num_workers=1)
    monkeypatch.undo()
    renewed = build_dataset(tournament, tmp_path, GREEDY, num_workers=1)
    assert renewed.manifest["code_digest"] != "older"


def test_actions_refer_to_their_days(dataset):
    macro, micro = dataset.macro, dataset.micro
    day = micro["day_row"]
    for name in ("config", "world"):
        assert np.array_equal(macro[name][day], micro[name])
    for name in ("return_to_go", "return_norm"):
        assert np.array_equal(macro[name][day], micro[name])
    assert len(np.unique(macro["world"])) == dataset.manifest["counts"]["worlds"]


def test_returns_are_normalised_by_configuration_and_seat(tournament):
    everybody = build_dataset(tournament, options=DatasetOptions(agent_name=""), num_workers=1)
    macro = everybody.macro
    for config in range(3):
        for seat in (0, 3):
            rows = (macro["config"] == config) & (macro["factory"] == seat)
            norm = macro["return_norm"][rows].astype(float)
            assert abs(norm.mean()) < 1e-5
            assert norm.std() == pytest.approx(1.0, abs=1e-4)


def test_a_wider_horizon_is_accepted_and_said(tournament, tmp_path):
    options = DatasetOptions(agent_name="Greedy", horizon=40)
    with pytest.warns(WiderHorizonWarning, match="leads 11 to 40 are masked"):
        wide = build_dataset(tournament, tmp_path, options, num_workers=1)
    assert wide.horizon == 40
    assert wide.league_horizon == 10
    assert wide.macro["x_temporal"].shape[1] == 41
    with pytest.raises(DatasetError, match="smaller than the league's 10"):
        build_dataset(tournament, tmp_path / "n", DatasetOptions(agent_name="Greedy", horizon=5))


def test_agents_are_chosen_by_prefix_rank_and_score(tournament, tmp_path):
    best = build_dataset(tournament, tmp_path / "top", DatasetOptions(agent_name="", top=1), num_workers=1)
    rich = build_dataset(tournament, tmp_path / "rich", DatasetOptions(agent_name="", min_score=1.0), num_workers=1)
    everybody = build_dataset(tournament, tmp_path / "all", DatasetOptions(agent_name=""), num_workers=1)
    counts = [data.manifest["counts"]["factories"] for data in (best, rich, everybody)]
    assert 0 < counts[0] < counts[2]
    scores = open_records(tournament).table("factories", columns=["score"])["score"].to_pylist()
    assert counts[1] == sum(score >= 1.0 for score in scores)
    assert counts[2] == len(scores)


def test_an_unknown_agent_raises_with_the_known_ones(tournament):
    with pytest.raises(NoSuchAgentError, match="recorded are GreedyStdAgent, RandomStdAgent"):
        build_dataset(tournament, options=DatasetOptions(agent_name="PenguinAgent"))


def test_no_records_raise(tmp_path):
    with pytest.raises(NoRecordsError, match="no records under"):
        build_dataset(tmp_path)


def test_a_truncated_file_raises(tournament, tmp_path):
    shutil.copytree(tournament / "records", tmp_path / "records")
    [path] = (tmp_path / "records" / "turns").glob("*.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DatasetError, match=r"turns/00000.parquet.*is not the file that was written"):
        build_dataset(tmp_path, options=GREEDY, num_workers=1)


def test_records_of_another_schema_raise(tournament, tmp_path):
    shutil.copytree(tournament / "records", tmp_path / "records")
    manifest = tmp_path / "records" / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["sha256"]
    write_sealed(manifest, {**content, "schema_version": 9})
    with pytest.raises(NoRecordsError, match="schema version is 9"):
        build_dataset(tmp_path, options=GREEDY)


def test_datasets_beside_records_are_no_records(tournament, dataset, tmp_path):
    shutil.copytree(tournament / "records", tmp_path / "records")
    shutil.copytree(dataset.folder, tmp_path / "datasets" / "one")
    assert len(open_records(tmp_path).sources) == 1
    assert OfflineData.open(tmp_path / "datasets" / "one").digest == dataset.digest


def test_workers_without_the_folder_make_the_same_shards(tournament, tmp_path, monkeypatch):
    records = open_records(tournament)
    worlds = build.select_worlds(records, GREEDY)
    [task] = build._tasks(records, list(enumerate(worlds))[:3], GREEDY)
    expected = shards.make_shards(task)
    carried = shards.with_tables(task)
    monkeypatch.setattr(shards, "open_records", lambda _: pytest.fail("a worker reads no folder"))
    assert shards.make_shards(carried) == expected
    with pytest.raises(pytest.fail.Exception):
        shards.make_shards(task)


def test_an_executor_may_be_named(tournament, dataset, tmp_path, tree):
    build_dataset(tournament, tmp_path, GREEDY, execution=ExecutionOptions(executor="processes", workers=2))
    assert tree(tmp_path) == tree(dataset.folder)

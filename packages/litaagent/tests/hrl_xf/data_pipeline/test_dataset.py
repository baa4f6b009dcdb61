"""Damaged, foreign and empty datasets are refused with words that help."""

import json
import shutil

import numpy as np
import pytest

from apexrl.runs.reading import write_sealed
from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError, DatasetError, EmptySplitError
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import world_samples
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.records.world import WorldRecord


@pytest.fixture
def copy(dataset, tmp_path):
    return shutil.copytree(dataset.folder, tmp_path / "copy")


def edit(folder, **changes):
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    write_sealed(path, {**content, **changes})


def test_arrays_are_mapped_not_loaded(dataset):
    assert isinstance(dataset.micro["history"], np.memmap)
    assert len(dataset.micro) == len(dataset.micro["history"]) == dataset.manifest["counts"]["actions"]
    assert set(dataset.micro) == set(dataset.micro.keys())
    assert "history" in dataset.micro
    with pytest.raises(KeyError, match="there is no array 'nothing'"):
        dataset.micro["nothing"]


def test_splits_are_rows_without_overlap(dataset):
    for part in (dataset.macro, dataset.micro):
        rows = np.concatenate([part.rows(split) for split in dataset.split.names])
        assert rows.dtype == np.int64
        assert sorted(rows.tolist()) == list(range(len(part)))


def test_a_split_without_rows_raises(tournament, tmp_path):
    options = DatasetOptions(agent_name="Greedy", ratios=(0.5, 0.5, 0.0))
    data = build_dataset(tournament, tmp_path, options, num_workers=1)
    assert data.split.names == ("train", "val")
    with pytest.raises(EmptySplitError, match="Collect more configurations"):
        data.macro.rows("test")
    with pytest.raises(DatasetError, match="Splits are train, val, test"):
        data.macro.rows("validation")


def test_a_truncated_array_raises(copy):
    path = copy / "micro" / "history.npy"
    path.write_bytes(path.read_bytes()[:-1000])
    data = OfflineData.open(copy)
    with pytest.raises(DatasetError, match=r"history.npy.*not the file that was written"):
        data.micro["history"]


def test_a_flipped_bit_raises_and_arrays_of_an_earlier_release_have_no_digest(copy):
    path = copy / "macro" / "goal_q.npy"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(DatasetError, match="not the file that was written"):
        OfflineData.open(copy).macro["goal_q"]
    edit(copy, array_digests={})
    assert OfflineData.open(copy).macro["goal_q"].shape


def test_an_array_outside_the_folder_is_not_read(copy, tmp_path):
    path = copy / "macro" / "goal_q.npy"
    path.rename(tmp_path / "outside.npy")
    path.symlink_to(tmp_path / "outside.npy")
    with pytest.raises(DatasetError, match="leads out of"):
        OfflineData.open(copy).macro["goal_q"]


def test_an_array_of_another_shape_raises(copy):
    np.save(copy / "macro" / "day.npy", np.zeros(3, np.int16))
    edit(copy, array_digests={})
    with pytest.raises(DatasetError, match="the manifest says"):
        OfflineData.open(copy).macro["day"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features_digest": "0" * 64}, "made with features"),
        ({"l1_digest": "0" * 64}, "made with L1"),
        ({"schema_version": 99}, "schema version 99"),
        ({"format": "something"}, "not marked"),
        ({"array_digests": "text"}, "cannot be used"),
        ({"array_digests": {"macro": {"day": 1}}}, "no texts"),
    ],
)
def test_datasets_of_something_else_are_refused(copy, changes, words):
    edit(copy, **changes)
    with pytest.raises(DatasetError, match=words):
        OfflineData.open(copy)


def test_an_older_dataset_can_still_be_looked_at(copy):
    edit(copy, l1_digest="0" * 64)
    assert len(OfflineData.open(copy, check=False).macro)


def test_a_folder_without_a_dataset_raises(tmp_path):
    with pytest.raises(DatasetError, match="lita dataset build"):
        OfflineData.open(tmp_path)


def test_a_value_that_is_not_finite_raises(record):
    table = record.tables["factories"]
    scores = table["score"].to_pylist()
    scores[0] = float("nan")
    index = table.schema.get_field_index("score")
    broken = table.set_column(index, table.schema.field("score"), [scores])
    with pytest.raises(BadSampleError, match=r"return_to_go.*not finite"):
        world_samples(WorldRecord({**record.tables, "factories": broken}), [0])


def test_days_without_partners_are_left_out(record):
    table = record.tables["days"]
    flags = [True] * table.num_rows
    index = table.schema.get_field_index("bankrupt")
    broken = WorldRecord({**record.tables, "days": table.set_column(index, table.schema.field("bankrupt"), [flags])})
    samples = world_samples(broken, [0])
    assert len(samples.macro["day"]) == len(samples.micro["op"]) == 0
    assert samples.skipped == record.facts["n_days"]

"""Samples one by one, saved and loaded."""

import shutil

import numpy as np
import pytest

from litaagent_std.hrl_xf import data_pipeline
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.storage import load_samples, save_samples
from litaagent_std.policy.features import WiderHorizonWarning
from litaagent_std.records.columns import ACCEPT, END, REJECT

DOCUMENTED = """
from litaagent_std.hrl_xf import data_pipeline

data_dir = "tournament_history/hrl_data_<timestamp>_std"
macro_ds, micro_ds = data_pipeline.load_tournament_data(
    data_dir,
    agent_name="LitaAgent",
    num_workers=4,  # 并行解析（默认自动）
)
data_pipeline.save_samples(macro_ds, micro_ds, f"{data_dir}/processed_samples", horizon=40)
"""


def test_the_documented_pipeline_runs(tournament, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tournament / "records", tmp_path / "history" / "records")
    block = DOCUMENTED.replace("tournament_history/hrl_data_<timestamp>_std", "history")
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


def test_operations_are_numbered_as_documented():
    assert (ACCEPT, REJECT, END) == (0, 1, 2)

"""``lita train --phases partner`` on the records of a real, tiny tournament: data, resume, evaluation, weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from apexrl.runs.session import Session
from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.hrl_xf.epochs import Interrupted
from litaagent_std.hrl_xf.training.config import TrainRunConfig
from litaagent_std.hrl_xf.training.launch import train
from litaagent_std.hrl_xf.training.partners.dataset import build_partner_data
from litaagent_std.hrl_xf.training.partners.evaluation import evaluate_types, summary
from litaagent_std.hrl_xf.training.partners.network import PartnerTypeModel
from litaagent_std.hrl_xf.training.partners.phase import export_types, train_partner_types
from litaagent_std.hrl_xf.training.record import TrainingRecord, curves
from litaagent_std.hrl_xf.training.report import show_run
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.learned import load_layers
from litaagent_std.policy.networks.weights import load_weights
from litaagent_std.policy.partners.types import PartnerTypes

RATIOS = (0.5, 0.25, 0.25)


def config(folder, run="first", **changes):
    values = {
        "data_dir": folder / "records",
        "dataset_dir": folder / "data",
        "output_dir": folder / "training_runs" / run,
        "log_dir": folder / "logs",
        "phases": ("partner",),
        "split_ratios": RATIOS,
        "num_workers": 1,
        "partner_epochs": 4,
        "partner_batch_size": 128,
        "partner_hidden": 16,
    }
    return TrainRunConfig(**(values | changes))


@pytest.fixture(scope="module")
def league(collect, tmp_path_factory):
    """A folder with records of a tournament and a first training run."""
    folder = tmp_path_factory.mktemp("partners")
    collect(folder / "records", competitors=("lita", "GreedyStd"), configs=4, steps=8, csv=False)
    assert train(config(folder)) == 0
    return folder


@pytest.fixture
def data(league):
    return build_partner_data(league / "records", league / "data", split_seed=0, ratios=RATIOS)


def test_snapshots_of_all_factories_are_split_by_configuration(data):
    splits = {split: data.rows(split) for split in ("train", "val", "test")}
    assert sum(map(len, splits.values())) == len(data) > 300
    assert len({int(config) for rows in splits.values() for config in set(data["config"][rows].tolist())}) == 4
    assert {ARCHETYPES[label] for label in np.unique(data["label"])} == set(ARCHETYPES)
    assert np.isnan(data["mixture"][splits["train"]]).all()  # the belief is computed where it is compared
    assert np.isfinite(data["mixture"][splits["test"]]).any()


def test_data_are_folded_once_and_alike_by_several_processes(data, league, tmp_path):
    messages = []
    again = build_partner_data(
        league / "records", league / "data", split_seed=0, ratios=RATIOS, on_progress=messages.append
    )
    assert (again.digest, messages) == (data.digest, [])
    folded = {path.name for path in (league / "data" / "partner-folded").iterdir()}
    other = build_partner_data(league / "records", tmp_path, split_seed=0, ratios=RATIOS, num_workers=2)
    assert {path.name for path in (tmp_path / "partner-folded").iterdir()} == folded  # named by content
    for name in ("features", "label", "world"):
        np.testing.assert_array_equal(other[name], data[name])


def test_the_record_holds_data_curves_and_evaluation(league, data):
    folder = league / "training_runs" / "first"
    content = TrainingRecord.read(folder).content
    assert content["finished"]
    assert content["weights"] == ["weights/partner.npz"]
    assert content["dataset"]["partner_digest"] == data.digest
    assert content["phases"]["partner"]["epochs"] == 4
    losses = [epoch["train/loss"] for epoch in curves(folder, "partner")]
    assert losses[-1] < losses[0]
    table = content["evaluation"]["test"]["partner"]
    assert table["all"]["scores"]["network"]["log_loss"] < table["all"]["scores"]["prior"]["log_loss"]
    assert {"network", "mixture", "prior"} == table["compared"]["scores"].keys()
    assert "0" in table["all"]["by_day"]["network"]
    assert "calibration" in table["all"]["by_type"]["network"]["random"]
    page = show_run(folder)
    assert "### partner types" in page
    assert "partner_snapshots" in page


def test_the_weights_play(league):
    weights = league / "training_runs" / "first" / "weights"
    assert load_layers(weights).types is not None
    assert LitaAgentHRL(l3="types", weights=weights).brain.layers.l3 == "types"


class StopAfter:
    """Ask to stop at the n-th look."""

    signal, exit_code = None, 0

    def __init__(self, looks):
        self._looks = looks

    @property
    def requested(self):
        self._looks -= 1
        return self._looks < 0


def test_a_run_that_stops_ends_with_the_same_weights(league, data):
    batches = -(-len(data.rows("train")) // 128)
    folder = league / "training_runs" / "stopped"
    stopped = config(league, "stopped")
    with Session(folder, config=stopped) as session:
        session.stop = StopAfter(batches + 8)  # the loop looks, too, before and after an epoch
        with pytest.raises(Interrupted):
            train_partner_types(stopped, TrainingRecord.open(folder), session)
    assert (folder / "partner_epoch1.ckpt.pt").exists()
    assert not (folder / "partner_epoch2.ckpt.pt").exists()
    with Session(folder, config=stopped) as session:
        train_partner_types(stopped, TrainingRecord.open(folder), session)
    first, second = (
        load_weights(league / "training_runs" / name / "weights/partner.npz") for name in ("first", "stopped")
    )
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name])


def test_numpy_computes_what_torch_does(tmp_path):
    torch.manual_seed(0)
    meta = {"kind": "partner", "types": list(ARCHETYPES)}
    export_types(PartnerTypeModel(8), tmp_path / "partner.npz", meta)  # raises if they differ


def test_scores_of_certain_predictions():
    labels = np.array([0, 1, 2, 3])
    right = summary(np.eye(4), labels)
    assert (right["accuracy"], right["log_loss"], right["calibration_error"]) == (1.0, 0.0, 0.0)
    wrong = summary(np.roll(np.eye(4), 1, axis=1), labels)
    assert wrong["accuracy"] == 0.0
    assert wrong["log_loss"] > 20
    assert wrong["calibration_error"] == pytest.approx(0.5)


def test_an_evaluation_of_nothing_says_so(data, league):
    types = PartnerTypes(load_weights(league / "training_runs" / "first" / "weights" / "partner.npz"))
    empty = replace(data, manifest={**data.manifest, "configs": {**data.manifest["configs"], "val": []}})
    assert evaluate_types(types, empty, "val") == {part: {"threads": 0} for part in ("all", "compared", "ours")}

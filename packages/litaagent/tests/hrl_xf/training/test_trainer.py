"""The whole chain on a dataset made by rule: it learns, writes its files, and resumes exactly after a kill."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from apexrl.runs.errors import DivergedError, RunLockedError
from apexrl.runs.session import Session
from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.epochs import Interrupted
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training import HRLXFTrainer, TrainConfig, phases
from litaagent_std.hrl_xf.training.data import DataError, MacroRows
from litaagent_std.hrl_xf.training.record import TrainingRecord, curves
from litaagent_std.hrl_xf.training.trainer import weights_digest

CONFIG = TrainConfig(
    horizon=6,
    l2_epochs=3,
    l2_batch_size=64,
    l2_lr=3e-3,
    l3_epochs=3,
    l3_lr=3e-3,
    l3_batch_size=64,
    awr_epochs=2,
    acceptance_epochs=2,
    critic_epochs=2,
    l4_epochs=2,
    l4_batch_size=32,
    backfill_folds=2,
    backfill_world_chunk=5,
    l2_backfill_batch_size=50,
)


def make_trainer(folder, **changes):
    cfg = replace(CONFIG, output_dir=folder, **changes)
    torch.manual_seed(0)
    return HRLXFTrainer(
        HorizonManagerPPO(cfg.horizon, dim=32),
        TemporalDecisionTransformer(cfg.horizon, dim=16, layers=1, ensemble=cfg.l3_ensemble, mode=cfg.l3_mode),
        ThreadCoordinator(dim=16, layers=1),
        cfg,
        AcceptanceModel(cfg.horizon, dim=16),
    )


def train_everything(trainer, data):
    trainer.train_phase0_bc(data)
    trainer.train_acceptance(data)
    trainer.train_phase1_awr(data)
    trainer.train_l4_distill(data)
    return trainer.save_all("awr")


def digests(trainer):
    return [weights_digest(model) for model in (trainer.l2, trainer.l3, trainer.acceptance, trainer.l4)]


@pytest.fixture(scope="module")
def trained(made_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    trainer = make_trainer(folder)
    files = train_everything(trainer, made_data)
    return trainer, files, folder


def test_all_documented_files_are_there_and_load_without_pickled_code(trained):
    _, files, folder = trained
    names = ["l2_bc", "l3_bc", "l3_awr", "acceptance", "l4_distill"]
    for name in names:
        last = 2 if name in ("l3_awr", "acceptance", "l4_distill") else 3
        for path in (f"{name}_epoch{last}.pt", f"{name}_epoch{last}.ckpt.pt", f"{name}.pt"):
            assert torch.load(folder / path, weights_only=True)
    assert [file.name for file in files] == ["l2.npz", "l3.npz", "acceptance.npz", "l4.npz"]
    assert (folder / "l4_awr.pt").exists()


def test_losses_fall_and_are_recorded_by_epoch(trained):
    _, _, folder = trained
    for phase in ("l2_bc", "l3_bc", "acceptance", "l4_distill"):
        epochs = curves(folder, phase)
        assert epochs[-1]["train/loss"] < epochs[0]["train/loss"]
    record = TrainingRecord.read(folder).content
    assert record["finished"]
    assert record["dataset"]["digest"] == "made"
    assert 0 < record["phases"]["l3_awr"]["evaluation"]["ess"] <= 1
    assert record["phases"]["l3_awr"]["evaluation"]["critic_explained"] > 0.05
    assert record["phases"]["l2_bc"]["stages"][0] | {"losses": None} == {"from": 1, "to": 3, "lr": 3e-3, "losses": None}
    assert {"val/loss", "test/mse"} <= record["phases"]["l2_bc"]["evaluation"].keys()


def test_goals_of_training_rows_are_predicted_out_of_fold(trained, made_data):
    trainer, _, _ = trained
    goals = trainer.goal_hat(made_data)
    with torch.no_grad():
        day = MacroRows.batch(MacroRows(made_data)[np.arange(len(made_data.macro["config"]))]).day
        shipped = trainer.l2(day)[0].numpy()
    train, val = made_data.macro.rows("train"), made_data.macro.rows("val")
    assert np.abs(goals.quantity[val] - shipped[val]).max() < 1e-4
    assert np.abs(goals.quantity[train] - shipped[train]).mean() > 0.05


class StopAfter:
    """Requests a stop at the n-th check."""

    signal, exit_code = None, 0

    def __init__(self, checks):
        self.left = checks

    @property
    def requested(self):
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("checks", [11, 40, 95])
def test_killed_anywhere_and_started_again_gives_the_same_bits(checks, trained, made_data, tmp_path):
    killed = make_trainer(tmp_path)
    with Session(tmp_path, config=killed.cfg) as killed.session:
        killed.session.stop = StopAfter(checks)
        with pytest.raises(Interrupted):
            train_everything(killed, made_data)
    again = make_trainer(tmp_path)
    train_everything(again, made_data)
    assert digests(again) == digests(trained[0])
    backfill = "backfill/goal_hat_q.npy"
    assert (tmp_path / backfill).read_bytes() == (trained[2] / backfill).read_bytes()
    for phase in ("l2_bc", "l3_awr"):
        assert curves(tmp_path, phase) == curves(trained[2], phase)


def test_a_call_locks_the_folder_and_a_signal_interrupts_it(made_data, tmp_path, monkeypatch):
    def interrupt(parts):
        with pytest.raises(RunLockedError):
            Session(tmp_path).__enter__()
        os.kill(os.getpid(), signal.SIGTERM)
        return "line"

    monkeypatch.setattr(phases, "_l2_line", interrupt)
    with pytest.raises(Interrupted, match="l2_bc: stopped after epoch 1; run the same command again"):
        make_trainer(tmp_path, l2_epochs=50).train_l2(made_data)
    assert (tmp_path / "l2_bc_epoch1.ckpt.pt").exists()
    monkeypatch.undo()
    trainer = make_trainer(tmp_path, l2_epochs=2)
    trainer.train_l2(made_data)
    assert trainer.session is None
    assert [line["step"] for line in curves(tmp_path, "l2_bc")] == [1, 2]


def test_a_run_resumes_from_the_named_checkpoint(trained, made_data, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(trained[2], folder)
    again = make_trainer(folder, l3_bc_resume_path=folder / "l3_bc_epoch1.ckpt.pt")
    again.train_phase0_bc(made_data)
    assert curves(folder, "l3_bc") == curves(trained[2], "l3_bc")
    resumed, original = (torch.load(run / "l3_bc.pt", weights_only=True)["model"] for run in (folder, trained[2]))
    assert all(torch.equal(resumed[name], original[name]) for name in resumed)
    assert (folder / "l3_bc_epoch3.ckpt.pt.set-aside").exists()  # what came after it is kept aside


def test_options_of_l2_and_l3_do_something_and_validation_stops_a_phase(made_data, tmp_path):
    changes = {"l2_objective": "cql", "l2_q_transform": "sqrt", "l3_ensemble": 2, "l3_mode": "direct"}
    trainer = make_trainer(tmp_path, **changes, l2_epochs=40, l2_lr=0.2, patience=2, save_every=2, l3_epochs=1)
    trainer.train_phase0_bc(made_data)
    phase = trainer.record.content["phases"]["l2_bc"]
    assert phase["stopped_early"]
    assert phase["epochs"] == phase["best_epoch"] + 2
    assert "train/critic" in phase["losses"]
    assert "train/variance" in trainer.record.content["phases"]["l3_bc"]["losses"]
    saved = {int(path.name.split("epoch")[1].split(".")[0]) for path in tmp_path.glob("l2_bc_epoch*.ckpt.pt")}
    assert saved == {*range(2, phase["epochs"] + 1, 2), phase["epochs"]}


def test_samples_of_two_datasets_and_phases_without_networks_are_refused(made_data, tmp_path):
    trainer = make_trainer(tmp_path)
    other = SimpleNamespace(**vars(made_data))
    with pytest.raises(DataError, match="two datasets"):
        trainer.train_phase0_bc(made_data, other)
    with pytest.raises(DataError, match="no network l3"):
        HRLXFTrainer(trainer.l2, None, None, trainer.cfg).train_l3(made_data)
    with pytest.raises(DataError, match="nothing was trained"):
        make_trainer(tmp_path / "new").save_all("bc")


def test_a_value_that_is_not_finite_is_named(made_data, tmp_path):
    macro = type(made_data.macro)(made_data.macro)
    macro["goal_q"] = macro["goal_q"].copy()
    row = macro["x_role"][:, 0].argmax()
    macro["goal_q"][row, 0, 0] = np.nan
    spoiled = SimpleNamespace(**(vars(made_data) | {"macro": macro}))
    with pytest.raises(DivergedError, match=f"l2_bc: goal_q of row {row} of the dataset is NaN or infinite"):
        make_trainer(tmp_path).train_l2(spoiled)


def test_a_run_does_not_depend_on_the_threads_of_the_process(made_data, tmp_path):
    """Sums of a large batch are split among threads, and rounded in another order."""
    before, results = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        large = {"l2_epochs": 2, "l2_batch_size": 4096, "l3_epochs": 1, "l3_batch_size": 4096}
        trainer = make_trainer(tmp_path / str(threads), **large)
        trainer.train_phase0_bc(made_data)
        assert torch.get_num_threads() == threads
        results.append([weights_digest(trainer.l2), weights_digest(trainer.l3)])
    torch.set_num_threads(before)
    assert results[0] == results[1]

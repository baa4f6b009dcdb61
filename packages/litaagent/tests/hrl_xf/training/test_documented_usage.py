"""The documented way from a tournament to trained weights runs, and resumes, as written but for folders and sizes."""

import logging

import pytest

from litaagent_std.hrl_xf.online.config import OnlineConfig
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.methods.gradient import GradientMethod

TRAIN = """
from litaagent_std.hrl_xf import training, data_pipeline
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer

data_dir = "tournament_history/hrl_data_<timestamp>_std"
macro_ds, micro_ds = data_pipeline.load_tournament_data(data_dir, agent_name="LitaAgent")

cfg = training.TrainConfig(l2_epochs=10, l3_epochs=10, output_dir=f"{data_dir}/checkpoints", horizon=40)
l2_model = HorizonManagerPPO(horizon=40)
l3_model = TemporalDecisionTransformer(horizon=40)
trainer = training.HRLXFTrainer(l2_model, l3_model, None, cfg)
trainer.train_phase0_bc(macro_ds, micro_ds)
"""
RESUME = """
from litaagent_std.hrl_xf import training, data_pipeline
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer

data_dir = "tournament_history/hrl_data_<timestamp>_std"
macro_ds, micro_ds = data_pipeline.load_tournament_data(data_dir, agent_name="LitaAgent", num_workers=4)

cfg = training.TrainConfig(
    l2_epochs=10,
    l3_epochs=10,
    output_dir=f"{data_dir}/checkpoints",
    horizon=40,
    l3_bc_resume_path=f"{data_dir}/checkpoints/l3_bc_epoch10.ckpt.pt",
)
l2_model = HorizonManagerPPO(horizon=40)
l3_model = TemporalDecisionTransformer(horizon=40)
trainer = training.HRLXFTrainer(l2_model, l3_model, None, cfg)
trainer.train_phase0_bc(macro_ds, micro_ds)
"""


def small(text, epochs):
    names = {
        "tournament_history/hrl_data_<timestamp>_std": "history",
        "LitaAgent": "Greedy",
        "num_workers=4": "num_workers=1",
    }
    for old, new in {**names, "l3_bc_epoch10": "l3_bc_epoch1", "_epochs=10": f"_epochs={epochs}"}.items():
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def folder(collect, tmp_path_factory):
    folder = tmp_path_factory.mktemp("documented")
    collect(folder / "history", configs=3, steps=4, csv=False)
    return folder


def test_the_documented_blocks_train_resume_and_start_online_training(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    with monkeypatch.context() as patch:
        patch.setattr(logging.getLogger(), "handlers", [])  # those of pytest: logging is not set up, as in a script
        exec(small(TRAIN, 1), {})
    assert "Epoch 1/1 | Loss " in capsys.readouterr().out
    written = {path.name for path in (folder / "history/checkpoints").iterdir()}
    assert {"l2_bc_epoch1.pt", "l2_bc_epoch1.ckpt.pt", "l3_bc_epoch1.pt", "l3_bc_epoch1.ckpt.pt"} <= written
    names = {}
    exec(small(RESUME, 2), names)
    assert "Epoch" not in capsys.readouterr().out  # the program's own logging decides
    assert (folder / "history/checkpoints/l3_bc_epoch2.ckpt.pt").exists()
    names["trainer"].save_all("bc")
    assert (folder / "history/checkpoints/l2_bc.pt").exists()
    start = Hierarchy.load(folder / "history/checkpoints")  # networks with a longer horizon than the league's
    method = GradientMethod(OnlineConfig(layers=("l2", "l3")), start)
    assert set(method.policies().nets) == {"l2", "l3"}

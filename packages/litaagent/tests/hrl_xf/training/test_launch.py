"""lita train, lita runs and the error script on the records of a real, tiny tournament."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from apexrl.configuration import from_command_line
from apexrl.runs.errors import UserFacingError
from lita import runs as runs_command
from litaagent_std.hrl_xf.training.config import TrainRunConfig
from litaagent_std.hrl_xf.training.evaluation.l2_error import L2ErrorConfig, l2_error
from litaagent_std.hrl_xf.training.launch import new_run, train
from litaagent_std.hrl_xf.training.record import TrainingRecord, curves
from litaagent_std.hrl_xf.training.report import as_html, compare_runs, list_runs, show_run
from litaagent_std.policy.learned import load_layers

ROOT = Path(__file__).parents[5]
DOCUMENTED = """
--phases l2 --num-workers 1 --l2-batch-size 64 --l2-epochs 2 --l2-lr 1e-3 --l2-q-transform log1p --l2-q-weight 2
--device cuda --l2-backfill-device cuda --l2-backfill-batch-size 512 --l3-pre-tensorize --tensorize-workers 8
--dataloader-workers 0 --dataloader-pin-memory --dataloader-persistent-workers True --dataloader-prefetch-factor 4
--backfill-world-chunk 256 --batch-log-every 50 --l3-batch-size 256 --l3-epochs 13 --l3-lr 5e-5 --agent-name Greedy
"""


@pytest.fixture(scope="module")
def place(collect, tmp_path_factory):
    """A folder with records of a tournament and a first training run."""
    folder = tmp_path_factory.mktemp("league")
    collect(folder / "records", competitors=("GreedyStd", "RandomStd"), configs=4, steps=5, csv=False)
    assert train(config(folder, phases=("l2", "acceptance"))) == 0
    return folder


def config(folder, **changes):
    values = {
        "data_dir": folder / "records",
        "dataset_dir": folder / "dataset",
        "output_dir": folder / "training_runs" / "first",
        "log_dir": folder / "diagnose_logs",
        "agent_name": "Greedy",
        "split_ratios": (0.5, 0.25, 0.25),
        "num_workers": 1,
        "horizon": 12,
        "l2_epochs": 2,
        "l2_batch_size": 64,
        "acceptance_epochs": 1,
        "l3_batch_size": 256,
        "backfill_folds": 2,
        "eval_max_rows": 500,
    }
    return TrainRunConfig(**(values | changes))


def test_every_documented_option_is_known():
    parsed = from_command_line(TrainRunConfig, DOCUMENTED.split(), program="lita train")
    assert parsed.dataloader_persistent_workers is True
    assert parsed.l2_q_transform == "log1p"
    assert parsed.l3_pre_tensorize
    assert TrainRunConfig().agent_name == "PenguinAgent"


def test_the_log_has_the_documented_lines_and_the_record_knows_it(place):
    content = TrainingRecord.read(place / "training_runs" / "first").content
    text = Path(content["log"]).read_text()
    assert "L2: train=4, val=2, test=2\n" in text
    assert "\nEpoch 2/2 | Loss " in text
    assert "| MSE " in text
    assert "L2/val loss " in text
    assert content["finished"]
    assert content["weights"] == ["weights/l2.npz", "weights/acceptance.npz"]
    assert load_layers(place / "training_runs" / "first" / "weights").goal is not None


def test_every_network_stands_beside_its_baselines(place):
    found = TrainingRecord.read(place / "training_runs" / "first").content["evaluation"]["test"]
    assert set(found["l2"]["quantity"]) == {"network", "linear", "persistence", "mean"}
    assert set(found["l2"]["price"]) == {"network", "linear", "persistence", "mean", "spot"}
    assert set(found["acceptance"]["scores"]) == {"network", "linear", "base rate"}
    assert "sell 3" in found["l2"]["quantity"]["network"]


def test_a_second_stage_goes_on_with_another_rate_and_other_settings_are_refused(place):
    run = place / "training_runs" / "first"
    before = curves(run, "l2_bc")
    assert train(config(place, phases=("l2",), l2_epochs=3, l2_lr=1e-4)) == 0
    assert curves(run, "l2_bc")[:2] == before
    stages = TrainingRecord.read(run).content["phases"]["l2_bc"]["stages"]
    assert [(stage["from"], stage["to"], stage["lr"]) for stage in stages] == [(1, 2, 1e-3), (3, 3, 1e-4)]
    with pytest.raises(UserFacingError, match="l2_q_weight"):
        train(config(place, l2_q_weight=3.0))


def test_an_unfinished_run_is_found_by_its_options(place, monkeypatch):
    monkeypatch.chdir(place)
    run = place / "training_runs" / "first"
    record = TrainingRecord.read(run)
    told = json.loads((run / "run.json").read_text())["config"]
    same = TrainRunConfig(**(told | {"output_dir": None, "phases": tuple(told["phases"])}))
    assert new_run(same) != Path("training_runs/first")
    record.content["finished"] = False
    record.write()
    assert new_run(same) == Path("training_runs/first")
    record.content["finished"] = True
    record.write()


def test_a_phase_without_what_it_builds_on_says_what_to_do(place):
    with pytest.raises(UserFacingError, match="--l2-path"):
        train(config(place, phases=("l3",), output_dir=place / "training_runs" / "alone"))


def test_errors_of_l2_in_raw_units(place):
    found = l2_error(L2ErrorConfig(output_dir=place / "training_runs" / "first", split="val"))
    assert found["Q"]["count"] > found["P"]["count"] > 0
    assert 0 < found["Q"]["mae"] <= found["Q"]["rmse"]
    with pytest.raises(UserFacingError, match=r"no world_split\.json"):
        l2_error(L2ErrorConfig(output_dir=place))


def test_the_script_prints_the_documented_measures(place):
    words = ["--output-dir", place / "training_runs" / "first", "--split", "test", "--batch-size", "1024"]
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "eval_l2_val_error.py", *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("test Q: MAE ")
    assert "mean_rel_err" in done.stdout.splitlines()[1]


def test_the_record_is_listed_shown_and_compared(place, capsys):
    run = place / "training_runs" / "first"
    assert "| first | finished | l2_bc 3" in list_runs(place / "training_runs")
    shown = show_run(run)
    for part in ("## Data", "## l2_bc", "| 1–2 | 0.001 |", "### L2 quantity", "| persistence |", "`l2_q_transform`"):
        assert part in shown
    assert "| L2 price mae |" in compare_runs([run, run])
    page = as_html(shown, [run])
    assert page.count("<svg") >= 2
    assert "l2_bc: loss by epoch" in page
    assert "calibration of acceptance" in page
    options = runs_command.Config(action="show", runs=(Path("first"),), folder=place / "training_runs")
    assert runs_command.run(options) == 0
    assert capsys.readouterr().out.startswith("# first")
    with pytest.raises(UserFacingError, match="Compare takes two"):
        runs_command.run(runs_command.Config(action="compare"))

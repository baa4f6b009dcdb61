"""lita train, lita runs and the error script on the records of a real, tiny tournament."""

from __future__ import annotations

import json
import logging
from contextlib import nullcontext
from pathlib import Path

import pytest

from apexrl.configuration import from_command_line
from apexrl.runs.errors import UserFacingError
from apexrl.runs.logs import log_to_file
from lita.training import RunsConfig, runs
from litaagent_std.hrl_xf.training import launch
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
def league_folder(collect, tmp_path_factory):
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


def test_the_log_has_the_documented_lines_and_the_record_knows_it(league_folder):
    content = TrainingRecord.read(league_folder / "training_runs" / "first").content
    text = Path(content["logs"][-1]).read_text()
    assert "L2: train=4, val=2, test=2\n" in text
    assert "\nEpoch 2/2 | Loss " in text
    assert "| MSE " in text
    assert "L2/val loss " in text
    assert content["finished"]
    assert content["weights"] == ["weights/l2.npz", "weights/acceptance.npz"]
    assert load_layers(league_folder / "training_runs" / "first" / "weights").goal is not None


def test_every_network_stands_beside_its_baselines(league_folder):
    errors = TrainingRecord.read(league_folder / "training_runs" / "first").content["evaluation"]["test"]
    assert set(errors["l2"]["quantity"]) == {"network", "heuristic", "linear", "persistence", "mean"}
    assert set(errors["l2"]["price"]) == {"network", "heuristic", "linear", "persistence", "mean", "spot"}
    assert set(errors["acceptance"]["scores"]) == {"network", "linear", "base rate"}
    assert "sell 3" in errors["l2"]["quantity"]["network"]


def test_a_second_stage_goes_on_with_another_rate_and_other_settings_are_refused(league_folder):
    run = league_folder / "training_runs" / "first"
    before = curves(run, "l2_bc")
    assert train(config(league_folder, phases=("l2",), l2_epochs=3, l2_lr=1e-4)) == 0
    assert curves(run, "l2_bc")[:2] == before
    stages = TrainingRecord.read(run).content["phases"]["l2_bc"]["stages"]
    assert [(stage["from"], stage["to"], stage["lr"]) for stage in stages] == [(1, 2, 1e-3), (3, 3, 1e-4)]
    with pytest.raises(UserFacingError, match="l2_q_weight"):
        train(config(league_folder, l2_q_weight=3.0))


def test_an_unfinished_run_is_found_by_its_options(league_folder, monkeypatch):
    monkeypatch.chdir(league_folder)
    run = league_folder / "training_runs" / "first"
    record = TrainingRecord.read(run)
    run_config = json.loads((run / "run.json").read_text())["config"]
    same = TrainRunConfig(**(run_config | {"output_dir": None, "phases": tuple(run_config["phases"])}))
    assert new_run(same) != Path("training_runs/first")
    record.content["finished"] = False
    record.write()
    assert new_run(same) == Path("training_runs/first")
    record.content["finished"] = True
    record.write()


def test_a_phase_without_what_it_builds_on_says_what_to_do(league_folder):
    with pytest.raises(UserFacingError, match="--l2-path"):
        train(config(league_folder, phases=("l3",), output_dir=league_folder / "training_runs" / "alone"))


def test_errors_of_l2_in_raw_units(league_folder):
    errors = l2_error(L2ErrorConfig(output_dir=league_folder / "training_runs" / "first", split="val"))
    assert errors["Q"]["count"] > errors["P"]["count"] > 0
    assert 0 < errors["Q"]["mae"] <= errors["Q"]["rmse"]
    with pytest.raises(UserFacingError, match=r"no world_split\.json"):
        l2_error(L2ErrorConfig(output_dir=league_folder))


def test_the_script_prints_the_documented_measures(league_folder, warm_python):
    words = ["--output-dir", league_folder / "training_runs" / "first", "--split", "test", "--batch-size", "1024"]
    done = warm_python.run("python", ROOT / "scripts" / "eval_l2_val_error.py", *words, folder=league_folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("test Q: MAE ")
    assert "mean_rel_err" in done.stdout.splitlines()[1]


def test_the_record_is_listed_shown_and_compared(league_folder, capsys):
    run = league_folder / "training_runs" / "first"
    assert "| first | finished | l2_bc 3" in list_runs(league_folder / "training_runs")
    shown = show_run(run)
    for part in ("## Data", "## l2_bc", "| 1–2 | 0.001 |", "### L2 quantity", "| persistence |", "`l2_q_transform`"):
        assert part in shown
    assert "| L2 price mae |" in compare_runs([run, run])
    page = as_html(shown, [run])
    assert page.count("<svg") >= 2
    assert "l2_bc: loss by epoch" in page
    assert "calibration of acceptance" in page
    options = RunsConfig(action="show", runs=(Path("first"),), folder=league_folder / "training_runs")
    assert runs(options) == 0
    assert capsys.readouterr().out.startswith("# first")
    with pytest.raises(UserFacingError, match="Compare takes two"):
        runs(RunsConfig(action="compare"))


def test_a_start_without_input_leaves_the_folder_for_the_corrected_command(league_folder, capsys):
    run, first = league_folder / "training_runs" / "corrected", league_folder / "training_runs" / "first"
    for wrong, message in (
        ({"data_dir": league_folder / "nowhere"}, "there are no records"),
        ({"split_ratios": (0.5, 0.5, 0.5)}, "sum to 1.5"),
        ({"horizon": 2}, "--horizon 2 is too short"),
        ({"phases": ("l3",), "l2_path": league_folder / "nowhere.pt"}, "there are no weights"),
        ({"phases": ("l3",), "l2_path": first / "acceptance.pt"}, "of kind 'acceptance'. 'l2' is needed"),
    ):
        with pytest.raises(UserFacingError, match=message):
            train(config(league_folder, **({"output_dir": run, "phases": ("l2",)} | wrong)))
    assert "Error" not in capsys.readouterr().err
    assert train(config(league_folder, output_dir=run, phases=("l2",), l2_epochs=1)) == 0
    listed = list_runs(league_folder / "training_runs")
    content = TrainingRecord.read(run).content
    best = content["phases"]["l2_bc"]["best_losses"]["val/loss"]
    assert (
        f"| corrected | finished | l2_bc 1 | cpu | {content['dataset']['digest'][:12]} | l2_bc {best:.4f} |" in listed
    )
    assert content["dataset"]["configurations"] == {"train": 2, "val": 1, "test": 1}


@pytest.mark.parametrize("in_session", [True, False])
def test_a_warning_is_shown_once(tmp_path, capsys, monkeypatch, in_session):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # those of pytest
    with log_to_file(tmp_path / "run.log") if in_session else nullcontext(), launch._log_file(tmp_path, "run"):
        launch.logger.warning("careful")
        launch.logger.info("as usual")
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("careful") == printed.out.count("as usual") == 1


def test_a_run_without_phases_is_answered_by_what_shows_it(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UserFacingError, match=f"lita report {tmp_path}"):
        show_run(tmp_path)
    with pytest.raises(UserFacingError, match="lita runs list"):
        show_run(tmp_path / "nowhere")


def test_the_list_is_of_the_folder_that_is_named_and_holds_no_tournaments(tmp_path, capsys):
    record = tmp_path / "elsewhere" / "tournament" / "records"
    record.mkdir(parents=True)
    (record / "manifest.json").write_text("{}")
    (record.parent / "run.json").write_text("{}")
    assert runs(RunsConfig(action="list", runs=(tmp_path / "elsewhere",))) == 0
    assert capsys.readouterr().out == f"no training runs under {tmp_path / 'elsewhere'}\n"

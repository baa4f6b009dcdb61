"""Errors of a trained L2 in raw units: the command behind ``scripts/eval_l2_val_error.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from apexrl.algorithms.devices import resolve_device
from apexrl.configuration import configuration
from apexrl.runs.errors import UserFacingError
from apexrl.runs.reading import reading
from apexrl.runs.run_dir import RunRecord
from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions, Split
from litaagent_std.hrl_xf.data_pipeline.split import SPLIT_NAME, WorldSplit
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.training.evaluation.l2 import goal_error
from litaagent_std.hrl_xf.training.learner import load_state, read_weights_file

__all__ = ["L2ErrorConfig", "l2_error", "run"]

_WEIGHTS = "l2_bc.pt"


class _NoRunError(UserFacingError):
    """The folder does not hold what is needed."""


@configuration
class L2ErrorConfig:
    """Errors of L2's goals in raw units on a split: MAE, RMSE, mean target, mean relative error of Q and P.

    Sides that the factory does not trade (`x_role`) do not count.
    """

    output_dir: Path
    """A training run; it must hold world_split.json and l2_bc.pt."""

    split: Split = "val"
    """Split to evaluate on: train, val or test."""

    data_dir: Path | None = None
    """Records. Default: those that the run was trained on."""

    dataset_dir: Path | None = None
    """An existing dataset, instead of records. Default: the run's."""

    agent_name: str | None = None
    """Agent whose days are evaluated. Default: the one that the run learned from."""

    num_workers: Annotated[int, Field(ge=0)] = 0
    """Worlds to parse at once; 0 is as many as there are CPUs."""

    batch_size: Annotated[int, Field(ge=1)] = 1024
    """Rows per batch."""

    device: str = "cpu"
    """Device."""


def l2_error(config: L2ErrorConfig) -> dict[str, dict[str, float]]:
    """Return the errors of Q and P.

    Raises:
        UserFacingError: If the run lacks a file, or its split is not the dataset's.
    """
    folder = config.output_dir
    for name in (SPLIT_NAME, _WEIGHTS):
        if not (folder / name).exists():
            raise _NoRunError(
                f"{str(folder)!r} has no {name}", "a run with a trained L2 has one", "name the folder of such a run"
            )
    data = _dataset(config)
    run_split = WorldSplit.read(folder / SPLIT_NAME)
    if config.agent_name is None and run_split.config_seeds[config.split] != data.split.config_seeds[config.split]:
        raise _NoRunError(
            f"the split {config.split!r} of {str(folder)!r} is not that of the dataset {str(data.folder)!r}",
            "errors are measured on the configurations that the run held out",
            "name the records that the run was trained on",
        )
    with reading(folder / _WEIGHTS):
        sizes = read_weights_file(folder / _WEIGHTS)["meta"]["sizes"]
        model = HorizonManagerPPO(league_horizon=data.league_horizon, **sizes)
    load_state(folder / _WEIGHTS, model)
    return goal_error(model, data, config.split, config.batch_size, resolve_device(config.device))


def _dataset(config: L2ErrorConfig) -> OfflineData:
    run_config = RunRecord.read(config.output_dir).config
    if config.dataset_dir is not None and config.data_dir is None:
        return OfflineData.open(config.dataset_dir)
    ratios = run_config["split_ratios"]
    assert isinstance(ratios, list)  # the run's configuration was validated
    shares = [float(str(ratio)) for ratio in ratios]
    options = DatasetOptions(
        agent_name=str(run_config["agent_name"]) if config.agent_name is None else config.agent_name,
        labels="deals" if run_config["labels"] == "deals" else "intention",
        decisions="reasons" if run_config.get("decisions") == "reasons" else "taken",
        split_seed=int(str(run_config["split_seed"])),
        ratios=(shares[0], shares[1], shares[2]),
    )
    folder = config.dataset_dir
    if (
        folder is None
        and config.data_dir is None
        and config.agent_name is None
        and run_config["dataset_dir"] is not None
    ):
        folder = Path(str(run_config["dataset_dir"]))
    records = Path(str(run_config["data_dir"])) if config.data_dir is None else config.data_dir
    return build_dataset(records, folder, options, num_workers=config.num_workers or None)


def run(config: L2ErrorConfig) -> int:
    """Print the errors, a line for Q and one for P."""
    for name, measures in l2_error(config).items():
        errors = f"MAE {measures['mae']:.4f}, RMSE {measures['rmse']:.4f}, mean_target {measures['mean_target']:.4f}"
        print(
            f"{config.split} {name}: {errors}, mean_rel_err {measures['mean_rel_err']:.4f} ({measures['count']} values)"
        )
    return 0

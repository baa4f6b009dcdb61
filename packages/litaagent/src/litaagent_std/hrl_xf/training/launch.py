"""A training run from records: dataset, phases, evaluation, weights for play, record (``lita train``)."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import torch

from apexrl.collect.env_group import one_thread
from apexrl.configuration import from_mapping, to_mapping
from apexrl.runs.digest import differences
from apexrl.runs.errors import ConfigurationError, UserFacingError
from apexrl.runs.run_dir import RunRecord
from apexrl.runs.session import Session
from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.hrl_xf.data_pipeline.split import SPLIT_NAME
from litaagent_std.hrl_xf.epochs import Interrupted
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training.config import PHASES, RUN_FREE, TrainRunConfig
from litaagent_std.hrl_xf.training.evaluation.run import evaluate_all
from litaagent_std.hrl_xf.training.learner import load_state
from litaagent_std.hrl_xf.training.partners.phase import train_partner_types
from litaagent_std.hrl_xf.training.record import RECORD_NAME, RUNS_FOLDER, TrainingRecord
from litaagent_std.hrl_xf.training.trainer import HRLXFTrainer
from litaagent_std.policy.digest import check_l1_digest
from litaagent_std.policy.features import check_digest

__all__ = ["new_run", "train"]

logger = logging.getLogger("litaagent_std.hrl_xf")


class _WrongWeightsError(UserFacingError):
    """Weights that a phase needs are missing or do not match the dataset."""


def new_run(config: TrainRunConfig) -> Path:
    """Return the folder of a run: the given one, the newest unfinished one of the same options, or a new one."""
    if config.output_dir is not None:
        return config.output_dir
    options = to_mapping(config)
    for record in sorted(RUNS_FOLDER.glob(f"*/{RECORD_NAME}"), key=lambda path: path.stat().st_mtime, reverse=True):
        folder = record.parent
        unfinished = not TrainingRecord.read(folder).content["finished"] and (folder / "run.json").exists()
        if unfinished and not differences(RunRecord.read(folder).config, options, ("output_dir",)):
            return folder
    name = "_".join(phase for phase in (*PHASES, "partner") if phase in config.phases)
    return RUNS_FOLDER / f"{name}_{datetime.now(UTC):%Y%m%d_%H%M%S}"


def train(config: TrainRunConfig) -> int:
    """Start or resume a training run; the return value is the exit status."""
    folder = new_run(config)
    config = replace(config, output_dir=folder)
    with (
        one_thread(),
        Session(folder, config=to_mapping(config), seed=config.seed, free=RUN_FREE) as session,
        _log_file(config.log_dir, folder.name) as log,
    ):
        record = TrainingRecord.open(folder)
        record.log(str(log))
        try:
            if set(config.phases) & set(PHASES):
                _train_layers(config, record, session)
            if "partner" in config.phases:
                train_partner_types(config, record, session)
        except Interrupted as interruption:
            logger.info("%s", interruption)
    return session.exit_code


def _train_layers(config: TrainRunConfig, record: TrainingRecord, session: Session) -> None:
    """Build the dataset and train the phases of the layers."""
    trainer = _trainer(config)
    trainer.session, trainer.record = session, record
    data = build_dataset(
        config.data_dir,
        config.dataset_dir,
        DatasetOptions(
            agent_name=config.agent_name,
            labels=config.labels,
            decisions=config.decisions,
            split_seed=config.split_seed,
            ratios=config.split_ratios,
        ),
        num_workers=config.num_workers or None,
        on_progress=logger.info,
    )
    if config.horizon < data.league_horizon:
        raise ConfigurationError(
            f"--horizon {config.horizon} is too short",
            f"these records reach {data.league_horizon} days ahead",
            f"use --horizon {data.league_horizon} or more",
        )
    _phases(config, trainer, data)


def _phases(config: TrainRunConfig, trainer: HRLXFTrainer, data: OfflineData) -> None:
    """Train the requested phases in the order of the layers, loading the weights they need."""
    done: list[str] = []
    steps: dict[str, Callable[[OfflineData], None]] = {
        "l2": trainer.train_l2,
        "l3": trainer.train_l3,
        "acceptance": trainer.train_acceptance,
        "awr": trainer.train_phase1_awr,
        "l4": trainer.train_l4_distill,
    }
    for phase in PHASES:
        if phase in config.phases:
            _prepare(config, trainer, data, phase, done)
            # after the given weights are read: a start without its input writes nothing, and the folder stays free
            shutil.copyfile(data.folder / SPLIT_NAME, trainer.folder / SPLIT_NAME)
            steps[phase](data)
            done.append(phase)
    _load_earlier(trainer, data, config, done)
    tables = evaluate_all(trainer, data, max_rows=config.eval_max_rows)
    trainer.record.evaluation(tables)
    tag = "awr" if "awr" in done else "bc"
    files = trainer.save_all(tag)
    logger.info("weights for play: %s", ", ".join(str(file) for file in files))


_FINAL: Final = {"l3": ("l3_awr.pt", "l3_bc.pt"), "acceptance": ("acceptance.pt",), "l4": ("l4_distill.pt",)}


def _load_earlier(trainer: HRLXFTrainer, data: OfflineData, config: TrainRunConfig, done: list[str]) -> None:
    """Load what the run trained before it was resumed, so that it is evaluated and exported again; drop the rest.

    L3 and L4 read the goals of L2, so those trained before a change of L2 are not valid.
    """
    for name, files in _FINAL.items():
        if name in done or (name == "l3" and "awr" in done):
            continue
        paths = [trainer.folder / file for file in files if (trainer.folder / file).exists()]
        if paths and (name == "acceptance" or "l2" not in config.phases):
            _load(paths[0], getattr(trainer, name), data, f"--phases {name}")
        else:
            setattr(trainer, name, None)  # an untrained network is neither evaluated nor exported


def _prepare(config: TrainRunConfig, trainer: HRLXFTrainer, data: OfflineData, phase: str, done: list[str]) -> None:
    """Load the weights of earlier phases that were not trained in this call."""
    folder = trainer.folder
    if phase != "l2" and "l2" not in done:
        meta = _load(config.l2_path or folder / "l2_bc.pt", trainer.l2, data, "--l2-path")
        # the goals of L3 come from folds that are trained as this L2 was
        trainer.l2_cfg = from_mapping(TrainRunConfig, to_mapping(config) | dict(meta["options"]), "the weights of L2")
        done.append("l2")
    if phase == "awr" and "l3" not in done:
        _load(config.l3_path or folder / "l3_bc.pt", trainer.l3, data, "--l3-path")


def _load(path: Path, model: Any, data: OfflineData, option: str) -> dict[str, Any]:  # noqa: ANN401 - a network
    """Load weights into a network and return their metadata."""
    if not path.exists():
        raise _WrongWeightsError(
            f"there are no weights {str(path)!r}",
            "a phase needs the weights of the phases before it",
            f"train them in the same run (--phases), or name them with {option}",
        )
    meta = load_state(path, model)
    try:
        check_digest(meta["features_digest"], f"weights {str(path)!r}")
        check_l1_digest(meta["l1_digest"], f"weights {str(path)!r}")
    except ValueError as error:
        raise _WrongWeightsError(str(error)) from error
    if meta["horizon"] != data.league_horizon:
        raise _WrongWeightsError(
            f"weights {str(path)!r} were trained for the horizon {meta['horizon']}",
            f"the dataset's is {data.league_horizon}, and the buckets of goals come from it",
            "train them on this dataset",
        )
    return meta


def _trainer(config: TrainRunConfig) -> HRLXFTrainer:
    """Build the networks of a run; their initial weights depend on its seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        l2 = HorizonManagerPPO(config.horizon)
        l3 = TemporalDecisionTransformer(config.horizon, mode=config.l3_mode, ensemble=config.l3_ensemble)
        acceptance = AcceptanceModel(config.horizon)
        l4 = ThreadCoordinator()
    return HRLXFTrainer(l2, l3, l4, config, acceptance)


def _is_not_on_standard_error(record: logging.LogRecord) -> bool:
    """Return False for warnings that a session already shows (:func:`apexrl.runs.logs.log_to_file`)."""
    return record.levelno < logging.WARNING or logging.lastResort not in logging.getLogger().handlers


@contextmanager
def _log_file(folder: Path, name: str) -> Iterator[Path]:
    """Write the log to ``folder/name_TIME.out`` and to the terminal."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}_{datetime.now(UTC):%Y%m%d_%H%M%S}.out"
    handlers: list[logging.Handler] = [logging.FileHandler(path, encoding="utf-8"), logging.StreamHandler(sys.stdout)]
    handlers[1].addFilter(_is_not_on_standard_error)
    before = logger.level
    logger.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
    try:
        yield path
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(before)

"""The trainer of the four layers: phases in order, each resumable, recorded in one file."""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from apexrl.algorithms.devices import resolve_device
from apexrl.algorithms.losses import awr_weights, standardize
from apexrl.collect.env_group import one_thread
from apexrl.runs.digest import to_plain
from apexrl.runs.session import Files, Session
from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS, Split
from litaagent_std.hrl_xf.data_pipeline.samples import MacroDataset, MicroDataset
from litaagent_std.hrl_xf.l2_manager import DayEncoder, HorizonManagerPPO, ReturnCritic
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training.backfill import SHIPPED, Backfill, fold_rows, folds_of, predict_days
from litaagent_std.hrl_xf.training.config import TrainConfig
from litaagent_std.hrl_xf.training.data import DataError, GoalHat, TrainingData, rows_of
from litaagent_std.hrl_xf.training.export import export_layer
from litaagent_std.hrl_xf.training.l4_rounds import rounds_of
from litaagent_std.hrl_xf.training.learner import PhaseResult, PhaseSpec, measure, run_phase, save_weights
from litaagent_std.hrl_xf.training.losses import effective_sample_size
from litaagent_std.hrl_xf.training.phases import Specs, seeded, weights_meta
from litaagent_std.hrl_xf.training.record import TrainingRecord
from litaagent_std.policy.arrays import Floats32, Ints

__all__ = ["HRLXFTrainer", "weights_digest"]

logger = logging.getLogger(__name__)

_HELD_OUT: Final[tuple[Split, ...]] = ("val", "test")
Samples = MacroDataset | MicroDataset | OfflineData | TrainingData


def weights_digest(model: nn.Module) -> str:
    """Return the SHA-256 of a network's arrays."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


class HRLXFTrainer:
    """Trainer of L2, L3, the acceptance model and L4 from a dataset.

    Every phase writes its files into ``cfg.output_dir`` and resumes from the newest checkpoint there.

    Args:
        l2: The network of L2; its goals are inputs of L3.
        l3: The network of L3, or None.
        l4: The network of L4, or None.
        cfg: The options.
        acceptance: The acceptance model, or None.

    Attributes:
        record: The training record; ``training.json`` in the folder.
        session: The session of the run. Default: one for each call, which locks the folder; a signal then raises
            `Interrupted` at the next batch, and the same calls resume.
        l2_cfg: The options that L2 was trained with, and the L2 of every fold is; default: ``cfg``.
    """

    def __init__(
        self,
        l2: HorizonManagerPPO,
        l3: TemporalDecisionTransformer | None,
        l4: ThreadCoordinator | None,
        cfg: TrainConfig,
        acceptance: AcceptanceModel | None = None,
    ) -> None:
        self.l2, self.l3, self.l4, self.acceptance, self.cfg = l2, l3, l4, acceptance, cfg
        self.folder = Path("training_runs/hrl_xf") if cfg.output_dir is None else Path(cfg.output_dir)
        self.device = resolve_device(cfg.device)
        self.record = TrainingRecord.open(self.folder)
        self.session: Session | None = None
        self.l2_cfg = cfg
        self._goal_hat: GoalHat | None = None
        self._data: TrainingData | None = None

    def train_phase0_bc(self, macro: Samples, micro: Samples | None = None) -> None:
        """Clone behaviour: L2, the backfilled goals, L3.

        Args:
            macro: Days: a dataset, or the first result of `load_tournament_data`.
            micro: Decisions of the same dataset; may be left out.
        """
        data = self._attach(macro, micro)
        with self._open_session():
            self.train_l2(data)
            if self.l3 is not None:
                self.train_l3(data)

    def train_phase1_awr(self, macro: Samples, micro: Samples | None = None) -> None:
        """Train L3 by advantage-weighted regression, starting from its present weights."""
        data = self._attach(macro, micro)
        model = _needed(self.l3, "l3")
        weights, figures = self._awr_weights(data)
        logger.info(
            "AWR: effective sample size %.3f, critic explains %.3f", figures["ess"], figures["critic_explained"]
        )
        spec = self._specs(data).l3(model, self.goal_hat(data), weights)
        result = self._run(spec)
        self._finish(spec, result, self._evaluate_l3(spec, data, "L3/AWR"), **figures)

    def train_l2(self, data: TrainingData) -> None:
        """Train L2 on the recorded goals."""
        data = self._attach(data)
        spec = self._specs(data).l2("l2_bc", self.folder, self.l2, rows_of(data.macro, "train"))
        self._log_split("L2", data)
        result = self._run(spec)
        evaluation: dict[str, float] = {}
        for split in _HELD_OUT:
            rows = rows_of(data.macro, split)
            if len(rows):
                parts = measure(spec, rows)
                evaluation |= {f"{split}/loss": parts["loss"], f"{split}/mse": parts["mse"]}
                logger.info("L2/%s loss %.4f / mse %.4f", split, parts["loss"], parts["mse"])
        self._finish(spec, result, evaluation)

    def train_l3(self, data: TrainingData) -> None:
        """Train L3 on the recorded decisions, with goals predicted out of fold."""
        data = self._attach(data)
        self._log_split("L3", data)
        spec = self._specs(data).l3(_needed(self.l3, "l3"), self.goal_hat(data))
        result = self._run(spec)
        self._finish(spec, result, self._evaluate_l3(spec, data, "L3"))

    def train_acceptance(self, data: TrainingData) -> None:
        """Train the acceptance model on counter-offers that were answered."""
        data = self._attach(data)
        spec = self._specs(data).acceptance(_needed(self.acceptance, "acceptance"))
        self._finish(spec, self._run(spec), {})

    def train_l4_distill(self, macro: Samples, micro: Samples | None = None) -> None:
        """Distil L4 from the exact coordinator, on recorded rounds."""
        data = self._attach(macro, micro)
        model = _needed(self.l4, "l4")
        goal_hat = self.goal_hat(data)
        train = rounds_of(data, goal_hat, "train", self.cfg.l4_max_rounds)
        held_out = rounds_of(data, goal_hat, "val", max(1, self.cfg.l4_max_rounds // 10))
        if not len(train):
            raise DataError(
                "no round has an offer on the table", "L4 weighs offers against each other", "collect more worlds"
            )
        spec = self._specs(data).l4(model, train, held_out)
        self._finish(spec, self._run(spec), {}, rounds=len(train))

    def goal_hat(self, data: TrainingData) -> GoalHat:
        """Return the goals of all days, out of fold in training; computed once, and kept on disk."""
        data = self._attach(data)
        if self._goal_hat is not None:
            return self._goal_hat
        folds = folds_of(data.macro, self.cfg.backfill_folds, self.cfg.seed)
        with self._open_session() as session:
            models = {fold: self._fold_model(fold, folds, data) for fold in np.unique(folds).tolist()}
            backfill = Backfill(
                data=data,
                folder=self.folder / "backfill",
                folds=folds,
                model_of=models.__getitem__,
                made_from={str(fold): weights_digest(model) for fold, model in models.items()},
                world_chunk=self.cfg.backfill_world_chunk,
                batch_size=self.cfg.l2_backfill_batch_size,
                device=resolve_device(self.cfg.l2_backfill_device),
                session=session,
            )
            self._goal_hat = backfill.run()
        return self._goal_hat

    def save_all(self, tag: str) -> list[Path]:
        """Write ``l2_{tag}.pt`` and so on, and the weights for play into ``weights/``.

        Returns:
            The files for play.
        """
        data = self._data
        if data is None:
            raise DataError(
                "nothing was trained", "weights name the dataset they were made with", "train a phase first"
            )
        written = []
        for model in (self.l2, self.l3, self.acceptance, self.l4):
            if model is not None:
                name = model.kind if model.kind == "acceptance" else f"{model.kind}_{tag}"
                meta = weights_meta(model, data, self.l2_cfg)
                save_weights(self.folder / f"{name}.pt", model, meta)
                path = self.folder / "weights" / f"{model.kind}.npz"
                export_layer(model, path, meta)
                written.append(path)
        self.record.weights(written, finished=True)
        return written

    def _attach(self, macro: Samples, micro: Samples | None = None) -> TrainingData:
        """Return the dataset of the given samples, and set the networks' buckets from it."""
        data: Any = getattr(macro, "data", macro)
        if micro is not None and getattr(micro, "data", micro) is not data:
            raise DataError(
                "macro and micro samples come from two datasets",
                "decisions refer to the days of their own dataset",
                "take both from the same call of load_tournament_data",
            )
        if self._data is not data:
            self._data, self._goal_hat = data, None
            for model in (self.l2, self.l3, self.acceptance):
                _fit_horizon(model, data.league_horizon)
            self.record.data(data, to_plain(asdict(self.cfg)))
        attached: TrainingData = data
        return attached

    def _fold_model(self, fold: int, folds: Ints, data: TrainingData) -> nn.Module:
        if fold == SHIPPED:
            return self.l2
        sizes, league_horizon = self.l2.sizes, data.league_horizon
        model = seeded(self.cfg.seed + 1 + fold, lambda: HorizonManagerPPO(league_horizon=league_horizon, **sizes))
        rows, _ = fold_rows(folds, fold)
        logger.info("backfill: L2 without fold %d, %d days", fold, len(rows))
        specs = Specs(self.l2_cfg, self.folder, self.device, data)
        self._run(specs.l2(f"l2_fold{fold}", self.folder / "backfill", model, rows))
        return model

    def _awr_weights(self, data: TrainingData) -> tuple[Floats32, dict[str, float]]:
        """Return weights of all decisions from out-of-fold advantages, and figures on them."""
        folds = folds_of(data.macro, self.cfg.backfill_folds, self.cfg.seed)
        value = np.zeros(len(folds), np.float32)  # [N] V of each day, out of fold in training
        for fold in np.unique(folds).tolist():
            critic = seeded(self.cfg.seed + 101 + fold, lambda: ReturnCritic(self.l2.horizon, data.league_horizon))
            rows, predicted = fold_rows(folds, fold)
            name = "critic" if fold == SHIPPED else f"critic_fold{fold}"
            self._run(self._specs(data).critic(name, critic, rows))
            size, device = self.cfg.l2_backfill_batch_size, self.device
            if len(predicted):
                value[predicted] = predict_days(critic, data, predicted, size, device)[0]
        # A = R − V(s), standardised over the training decisions; w = min(exp(A / β), w_max), scaled to mean 1
        day_row = np.asarray(data.micro["day_row"])
        advantage = np.asarray(data.micro["return_norm"]) - value[day_row]
        train = rows_of(data.micro, "train")
        weights = np.ones(len(day_row), np.float32)
        scaled = standardize(torch.from_numpy(advantage[train]))
        raw = awr_weights(scaled, self.cfg.awr_temperature, self.cfg.awr_max_weight)
        weights[train] = (raw / raw.mean()).numpy()
        returns = np.asarray(data.macro["return_norm"])[folds >= 0]
        explained = 1.0 - float(np.var(returns - value[folds >= 0]) / max(float(np.var(returns)), 1e-12))
        return weights, {"ess": effective_sample_size(raw), "critic_explained": explained}

    def _evaluate_l3(self, spec: PhaseSpec, data: TrainingData, name: str) -> dict[str, float]:
        evaluation: dict[str, float] = {}
        for split in _HELD_OUT:
            rows = rows_of(data.micro, split)
            if len(rows):
                parts = measure(spec, rows)
                evaluation |= {f"{split}/{part}": value for part, value in parts.items()}
                logger.info("%s/%s loss %.4f", name, split, parts["loss"])
        return evaluation

    def _finish(self, spec: PhaseSpec, result: PhaseResult, evaluation: Mapping[str, float], **more: float) -> None:
        self.record.phase(spec, result, {**evaluation, **more}, weights_digest(spec.model))

    @contextmanager
    def _open_session(self) -> Iterator[Session]:
        """Hold the session of the run: the one around it, or one of this call."""
        if self.session is not None:
            yield self.session
            return
        with (
            one_thread(),
            _printed_lines(),
            Session(
                self.folder, files=Files(has_log=False), config=self.cfg, seed=self.cfg.seed, existing="adopt"
            ) as self.session,
        ):
            try:
                yield self.session
            finally:
                self.session = None

    def _run(self, spec: PhaseSpec) -> PhaseResult:
        with self._open_session() as session:
            return run_phase(spec, session)

    def _specs(self, data: TrainingData) -> Specs:
        return Specs(self.cfg, self.folder, self.device, data)

    def _log_split(self, layer: str, data: TrainingData) -> None:
        """Log the number of worlds of each split."""
        world = data.macro["world"]
        counts = {split: len(np.unique(world[rows_of(data.macro, split)])) for split in SPLITS}
        logger.info("%s: %s", layer, ", ".join(f"{split}={count}" for split, count in counts.items()))


@contextmanager
def _printed_lines() -> Iterator[None]:
    """Print the line of every epoch, as ``lita train`` does, unless the program has set up logging itself."""
    package = logging.getLogger("litaagent_std.hrl_xf")
    if package.hasHandlers():
        yield
        return
    handler, level = logging.StreamHandler(sys.stdout), package.level
    package.addHandler(handler)
    package.setLevel(logging.INFO)
    try:
        yield
    finally:
        package.removeHandler(handler)
        package.setLevel(level)


def _needed(model: Any, name: str) -> Any:  # noqa: ANN401 - any of the networks
    if model is None:
        raise DataError(f"there is no network {name}", "a phase trains one", f"give the trainer {name}=…")
    return model


def _fit_horizon(model: nn.Module | None, league_horizon: int) -> None:
    for module in () if model is None else model.modules():
        if isinstance(module, DayEncoder):
            module.set_league_horizon(league_horizon)

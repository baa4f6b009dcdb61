"""From options, dataset and network to the `PhaseSpec` of each phase."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from apexrl.runs.signals import StopRequest
from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO, ReturnCritic
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training import phases
from litaagent_std.hrl_xf.training.config import TrainConfig, stage_lr
from litaagent_std.hrl_xf.training.cql import GoalValue
from litaagent_std.hrl_xf.training.data import (
    Batches,
    GoalHat,
    MacroRows,
    MicroRows,
    Rows,
    TrainingData,
    rows_of,
)
from litaagent_std.hrl_xf.training.l4_rounds import Rounds
from litaagent_std.hrl_xf.training.loop import PhaseSpec

__all__ = ["Layer", "Specs", "answered", "seeded", "weights_meta"]

Layer = HorizonManagerPPO | TemporalDecisionTransformer | AcceptanceModel | ThreadCoordinator | ReturnCritic
M = TypeVar("M", bound=nn.Module)


def weights_meta(model: Layer, data: TrainingData) -> dict[str, Any]:
    """Return what weights say of themselves: what they are, and what they were made with."""
    return {
        "kind": model.kind,
        "sizes": dict(model.sizes),
        "horizon": data.league_horizon,
        "features_digest": data.features_digest,
        "l1_digest": data.l1_digest,
        "dataset": data.digest,
        "normalisation": "quantities / lines, leads / horizon, prices relative to trading prices in tenths",
        "made_by": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


@dataclass(frozen=True)
class Specs:
    """Builds the specifications of a run's phases.

    Attributes:
        cfg: The options.
        folder: The run's folder.
        device: Where to train.
        data: The dataset.
        stop: Set by a signal.
    """

    cfg: TrainConfig
    folder: Path
    device: torch.device
    data: TrainingData
    stop: StopRequest | None

    def l2(self, name: str, folder: Path, model: HorizonManagerPPO, rows: Rows) -> PhaseSpec:
        """L2, or one of its folds."""
        cfg, data = self.cfg, self.data
        critic = None
        if cfg.l2_objective == "cql":
            critic = seeded(cfg.seed, lambda: GoalValue(model.horizon, data.league_horizon))
        return self._spec(
            name,
            folder,
            model,
            losses=phases.l2_phase(model, cfg, critic),
            loader=self._loader(MacroRows(data)),
            rows=rows,
            val_rows=rows_of(data.macro, "val"),
            epochs=cfg.l2_epochs,
            batch_size=cfg.l2_batch_size,
            lr=lambda epoch: stage_lr(cfg.l2_lr, cfg.l2_lr_stages, epoch),
            line=phases.l2_line,
            companions={} if critic is None else {"critic": critic},
            resume_path=cfg.l2_bc_resume_path if name == "l2_bc" else None,
        )

    def l3(
        self,
        model: TemporalDecisionTransformer,
        goal_hat: GoalHat,
        weights: NDArray[np.float32] | None = None,
    ) -> PhaseSpec:
        """L3: cloning, or with weights advantage-weighted regression."""
        cfg, awr = self.cfg, weights is not None
        first, stages = (cfg.awr_lr, ()) if awr else (cfg.l3_lr, cfg.l3_lr_stages)
        return self._spec(
            "l3_awr" if awr else "l3_bc",
            self.folder,
            model,
            losses=phases.l3_phase(model, cfg),
            loader=self._loader(self._decisions(goal_hat, weights)),
            rows=rows_of(self.data.micro, "train"),
            val_rows=rows_of(self.data.micro, "val"),
            epochs=cfg.awr_epochs if awr else cfg.l3_epochs,
            batch_size=cfg.l3_batch_size,
            lr=lambda epoch: stage_lr(first, stages, epoch),
            line=phases.l3_line,
            resume_path=cfg.l3_awr_resume_path if awr else cfg.l3_bc_resume_path,
        )

    def acceptance(self, model: AcceptanceModel) -> PhaseSpec:
        """Return the acceptance model, which knows nothing of our goals."""
        return self._spec(
            "acceptance",
            self.folder,
            model,
            losses=phases.acceptance_phase(model),
            loader=self._loader(self._decisions(None, None)),
            rows=answered(self.data, rows_of(self.data.micro, "train")),
            val_rows=answered(self.data, rows_of(self.data.micro, "val")),
            epochs=self.cfg.acceptance_epochs,
            batch_size=self.cfg.l3_batch_size,
            lr=lambda epoch: self.cfg.acceptance_lr,
            line=phases.acceptance_line,
        )

    def critic(self, name: str, critic: ReturnCritic, rows: Rows) -> PhaseSpec:
        """Return the critic of advantage-weighted regression, or one of its folds."""
        return self._spec(
            name,
            self.folder / "critic",
            critic,
            losses=phases.critic_phase(critic),
            loader=self._loader(MacroRows(self.data)),
            rows=rows,
            val_rows=rows_of(self.data.macro, "val"),
            epochs=self.cfg.critic_epochs,
            batch_size=self.cfg.l2_batch_size,
            lr=lambda epoch: self.cfg.l2_lr,
            line=phases.loss_line,
        )

    def l4(self, model: ThreadCoordinator, train: Rounds, held_out: Rounds) -> PhaseSpec:
        """Return the distillation of L4."""
        count = len(train)
        return self._spec(
            "l4_distill",
            self.folder,
            model,
            losses=phases.l4_phase(model),
            loader=_RoundLoader(train, held_out),
            rows=np.arange(count),
            val_rows=np.arange(count, count + len(held_out)),
            epochs=self.cfg.l4_epochs,
            batch_size=self.cfg.l4_batch_size,
            lr=lambda epoch: self.cfg.l4_lr,
            line=phases.l4_line,
        )

    def _decisions(self, goal_hat: GoalHat | None, weights: NDArray[np.float32] | None) -> MicroRows:
        cfg = self.cfg
        return MicroRows(
            self.data,
            goal_hat,
            weights=weights,
            pre_tensorize=cfg.l3_pre_tensorize,
            workers=cfg.tensorize_workers,
        )

    def _spec(self, name: str, folder: Path, model: Layer, **more: Any) -> PhaseSpec:  # noqa: ANN401 - its fields
        cfg = self.cfg
        return PhaseSpec(
            name=name,
            folder=folder,
            model=model,
            seed=cfg.seed,
            device=self.device,
            weight_decay=cfg.weight_decay,
            max_grad_norm=cfg.max_grad_norm,
            save_every=cfg.save_every,
            patience=cfg.patience,
            batch_log_every=cfg.batch_log_every,
            meta=weights_meta(model, self.data),
            label="" if name in ("l2_bc", "l3_bc") else f"{name} ",
            stop=self.stop,
            **more,
        )

    def _loader(self, dataset: MacroRows | MicroRows) -> Batches:
        cfg = self.cfg
        return Batches(
            dataset,
            workers=cfg.dataloader_workers,
            pin_memory=cfg.dataloader_pin_memory,
            persistent_workers=cfg.dataloader_persistent_workers,
            prefetch_factor=cfg.dataloader_prefetch_factor,
        )


class _RoundLoader:
    """Rounds of training and, numbered after them, of validation."""

    def __init__(self, train: Rounds, held_out: Rounds) -> None:
        self._train, self._held_out = train, held_out

    def __call__(self, batches: list[Rows], device: torch.device) -> Iterator[dict[str, Tensor]]:
        for rows in batches:
            first = len(self._train)
            source, numbers = (self._train, rows) if rows[0] < first else (self._held_out, rows - first)
            yield {name: tensor.to(device) for name, tensor in source.tensors(numbers).items()}


def answered(data: TrainingData, rows: Rows) -> Rows:
    """Return the decisions that made a counter-offer to which the partner answered."""
    kept: Rows = rows[(np.asarray(data.micro["op"][rows]) == 1) & (np.asarray(data.micro["taken"][rows]) >= 0)]
    return kept


def seeded(seed: int, make: Callable[[], M]) -> M:
    """Build a network whose first weights depend on a seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()

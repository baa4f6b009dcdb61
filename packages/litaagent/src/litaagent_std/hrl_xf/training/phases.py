"""The phases of training: loss, log line, data and options of each, as a `PhaseSpec` for its learner."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from apexrl.runs.digest import to_plain
from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO, ReturnCritic
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training.config import L2_OPTIONS, TrainConfig, stage_lr
from litaagent_std.hrl_xf.training.data import Batches, GoalHat, MacroRows, MicroRows, TrainingData, rows_of
from litaagent_std.hrl_xf.training.l4_rounds import Rounds
from litaagent_std.hrl_xf.training.learner import Losses, PhaseSpec
from litaagent_std.hrl_xf.training.losses import GoalValue, cql_losses, goal_errors, goal_inputs, l3_losses
from litaagent_std.policy.arrays import Floats32, Ints

__all__ = ["Layer", "Specs", "answered", "seeded", "weights_meta"]

Line = Callable[[Mapping[str, float]], str]


def _l2_line(parts: Mapping[str, float]) -> str:
    """Return the log line of L2, such as ``Loss 0.6901 | MSE 0.6848``."""
    return f"Loss {parts['loss']:.4f} | MSE {parts['mse']:.4f}"


def _l3_line(parts: Mapping[str, float]) -> str:
    """Return the log line of L3, such as ``Loss 0.0357 (q=0.0001, p=0.0023, t=0.0001) op_acc=0.989``."""
    amounts = ", ".join(f"{name}={parts[name]:.4f}" for name in ("q", "p", "t"))
    return f"Loss {parts['loss']:.4f} ({amounts}) op_acc={parts['op_acc']:.3f}"


def _acceptance_line(parts: Mapping[str, float]) -> str:
    """Return loss and Brier score."""
    return f"Loss {parts['loss']:.4f} | Brier {parts['brier']:.4f}"


def _l4_line(parts: Mapping[str, float]) -> str:
    """Return loss and agreement with the exact coordinator."""
    return f"Loss {parts['loss']:.4f} | agreement {parts['agreement']:.3f}"


def _loss_line(parts: Mapping[str, float]) -> str:
    """Return the loss alone."""
    return f"Loss {parts['loss']:.4f}"


def _l2_losses(model: HorizonManagerPPO, cfg: TrainConfig, critic: GoalValue | None) -> Losses:
    """Return the loss of L2: cloning of goals; with a critic, also minus the value of the network's own goals."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        batch = MacroRows.batch(tensors)
        predicted = model(batch.day)
        target = (batch.goal_q, batch.goal_p, batch.goal_p_mask)
        days = model.encoder.days(batch.day.mask)
        loss, parts = goal_errors(predicted, target, batch.day, days, cfg.l2_q_transform, cfg.l2_q_weight)
        if critic is None:
            return loss, parts
        own = goal_inputs(predicted[0], predicted[1], batch.day)
        recorded = goal_inputs(batch.goal_q, batch.goal_p * batch.goal_p_mask, batch.day)
        critic_loss, value = cql_losses(critic, batch.day, own, recorded, batch.returns, cfg.cql_alpha)
        return loss - cfg.cql_weight * value + critic_loss, parts | {"critic": critic_loss, "value": value}

    return losses


def _critic_losses(critic: ReturnCritic) -> Losses:
    """Return the loss of the critic: regression of the normalised return-to-go."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        batch = MacroRows.batch(tensors)
        return (critic(batch.day) - batch.returns).square().mean(), {}

    return losses


def _l3_losses(model: TemporalDecisionTransformer, cfg: TrainConfig) -> Losses:
    """Return the loss of L3: cloning of decisions, each with its weight."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        batch = MicroRows.batch(tensors)
        return l3_losses(
            model(batch.thread),
            batch,
            bounds_weight=cfg.l3_bounds_weight,
            variance_weight=cfg.l3_variance_weight,
        )

    return losses


def _acceptance_losses(model: AcceptanceModel) -> Losses:
    """Return the loss of the acceptance model: cross-entropy of the partner's response to our counter-offers."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        batch = MicroRows.batch(tensors)
        logits = model(batch.thread, batch.offer_inputs.unsqueeze(1)).squeeze(1)
        taken = batch.taken.to(logits.dtype)
        loss = functional.binary_cross_entropy_with_logits(logits, taken)
        return loss, {"brier": (torch.sigmoid(logits) - taken).square().mean()}

    return losses


def _l4_losses(model: ThreadCoordinator) -> Losses:
    """Return the loss of L4: cross-entropy of what the exact coordinator accepts."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        mask, taken = tensors["mask"], tensors["taken"]
        logits = model(tensors["threads"], mask)
        each = functional.binary_cross_entropy_with_logits(logits, taken, reduction="none")
        offers = mask & (taken != 0.5)  # a thread without an offer is neutral
        right = ((logits > 0) == (taken > 0.5)).to(logits.dtype)
        return (each * mask).sum() / mask.sum(), {"agreement": (right * offers).sum() / offers.sum().clamp(min=1)}

    return losses


Layer = HorizonManagerPPO | TemporalDecisionTransformer | AcceptanceModel | ThreadCoordinator | ReturnCritic
M = TypeVar("M", bound=nn.Module)


def weights_meta(model: Layer, data: TrainingData, cfg: TrainConfig) -> dict[str, Any]:
    """Return the metadata of weights: kind, sizes, and what they were made with."""
    options = {name: to_plain(getattr(cfg, name)) for name in L2_OPTIONS} if model.kind == "l2" else {}
    return {
        "options": options,
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
    """Builder of the specifications of a run's phases.

    Attributes:
        cfg: The options.
        folder: The run's folder.
        device: Device of training.
        data: The dataset.
    """

    cfg: TrainConfig
    folder: Path
    device: torch.device
    data: TrainingData

    def l2(self, name: str, folder: Path, model: HorizonManagerPPO, rows: Ints) -> PhaseSpec:
        """Return the phase of L2, or of the L2 of a fold."""
        cfg, data = self.cfg, self.data
        critic = None
        if cfg.l2_objective == "cql":
            critic = seeded(cfg.seed, lambda: GoalValue(model.horizon, data.league_horizon))
        return self._spec(
            name,
            folder,
            model,
            losses=_l2_losses(model, cfg, critic),
            loader=self._loader(MacroRows(data)),
            rows=rows,
            val_rows=rows_of(data.macro, "val"),
            epochs=cfg.l2_epochs,
            batch_size=cfg.l2_batch_size,
            lr=lambda epoch: stage_lr(cfg.l2_lr, cfg.l2_lr_stages, epoch),
            line=_l2_line,
            companions={} if critic is None else {"critic": critic},
            resume_path=cfg.l2_bc_resume_path if name == "l2_bc" else None,
        )

    def l3(
        self,
        model: TemporalDecisionTransformer,
        goal_hat: GoalHat,
        weights: Floats32 | None = None,
    ) -> PhaseSpec:
        """Return the phase of L3: cloning, or with weights advantage-weighted regression."""
        cfg, awr = self.cfg, weights is not None
        first, stages = (cfg.awr_lr, ()) if awr else (cfg.l3_lr, cfg.l3_lr_stages)
        return self._spec(
            "l3_awr" if awr else "l3_bc",
            self.folder,
            model,
            losses=_l3_losses(model, cfg),
            loader=self._loader(self._decisions(goal_hat, weights)),
            rows=rows_of(self.data.micro, "train"),
            val_rows=rows_of(self.data.micro, "val"),
            epochs=cfg.awr_epochs if awr else cfg.l3_epochs,
            batch_size=cfg.l3_batch_size,
            lr=lambda epoch: stage_lr(first, stages, epoch),
            line=_l3_line,
            resume_path=cfg.l3_awr_resume_path if awr else cfg.l3_bc_resume_path,
        )

    def acceptance(self, model: AcceptanceModel) -> PhaseSpec:
        """Return the phase of the acceptance model, which does not see our goals."""
        return self._spec(
            "acceptance",
            self.folder,
            model,
            losses=_acceptance_losses(model),
            loader=self._loader(self._decisions(None, None)),
            rows=answered(self.data, rows_of(self.data.micro, "train")),
            val_rows=answered(self.data, rows_of(self.data.micro, "val")),
            epochs=self.cfg.acceptance_epochs,
            batch_size=self.cfg.l3_batch_size,
            lr=lambda epoch: self.cfg.acceptance_lr,
            line=_acceptance_line,
        )

    def critic(self, name: str, critic: ReturnCritic, rows: Ints) -> PhaseSpec:
        """Return the phase of the critic of advantage-weighted regression, or of the critic of a fold."""
        return self._spec(
            name,
            self.folder / "critic",
            critic,
            losses=_critic_losses(critic),
            loader=self._loader(MacroRows(self.data)),
            rows=rows,
            val_rows=rows_of(self.data.macro, "val"),
            epochs=self.cfg.critic_epochs,
            batch_size=self.cfg.l2_batch_size,
            lr=lambda epoch: self.cfg.l2_lr,
            line=_loss_line,
        )

    def l4(self, model: ThreadCoordinator, train: Rounds, held_out: Rounds) -> PhaseSpec:
        """Return the phase of L4: distillation of the exact coordinator."""
        count = len(train)
        return self._spec(
            "l4_distill",
            self.folder,
            model,
            losses=_l4_losses(model),
            loader=_RoundLoader(train, held_out),
            rows=np.arange(count),
            val_rows=np.arange(count, count + len(held_out)),
            epochs=self.cfg.l4_epochs,
            batch_size=self.cfg.l4_batch_size,
            lr=lambda epoch: self.cfg.l4_lr,
            line=_l4_line,
        )

    def _decisions(self, goal_hat: GoalHat | None, weights: Floats32 | None) -> MicroRows:
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
            meta=weights_meta(model, self.data, cfg),
            label="" if name in ("l2_bc", "l3_bc") else f"{name} ",
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
    """Loader of rounds: those of training and, numbered after them, those of validation."""

    def __init__(self, train: Rounds, held_out: Rounds) -> None:
        self._train, self._held_out = train, held_out

    def __call__(self, batches: list[Ints], device: torch.device) -> Iterator[dict[str, Tensor]]:
        for rows in batches:
            first = len(self._train)
            source, numbers = (self._train, rows) if rows[0] < first else (self._held_out, rows - first)
            yield {name: tensor.to(device) for name, tensor in source.tensors(numbers).items()}


def answered(data: TrainingData, rows: Ints) -> Ints:
    """Return the rows whose counter-offer the partner answered."""
    kept: Ints = rows[(np.asarray(data.micro["op"][rows]) == 1) & (np.asarray(data.micro["taken"][rows]) >= 0)]
    return kept


def seeded(seed: int, make: Callable[[], M]) -> M:
    """Build a network whose initial weights depend on a seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()

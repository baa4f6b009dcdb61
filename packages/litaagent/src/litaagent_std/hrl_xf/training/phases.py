"""What each phase minimises and what it logs: from a network and the options to a `PhaseSpec`'s losses and line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO, ReturnCritic
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training.config import TrainConfig
from litaagent_std.hrl_xf.training.cql import GoalValue, cql_losses, goal_inputs
from litaagent_std.hrl_xf.training.data import MacroRows, MicroRows
from litaagent_std.hrl_xf.training.loop import Losses
from litaagent_std.hrl_xf.training.losses import goal_errors, l3_losses

__all__ = [
    "acceptance_line",
    "acceptance_phase",
    "critic_phase",
    "l2_line",
    "l2_phase",
    "l3_line",
    "l3_phase",
    "l4_line",
    "l4_phase",
    "loss_line",
]

Line = Callable[[Mapping[str, float]], str]


def l2_line(parts: Mapping[str, float]) -> str:
    """Return the line of document 002: ``Loss 0.6901 | MSE 0.6848``."""
    return f"Loss {parts['loss']:.4f} | MSE {parts['mse']:.4f}"


def l3_line(parts: Mapping[str, float]) -> str:
    """Return the line of document 002: ``Loss 0.0357 (q=0.0001, p=0.0023, t=0.0001) op_acc=0.989``."""
    amounts = ", ".join(f"{name}={parts[name]:.4f}" for name in ("q", "p", "t"))
    return f"Loss {parts['loss']:.4f} ({amounts}) op_acc={parts['op_acc']:.3f}"


def acceptance_line(parts: Mapping[str, float]) -> str:
    """Loss and Brier score."""
    return f"Loss {parts['loss']:.4f} | Brier {parts['brier']:.4f}"


def l4_line(parts: Mapping[str, float]) -> str:
    """Loss and agreement with the exact coordinator."""
    return f"Loss {parts['loss']:.4f} | agreement {parts['agreement']:.3f}"


def loss_line(parts: Mapping[str, float]) -> str:
    """Return the loss alone."""
    return f"Loss {parts['loss']:.4f}"


def l2_phase(model: HorizonManagerPPO, cfg: TrainConfig, critic: GoalValue | None) -> Losses:
    """Cloning of goals; with a critic also the lean towards what it values."""

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


def critic_phase(critic: ReturnCritic) -> Losses:
    """Regression of the normalised return-to-go."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        batch = MacroRows.batch(tensors)
        return (critic(batch.day) - batch.returns).square().mean(), {}

    return losses


def l3_phase(model: TemporalDecisionTransformer, cfg: TrainConfig) -> Losses:
    """Cloning of decisions, weighted where the rows are."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        batch = MicroRows.batch(tensors)
        return l3_losses(
            model(batch.thread),
            batch,
            bounds_weight=cfg.l3_bounds_weight,
            variance_weight=cfg.l3_variance_weight,
        )

    return losses


def acceptance_phase(model: AcceptanceModel) -> Losses:
    """Cross-entropy of the partner's answer to our counter-offers; the rows are those that were answered."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        batch = MicroRows.batch(tensors)
        logits = model(batch.thread, batch.offer_inputs.unsqueeze(1)).squeeze(1)
        taken = batch.taken.to(logits.dtype)
        loss = functional.binary_cross_entropy_with_logits(logits, taken)
        return loss, {"brier": (torch.sigmoid(logits) - taken).square().mean()}

    return losses


def l4_phase(model: ThreadCoordinator) -> Losses:
    """Cross-entropy of what the exact coordinator takes."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        mask, taken = tensors["mask"], tensors["taken"]
        logits = model(tensors["threads"], mask)
        each = functional.binary_cross_entropy_with_logits(logits, taken, reduction="none")
        right = ((logits > 0) == (taken > 0.5)).to(logits.dtype)
        return (each * mask).sum() / mask.sum(), {"agreement": (right * mask).sum() / mask.sum()}

    return losses

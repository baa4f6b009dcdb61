"""All networks of a run beside their baselines, as plain tables."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from litaagent_std.hrl_xf.data_pipeline.options import Split
from litaagent_std.hrl_xf.training.data import TrainingData, rows_of
from litaagent_std.hrl_xf.training.evaluation.l2 import evaluate_l2
from litaagent_std.hrl_xf.training.evaluation.l3 import evaluate_acceptance, evaluate_l3
from litaagent_std.hrl_xf.training.evaluation.tables import summary_lines
from litaagent_std.hrl_xf.training.l4_rounds import rounds_of

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.training.trainer import HRLXFTrainer

__all__ = ["evaluate_all"]

logger = logging.getLogger(__name__)


def evaluate_all(trainer: HRLXFTrainer, data: TrainingData, *, max_rows: int = 100_000) -> dict[str, Any]:
    """Evaluate every network of the trainer on val and test, where these have rows.

    Args:
        trainer: The networks.
        data: The dataset.
        max_rows: Maximal number of decisions per split.
    """
    tables: dict[str, Any] = {}
    splits: tuple[Split, ...] = ("val", "test")
    for split in splits:
        if not len(rows_of(data.macro, split)):
            continue
        measures: dict[str, Any] = {"l2": evaluate_l2(trainer.l2.cpu(), data, split, torch.device("cpu"))}
        if trainer.l3 is not None:
            measures["l3"] = evaluate_l3(trainer.l3, data, trainer.goal_hat(data), split, max_rows=max_rows)
        if trainer.acceptance is not None:
            measures["acceptance"] = evaluate_acceptance(trainer.acceptance, data, split, max_rows=max_rows)
        if trainer.l4 is not None:
            measures["l4"] = _evaluate_l4(trainer, data, split)
        tables[split] = measures
        for line in summary_lines(measures):
            logger.info("Eval %s | %s", split, line)
    return tables


@torch.no_grad()
def _evaluate_l4(trainer: HRLXFTrainer, data: TrainingData, split: Split) -> dict[str, float]:
    """Return the agreement with the exact coordinator, by thread and by round, beside accepting nothing."""
    assert trainer.l4 is not None  # checked by the caller
    rounds = rounds_of(data, trainer.goal_hat(data), split, 5000)
    if not len(rounds):
        return {"rounds": 0.0}
    tensors = rounds.tensors(np.arange(len(rounds)))
    accepted = (trainer.l4.cpu()(tensors["threads"], tensors["mask"]) > 0).numpy()
    offers = rounds.mask & (rounds.taken != 0.5)  # a thread without an offer is neutral
    right = (accepted == (rounds.taken > 0.5)) | ~offers
    nothing = (rounds.taken <= 0.5) | ~offers
    count = offers.sum()
    return {
        "rounds": float(len(rounds)),
        "agreement": float((right & offers).sum() / count),
        "rounds_alike": float(right.all(1).mean()),
        "agreement_of_nothing": float((nothing & offers).sum() / count),
        "rounds_alike_of_nothing": float(nothing.all(1).mean()),
    }

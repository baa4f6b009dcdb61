"""Evaluation of L3 and of the acceptance model beside baselines.

Baselines of operations: the majority of training, our heuristic agent, and one logistic regression per operation. Of
counter-offers: the last row of the history copied, our own last offer copied, our heuristic agent, the median of
training,
and a ridge regression. Of acceptance: the base rate, and a logistic regression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.data_pipeline.options import Split
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer, last_own
from litaagent_std.hrl_xf.training.data import (
    Batches,
    GoalHat,
    MicroBatch,
    MicroRows,
    TrainingData,
    batch_order,
    rows_of,
)
from litaagent_std.hrl_xf.training.evaluation.linear import (
    fit_logistic,
    fit_ridge,
    predict_linear,
    predict_logistic,
)
from litaagent_std.hrl_xf.training.evaluation.metrics import auc, brier, calibration, errors, macro_f1
from litaagent_std.hrl_xf.training.phases import answered
from litaagent_std.policy.arrays import Array, Ints
from litaagent_std.policy.features import THREAD_FEATURES
from litaagent_std.policy.networks.inputs import PRICE_UNIT, thread_columns

__all__ = ["evaluate_acceptance", "evaluate_l3", "thinned"]

_BATCH = 2048
_CHUNK = 4096


def thinned(rows: Ints, max_rows: int) -> Ints:
    """Return at most ``max_rows`` rows, evenly over all of them."""
    return rows[:: max(1, -(-len(rows) // max_rows))]


@dataclass(frozen=True)
class _Decisions:
    """Batches of decisions with the same inputs as the networks', for numpy."""

    data: TrainingData
    goal_hat: GoalHat | None

    def batches(self, rows: Ints, size: int = _CHUNK) -> Iterator[MicroBatch]:
        loader = Batches(MicroRows(self.data, self.goal_hat))
        for tensors in loader(batch_order(rows, size, 0, "", None), torch.device("cpu")):
            yield MicroRows.batch(tensors)

    @staticmethod
    def inputs(batch: MicroBatch) -> Array:
        """Return the inputs of a linear model: everything but the older history."""
        thread = batch.thread
        own, there = last_own(thread.history, thread.history_mask)
        last, any_ = last_row(thread.history, thread.history_mask)
        parts: list[Tensor] = [
            thread.day.x_static,
            thread.day.x_role,
            thread.ranges,
            thread.x_thread,
            thread.x_partner,
            thread.goal,
            thread.baseline,
            own,
            there.unsqueeze(1),
            last,
            any_.unsqueeze(1),
        ]
        return torch.cat(parts, dim=1).double().numpy()


def last_row(history: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the last row of each history ``[M, 6]``, zeros if there is none, and whether there is one ``[M]``."""
    index = mask.sum(1) - 1
    there = (index >= 0).to(history.dtype)
    return history[torch.arange(len(history)), index.clamp(min=0)] * there.unsqueeze(1), there


def _raw(row: Tensor, there: Tensor, batch: MicroBatch, horizon: int, fallback: Array) -> Array:
    """Return an offer of the history in raw units ``[M, 3]``, the fallback where there is none."""
    quantity, lead, price = (row[:, column] for column in thread_columns().history_amounts)
    trading_price = batch.thread.day.price.gather(1, _side(batch).unsqueeze(1)).squeeze(1)
    offer = torch.stack(
        [quantity * batch.thread.day.lines, lead * horizon, trading_price * (1.0 + PRICE_UNIT * price)], dim=1
    )
    return np.where(there.numpy()[:, None] > 0, np.rint(offer.numpy()), fallback)


def _side(batch: MicroBatch) -> Tensor:
    """Return 0 where we buy, 1 where we sell ``[M]``."""
    return (batch.thread.x_thread[:, THREAD_FEATURES["x_thread"].index("selling")] > 0.5).long()


def evaluate_l3(
    model: TemporalDecisionTransformer,
    data: TrainingData,
    goal_hat: GoalHat,
    split: Split,
    *,
    max_rows: int = 100_000,
) -> dict[str, Any]:
    """Return measures of operations and counter-offers, by name of the predictor.

    Args:
        model: The network.
        data: The dataset.
        goal_hat: Goals of all days.
        split: Split to evaluate on.
        max_rows: Maximal number of rows to evaluate and to fit linear models on, evenly over the split.
    """
    source = _Decisions(data, goal_hat)
    train = thinned(rows_of(data.micro, "train"), max_rows)
    fitted = _fit(source, train)
    # predictions of every predictor, batch by batch
    ops: dict[str, list[Array]] = {}
    offers: dict[str, list[Array]] = {}
    truth: list[tuple[Array, Array]] = []
    model.cpu().eval()
    for batch in source.batches(thinned(data.micro.rows(split), max_rows), _BATCH):
        truth.append((batch.op.numpy(), batch.offer.numpy()))
        decided = model.decide(batch.thread, batch.low, batch.high)
        _append(ops, {"network": decided.op.numpy()} | fitted.operations(batch))
        _append(offers, {"network": decided.offer.numpy()} | fitted.offers(batch, data.league_horizon))
    op = np.concatenate([ops_ for ops_, _ in truth])
    offer = np.concatenate([offers_ for _, offers_ in truth])
    made = op == 1  # rows with a counter-offer
    return {
        "operation": {name: _operation_scores(np.concatenate(parts), op) for name, parts in ops.items()},
        "offer": {name: _offer_scores(np.concatenate(parts)[made], offer[made]) for name, parts in offers.items()},
        "rows": len(op),
    }


def _append(predictions: dict[str, list[Array]], parts: dict[str, Array]) -> None:
    for name, values in parts.items():
        predictions.setdefault(name, []).append(values)


def _operation_scores(predicted: Array, op: Array) -> dict[str, float]:
    return {"accuracy": float((predicted == op).mean()), "macro_f1": macro_f1(predicted, op, 3)}


def _offer_scores(predicted: Array, offer: Array) -> dict[str, float]:
    measures = {f"{name}_mae": errors(predicted[:, i], offer[:, i])["mae"] for i, name in enumerate(("q", "t", "p"))}
    right = np.rint(predicted[:, 1]) == offer[:, 1]
    return measures | {"t_accuracy": float(right.mean()) if len(offer) else 0.0}


@dataclass(frozen=True)
class _Fitted:
    """Baselines, fitted to the training rows."""

    majority: int
    median: Array
    op: Array
    amounts: Array

    def operations(self, batch: MicroBatch) -> dict[str, Array]:
        answers = batch.thread.x_thread[:, thread_columns().answers].numpy() > 0.5
        chance = predict_logistic(self.op, _Decisions.inputs(batch))
        chance[~answers, 0] = -1.0  # nothing to accept
        return {
            "linear": chance.argmax(1),
            "heuristic": batch.thread.baseline[:, :3].argmax(1).numpy(),
            "majority": np.full(len(answers), self.majority),
        }

    def offers(self, batch: MicroBatch, horizon: int) -> dict[str, Array]:
        thread = batch.thread
        # [M, 3] the median of training, in units of lines and price bands
        middle = np.broadcast_to(self.median, (len(batch.op), 3))
        width = (batch.high[:, 2] - batch.low[:, 2]).double().numpy()
        middle = _legal_offers(middle, batch, width)
        base = thread.baseline.double().numpy()
        # [M, 3] L1's counter-offer in raw units
        l1 = np.stack([base[:, 3] * thread.day.lines.numpy(), base[:, 4] * horizon, base[:, 5]], axis=1)
        l1[:, 2] = batch.low[:, 2].numpy() + l1[:, 2] * width
        linear = predict_linear(self.amounts, _Decisions.inputs(batch))
        own = last_own(thread.history, thread.history_mask)
        last = last_row(thread.history, thread.history_mask)
        return {
            "linear": _legal_offers(linear, batch, width),
            "copy last row": _raw(*last, batch, horizon, middle),
            "copy own last": _raw(*own, batch, horizon, middle),
            "heuristic": np.where(base[:, 6:7] > 0, np.rint(l1), middle),
            "median": middle,
        }


def _legal_offers(amounts: Array, batch: MicroBatch, width: Array) -> Array:
    """Return quantity / lines, lead and position in the price band as a legal offer ``[M, 3]``."""
    low, high = batch.low.double().numpy(), batch.high.double().numpy()
    lines = batch.thread.day.lines.double().numpy()
    offer = np.stack([amounts[:, 0] * lines, amounts[:, 1], low[:, 2] + amounts[:, 2] * width], axis=1)
    return np.asarray(np.clip(np.rint(offer), low, high))


def _targets(batch: MicroBatch) -> Array:
    """Return counter-offers as quantity / lines, lead, position in the price band ``[M, 3]``."""
    offer, low, high = (t.double().numpy() for t in (batch.offer, batch.low, batch.high))
    position = (offer[:, 2] - low[:, 2]) / np.maximum(high[:, 2] - low[:, 2], 1.0)
    return np.stack([offer[:, 0] / batch.thread.day.lines.double().numpy(), offer[:, 1], position], axis=1)


def _fit(source: _Decisions, rows: Ints) -> _Fitted:
    op = np.asarray(source.data.micro["op"][rows])
    made = rows[op == 1]

    def operations() -> Iterator[tuple[Array, Array, Array]]:
        for batch in source.batches(rows):
            y = np.eye(3)[batch.op.numpy()]
            yield source.inputs(batch), y, np.ones_like(y)

    def amounts() -> Iterator[tuple[Array, Array, Array]]:
        for batch in source.batches(made):
            y = _targets(batch)
            yield source.inputs(batch), y, np.ones_like(y)

    seen = np.concatenate([_targets(batch) for batch in source.batches(thinned(made, 20_000))])
    median = np.median(seen, axis=0)
    return _Fitted(int(np.bincount(op, minlength=3).argmax()), median, fit_logistic(operations), fit_ridge(amounts))


def evaluate_acceptance(
    model: AcceptanceModel, data: TrainingData, split: Split, *, max_rows: int = 100_000
) -> dict[str, Any]:
    """Return AUC and Brier score of the model and of baselines, and the model's calibration."""
    source = _Decisions(data, None)
    train = thinned(answered(data, rows_of(data.micro, "train")), max_rows)
    rate = float((np.asarray(data.micro["taken"][train]) == 1).mean())
    coefficients = fit_logistic(_answers(source, train))
    chances: dict[str, list[Array]] = {}
    truth = []
    model.cpu().eval()
    with torch.no_grad():
        for batch in source.batches(thinned(answered(data, data.micro.rows(split)), max_rows), _BATCH):
            truth.append(batch.taken.numpy())
            probability = torch.sigmoid(model(batch.thread, batch.offer_inputs.unsqueeze(1)).squeeze(1)).numpy()
            linear = predict_logistic(coefficients, _offer_and_inputs(source, batch))[:, 0]
            _append(chances, {"network": probability, "linear": linear, "base rate": np.full(len(probability), rate)})
    taken = np.concatenate(truth) if truth else np.zeros(0)
    joined = {name: np.concatenate(parts) for name, parts in chances.items()}
    return {
        "scores": {n: {"auc": auc(chance, taken), "brier": brier(chance, taken)} for n, chance in joined.items()},
        "calibration": calibration(joined["network"], taken) if len(taken) else [],
        "rows": len(taken),
        "rate": float(taken.mean()) if len(taken) else 0.0,
    }


def _offer_and_inputs(source: _Decisions, batch: MicroBatch) -> Array:
    return np.concatenate([source.inputs(batch), batch.offer_inputs.double().numpy()], axis=1)


def _answers(source: _Decisions, rows: Ints) -> Callable[[], Iterator[tuple[Array, Array, Array]]]:
    def chunks() -> Iterator[tuple[Array, Array, Array]]:
        for batch in source.batches(rows):
            y = batch.taken.double().numpy()[:, None]
            yield _offer_and_inputs(source, batch), y, np.ones_like(y)

    return chunks

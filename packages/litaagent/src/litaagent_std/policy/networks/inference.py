"""Forward passes of the trained networks with numpy alone.

The networks are those of `hrl_xf` (torch); a test compares the outputs of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, Bools, Floats32, matmul_rows
from ..buckets import buckets
from .inputs import BASE_LOGIT, GOAL_CAP, MASKED, PRICE_UNIT, band_columns, base_inputs, thread_columns
from .weights import Weights, WeightsError

__all__ = [
    "AcceptanceNetwork",
    "CoordinatorNetwork",
    "DayInputs",
    "DecisionNetwork",
    "GoalNetwork",
    "ThreadInputs",
    "TypeNetwork",
    "softmax",
]


def softmax(logits: Array) -> Floats32:
    """Return probabilities over the last axis."""
    raised = np.exp(logits - np.maximum.reduce(logits, axis=-1, keepdims=True))
    return np.asarray(raised / np.add.reduce(raised, axis=-1, keepdims=True), np.float32)


def sigmoid(x: Array) -> Floats32:
    """Return 1 / (1 + e^−x) without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)), np.float32)


@dataclass(frozen=True, slots=True)
class DayInputs:
    """N days: the arrays of `DayFeatures`, lines ``[N]``, trading prices ``[N, 2]``, heuristic goals ``[N, G]``."""

    x_static: Floats32
    x_temporal: Floats32
    x_role: Floats32
    mask: Bools
    lines: Floats32
    price: Floats32
    base: Floats32


@dataclass(frozen=True, slots=True)
class ThreadInputs:
    """M threads: the arrays of `ThreadFeatures`, their days and goals, and what residuals refer to.

    Attributes:
        goal: L2's goals, ``[M, 4·B]``.
        baseline: The heuristic's decisions, ``[M, 7]``.
        log_alpha: Logarithms of α, ``[M]``.
    """

    day: DayInputs
    history: Floats32
    history_mask: Bools
    ranges: Floats32
    x_thread: Floats32
    x_partner: Floats32
    goal: Floats32
    baseline: Floats32
    log_alpha: Floats32


_HEADS = ("op", "lead", "amount")


class _Network:
    """Arrays of a network and the layers that all of them share.

    Args:
        weights: The content of a file.
        kind: The expected kind.
    """

    def __init__(self, weights: Weights, kind: str) -> None:
        if weights.kind != kind:
            raise WeightsError(f"weights {weights.source!r} are of kind {weights.kind!r}, {kind!r} is needed here")
        self.meta = weights.meta
        self.sizes: Mapping[str, Any] = weights.meta["sizes"]
        self._a = {
            name: np.ascontiguousarray(array.T) if array.ndim == 2 else array for name, array in weights.arrays.items()
        }

    def _linear(self, name: str, x: Array) -> Array:
        out: Array = self._direct(name, x) + self._a[f"{name}.bias"]
        return out

    def _direct(self, name: str, x: Array) -> Array:
        return matmul_rows(x, self._a[f"{name}.weight"])

    def _norm(self, name: str, x: Array) -> Array:
        centered = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt(np.square(centered).mean(-1, keepdims=True) + np.float32(1e-5))
        out: Array = centered / deviation * self._a[f"{name}.weight"] + self._a[f"{name}.bias"]
        return out

    def _feed_forward(self, name: str, x: Array) -> Array:
        up = _relu(self._linear(f"{name}.up", self._norm(f"{name}.norm_up", x)))
        out: Array = x + self._linear(f"{name}.down", up)
        return out


def _attention(query: Array, key: Array, value: Array, seen: Bools) -> Array:
    """Return what queries ``[…, I, heads, d]`` attend to among keys and values ``[…, J, heads, d]`` that are seen.

    Sums over J are made in order, so that what is padded at the end changes no bit: a row does not depend on its batch.

    Args:
        query: Queries.
        key: Keys.
        value: Values.
        seen: Which of the J exist, ``[…, J]``.
    """
    # [..., I, J, heads]
    scores = (query[..., :, None, :, :] * key[..., None, :, :, :]).sum(-1) * np.float32(query.shape[-1] ** -0.5)
    scores = np.where(seen[..., None, :, None], scores, np.float32(MASKED))
    raised = np.exp(scores - scores.max(-2, keepdims=True))
    weights = raised / raised.sum(-2, keepdims=True)
    out: Array = (weights[..., None] * value[..., None, :, :, :]).sum(-3)
    return out


def _relu(x: Array) -> Array:
    out: Array = np.maximum(x, np.float32(0.0))
    return out


class _DayNetwork(_Network):
    def __init__(self, weights: Weights, kind: str) -> None:
        super().__init__(weights, kind)
        self.horizon = int(self.sizes["horizon"])
        self.league_horizon = int(self.meta["horizon"])
        parts = buckets(self.league_horizon)
        self.n_buckets = len(parts)
        self._pool = np.zeros((self.horizon + 1, len(parts)), np.float32)
        for bucket, leads in enumerate(parts):
            self._pool[leads.start : leads.stop, bucket] = 1.0

    def _days(self, mask: Bools) -> Floats32:
        return np.asarray(mask.astype(np.float32) @ self._pool[: mask.shape[1]], np.float32)

    def _day_code(self, name: str, day: DayInputs, *extra: Floats32) -> tuple[Array, Floats32]:
        """Return the code, and the inputs that it is made from."""
        counts = self._days(day.mask)  # [N, B] delivery days that exist
        # [N, H + 1, R] codes of the delivery days, pooled by bucket to [N, B, R]
        rows = _relu(self._linear(f"{name}.rows", day.x_temporal)) * day.mask[:, :, None]
        pooled = np.einsum("nhr,hb->nbr", rows, self._pool[: rows.shape[1]]) / np.maximum(counts, 1.0)[:, :, None]
        share = counts / np.maximum(self._pool.sum(0), 1.0)
        parts = [day.x_static, day.x_role, pooled.reshape(len(rows), -1), share, *extra]
        joined = np.asarray(np.concatenate(parts, axis=1), np.float32)
        hidden = _relu(self._linear(f"{name}.hidden", joined))
        out: Array = hidden + _relu(self._linear(f"{name}.out", hidden))
        return out, joined


class GoalNetwork(_DayNetwork):
    """L2: goals of days; see `hrl_xf.l2_manager.HorizonManagerPPO`."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights, "l2")

    @property
    def log_std(self) -> Floats32:
        """Logarithm of the exploration's standard deviation, ``[7·B + 1]``."""
        return self._a["log_std"]

    def latents(self, day: DayInputs) -> Floats32:
        """Return the mean residuals, ``[N, 7·B + 1]``."""
        code, inputs = self._day_code("encoder", day, base_inputs(day.base, day.lines, day.price))
        rows = np.zeros((len(code), self.horizon + 1, day.x_temporal.shape[2] + 1), np.float32)
        rows[:, : day.mask.shape[1], :-1] = day.x_temporal
        rows[:, : day.mask.shape[1], -1] = day.mask
        out = self._linear("head", code) + self._direct("skip", inputs)
        out = out + self._direct("days_skip", rows.reshape(len(rows), -1))
        return np.asarray(out, np.float32)

    def decode(self, latents: Floats32, day: DayInputs) -> tuple[Floats32, Floats32]:
        """Return quantities and unit prices, each ``[N, 2, B]``, in raw units, of residuals ``[N, 7·B + 1]``."""
        count = self.n_buckets
        role, lines = day.x_role[:, :, None], day.lines[:, None, None]
        base, change = (x[:, : 6 * count].reshape(-1, 3, 2, count) for x in (day.base, latents))
        most = np.maximum(np.float32(GOAL_CAP) * self._days(day.mask)[:, None, :] * lines, base[:, 0])
        quantity = np.clip(base[:, 0] + change[:, 0] * lines, 0.0, most)
        low, high = self.bands(day)
        price = base[:, 1] + change[:, 1] * (high - low)
        price = np.minimum(np.maximum(price, np.minimum(low, base[:, 1])), np.maximum(high, base[:, 1]))
        return np.asarray(quantity * role, np.float32), np.asarray(price * role, np.float32)

    @staticmethod
    def bands(day: DayInputs) -> tuple[Floats32, Floats32]:
        """Return the ends of the legal bands of prices, each ``[N, 2, 1]``."""
        ends = (np.float32(PRICE_UNIT) * day.x_static[:, list(columns)] for columns in band_columns())
        low, high = (np.asarray(day.price * (np.float32(1.0) + end), np.float32)[:, :, None] for end in ends)
        return low, high

    def __call__(self, day: DayInputs) -> tuple[Floats32, Floats32]:
        """Return the goals, each ``[N, 2, B]``; see `decode`."""
        return self.decode(self.latents(day), day)


class _ThreadNetwork(_DayNetwork):
    def _thread_code(
        self, batch: ThreadInputs, extra: Floats32, *more: tuple[Floats32, Floats32]
    ) -> tuple[Array, Floats32]:
        """Return the code, and the context's inputs."""
        own, has_own = last_own(batch.history, batch.history_mask)
        columns = thread_columns()
        answers = batch.x_thread[:, columns.answers]
        days = ((own[:, columns.history_lead], has_own), (batch.x_thread[:, columns.offer_lead], answers), *more)
        parts = [
            self._day_code("encoder.day", batch.day)[0],
            batch.day.x_static,
            batch.day.x_role,
            batch.ranges,
            batch.x_thread,
            batch.x_partner,
            own,
            has_own[:, None],
            *(self._one_hot(lead, there) for lead, there in days),
            extra,
        ]
        inputs = np.asarray(np.concatenate(parts, axis=1), np.float32)
        context = _relu(self._linear("encoder.context", inputs))
        offers = _relu(self._linear("encoder.offers", batch.history))
        for layer in range(int(self.sizes["layers"])):
            context = self._attend(f"encoder.blocks.{layer}", context, offers, batch.history_mask)
        return self._norm("encoder.norm", context), inputs

    def _one_hot(self, lead: Floats32, there: Floats32) -> Floats32:
        index = np.clip(np.rint(lead * self.league_horizon).astype(np.int64), 0, self.horizon)
        return np.asarray(np.eye(self.horizon + 1, dtype=np.float32)[index] * there[:, None], np.float32)

    def _attend(self, name: str, context: Array, offers: Array, mask: Bools, heads: int = 2) -> Array:
        """Return the context ``[M, D]`` after attention over itself and the thread's offers ``[M, L, D]``."""
        count, width = context.shape
        normed = self._norm(f"{name}.norm", context)
        tokens = np.concatenate([normed[:, None, :], offers], axis=1)
        seen = np.concatenate([np.ones((count, 1), np.bool_), mask], axis=1)
        mixed = self._linear(f"{name}.key_value", tokens).reshape(count, -1, 2, heads, width // heads)
        query = self._linear(f"{name}.query", normed).reshape(count, 1, heads, width // heads)
        attended = _attention(query, mixed[:, :, 0], mixed[:, :, 1], seen).reshape(count, width)
        return self._feed_forward(name, context + self._linear(f"{name}.project", attended))


def last_own(history: Floats32, mask: Bools) -> tuple[Floats32, Floats32]:
    """Return our latest offer of each thread ``[M, 6]``, default: zeros, and whether there is one ``[M]``."""
    # [M] index of our latest offer, -1 if there is none
    own = mask & (history[:, :, thread_columns().mine] > 0.5)
    index = np.where(own, np.arange(history.shape[1]), -1).max(1, initial=-1)
    there = (index >= 0).astype(np.float32)
    if history.shape[1] == 0:
        return np.zeros((len(history), history.shape[2]), np.float32), there
    return np.asarray(history[np.arange(len(history)), np.maximum(index, 0)] * there[:, None], np.float32), there


class DecisionNetwork(_ThreadNetwork):
    """L3: operation and counter-offer; see `hrl_xf.l3_executor.TemporalDecisionTransformer`."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights, "l3")
        self.residual = self.sizes["mode"] == "residual"

    @property
    def log_std(self) -> Floats32:
        """Logarithm of the exploration's standard deviation of quantity and price, ``[2]``."""
        return self._a["log_std"]

    def outputs(self, batch: ThreadInputs) -> tuple[Floats32, Floats32, Floats32, Floats32]:
        """Return masked logits of the operation and the lead, and quantity and position of each member."""
        base, log_alpha = batch.baseline, batch.log_alpha[:, None]
        extra = np.concatenate([batch.goal, log_alpha, *([base] if self.residual else [])], axis=1)
        code, inputs = self._thread_code(batch, extra, *([(base[:, 4], base[:, 6])] if self.residual else []))
        op, lead, amount = (self._linear(name, code) + self._direct(f"{name}_skip", inputs) for name in _HEADS)
        change = amount.reshape(len(code), int(self.sizes["ensemble"]), 2)
        start = np.full((len(code), 2), 0.5, np.float32)
        if self.residual:
            there, weight = base[:, 6:7], np.float32(BASE_LOGIT) * self._a["base_weight"]
            start = there * base[:, [3, 5]] + (np.float32(1.0) - there) * np.float32(0.5)
            change = change * np.exp(log_alpha)[:, :, None]
            op = op + weight[0] * base[:, :3]
            lead = lead + weight[1] * self._one_hot(base[:, 4], base[:, 6])
        amount = np.asarray(start[:, None, :] + change, np.float32)
        return *self.masked(batch, op, lead), amount[..., 0], amount[..., 1]

    def masked(self, batch: ThreadInputs, op: Array, lead: Array) -> tuple[Floats32, Floats32]:
        """Return logits of operations and leads, those that are not legal masked."""
        answers = batch.x_thread[:, thread_columns().answers] > 0.5
        legal = np.stack([answers, np.ones_like(answers), np.ones_like(answers)], axis=1)
        op = np.where(legal, op, np.float32(MASKED))
        lead = np.where(self._legal_leads(batch.ranges), lead, np.float32(MASKED))
        return np.asarray(op, np.float32), np.asarray(lead, np.float32)

    def _legal_leads(self, ranges: Floats32) -> Bools:
        columns, lead = thread_columns(), np.arange(self.horizon + 1)
        low, high = (np.rint(ranges[:, [c]] * self.league_horizon) for c in (columns.lead_min, columns.lead_max))
        return np.asarray((lead >= low) & (lead <= high))


class AcceptanceNetwork(_ThreadNetwork):
    """P(partner accepts); see `hrl_xf.acceptance.AcceptanceModel`."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights, "acceptance")

    def __call__(self, batch: ThreadInputs, offers: Floats32) -> Floats32:
        """Return probabilities ``[M, O]`` of offers ``[M, O, 4]`` as `inputs.offer_inputs` makes them."""
        code, context = self._thread_code(batch, batch.x_thread[:, :0])
        own, _ = last_own(batch.history, batch.history_mask)
        columns = thread_columns()
        mine = own[:, None, list(columns.history_amounts)]
        theirs = batch.x_thread[:, None, list(columns.offer_amounts)]
        amounts = offers[:, :, :3]
        # [M, O, …] the thread's code beside each offer, and the offer beside the latest offers of both sides
        wide = np.broadcast_to(code[:, None, :], (*offers.shape[:2], code.shape[1]))
        compared = np.asarray(np.concatenate([offers, amounts - mine, amounts - theirs], axis=2), np.float32)
        hidden = _relu(self._linear("hidden", np.concatenate([wide, compared], axis=2)))
        logits = self._linear("out", hidden) + self._direct("offer_skip", compared)
        return sigmoid(logits[:, :, 0] + self._direct("skip", context))


class CoordinatorNetwork(_Network):
    """L4: α of each thread; see `hrl_xf.l4_coordinator.ThreadCoordinator`."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights, "l4")

    @property
    def log_std(self) -> Floats32:
        """Logarithm of the exploration's standard deviation, ``[1]``."""
        return self._a["log_std"]

    def __call__(self, threads: Floats32, mask: Bools) -> Floats32:
        """Return the logarithms of α ``[N, K]`` of threads ``[N, K, L4_SIZE]``."""
        tokens = _relu(self._linear("embed", threads))
        for layer in range(int(self.sizes["layers"])):
            tokens = self._block(f"blocks.{layer}", tokens, mask)
        return np.asarray(self._linear("out", self._norm("norm", tokens))[:, :, 0], np.float32)

    def _block(self, name: str, tokens: Array, mask: Bools) -> Array:
        """Return the tokens ``[N, K, D]`` after attention among the threads that exist."""
        count, length, width = tokens.shape
        heads = int(self.sizes["heads"])
        mixed = self._linear(f"{name}.mix", self._norm(f"{name}.norm", tokens))
        query, key, value = np.moveaxis(mixed.reshape(count, length, 3, heads, width // heads), 2, 0)
        attended = _attention(query, key, value, mask).reshape(count, length, width)
        return self._feed_forward(name, tokens + self._linear(f"{name}.project", attended))


class TypeNetwork(_Network):
    """The type of a partner: a perceptron with one hidden layer on standardised features.

    Args:
        weights: Weights of kind ``partner``.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights, "partner")

    def __call__(self, features: Floats32) -> Floats32:
        """Return the probability of each type from features ``[N, F]``, ``[N, T]``."""
        standard = (features - self._a["mean"]) / self._a["std"]
        return softmax(self._in_order("out", np.tanh(self._in_order("hidden", standard))))

    def _in_order(self, name: str, x: Array) -> Array:
        """Return a linear layer whose sums do not depend on the batch: inputs ``[N, I]`` are added one by one."""
        weight, columns = self._a[f"{name}.weight"], np.ascontiguousarray(x.T)
        # [I, N, O] or [I, O, N] terms, the longer axis last; a sum over the first axis adds its rows in order
        out: Array
        if len(x) > weight.shape[1]:
            out = np.add.reduce(columns[:, None, :] * weight[:, :, None], axis=0).T
        else:
            out = np.add.reduce(columns[:, :, None] * weight[:, None, :], axis=0)
        out += self._a[f"{name}.bias"]
        return out

"""L3 as a network: the decision in one thread, from its history, the day, the partner and the day's goals.

A context token attends to the thread's past offers and predicts ACCEPT, REJECT or END, and for a rejection the
counter-offer: a delivery day, a quantity and a price. In ``mode="residual"`` quantity and price are residuals on L1's
baseline, in ``mode="direct"`` absolute values (`aop`). Quantity is in units of the lines, price is a position in the
legal band (0 lowest, 1 highest); both are unbounded in training, where leaving the legal range is penalised, and are
clipped to it in `decide`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor, nn

from litaagent_std.hrl_xf.l2_manager import N_ROLE, N_STATIC, DayBatch, DayEncoder, direct
from litaagent_std.policy.features import THREAD_FEATURES
from litaagent_std.policy.networks.inputs import BASELINE_SIZE, MASKED, thread_columns

__all__ = ["Decisions", "Mode", "TemporalDecisionTransformer", "ThreadBatch", "ThreadEncoder", "ThreadOutputs"]

Mode = Literal["residual", "direct"]
N_HISTORY: Final = len(THREAD_FEATURES["history"])
N_NOW: Final = sum(len(THREAD_FEATURES[name]) for name in ("ranges", "x_thread", "x_partner"))


@dataclass(frozen=True)
class ThreadBatch:
    """M threads before an action.

    Attributes:
        day: Their days.
        history: Offers so far ``[M, L, 6]``, padded at the end.
        history_mask: bool ``[M, L]``.
        ranges: Legal ranges ``[M, 6]``.
        x_thread: Time, role and the offer on the table ``[M, 14]``.
        x_partner: The partner ``[M, 8]``.
        goal: The day's goals without units ``[M, 4·B]``, see `policy.networks.inputs.goal_inputs`.
        baseline: L1's baseline decision ``[M, 7]``, see `policy.networks.inputs.baseline_inputs`.
    """

    day: DayBatch
    history: Tensor
    history_mask: Tensor
    ranges: Tensor
    x_thread: Tensor
    x_partner: Tensor
    goal: Tensor
    baseline: Tensor


@dataclass(frozen=True)
class ThreadOutputs:
    """Outputs of the network.

    Attributes:
        op: Logits of ACCEPT, REJECT, END ``[M, 3]``; illegal ones are `MASKED`.
        lead: Logits of the delivery day ``[M, H + 1]``, likewise.
        quantity: Units over lines, of each member of the ensemble ``[M, K]``.
        position: Position of the price in the legal band, likewise.
    """

    op: Tensor
    lead: Tensor
    quantity: Tensor
    position: Tensor


@dataclass(frozen=True)
class Decisions:
    """Legal decisions: operation ``[M]`` and counter-offer (quantity, lead, unit price) ``[M, 3]``."""

    op: Tensor
    offer: Tensor


class _HistoryAttention(nn.Module):
    """Attention of one query to the context itself and to the past offers; then a feed-forward layer."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.project = nn.Linear(dim, dim)
        self.norm_up = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, context: Tensor, offers: Tensor, mask: Tensor) -> Tensor:
        """Return the new context ``[M, D]`` from context ``[M, D]``, offers ``[M, L, D]`` and mask bool ``[M, L]``."""
        count, width = context.shape
        normed = self.norm(context)
        # [M, 1 + L, D] the context and the offers, with the mask of those that exist
        tokens = torch.cat([normed.unsqueeze(1), offers], dim=1)
        seen = torch.cat([mask.new_ones(count, 1), mask], dim=1)
        # keys and values [M, 1 + L, heads, D / heads], one query per thread [M, heads, D / heads]
        key, value = self.key_value(tokens).view(count, -1, 2, self.heads, width // self.heads).unbind(2)
        query = self.query(normed).view(count, self.heads, width // self.heads)
        # attention weights [M, heads, 1 + L]
        scores = torch.einsum("mhd,mlhd->mhl", query, key) * (width // self.heads) ** -0.5
        weights = scores.masked_fill(~seen.unsqueeze(1), MASKED).softmax(-1)
        context = context + self.project(torch.einsum("mhl,mlhd->mhd", weights, value).flatten(1))
        out: Tensor = context + self.down(torch.relu(self.up(self.norm_up(context))))
        return out


class ThreadEncoder(nn.Module):
    """Encoder of a thread.

    Args:
        horizon: Largest number of delivery days after today.
        league_horizon: The league's horizon; default: ``horizon``.
        extra: Width of further inputs of the context.
        extra_leads: Number of further delivery days, each a one-hot vector.
        dim: Width of the result.
        layers: Blocks of attention.
        heads: Heads of attention; divides ``dim``.
    """

    def __init__(
        self,
        horizon: int,
        league_horizon: int | None,
        *,
        extra: int,
        extra_leads: int = 0,
        dim: int = 64,
        layers: int = 2,
        heads: int = 2,
    ) -> None:
        super().__init__()
        self.day = DayEncoder(horizon, league_horizon, row_dim=16, dim=dim)
        self.horizon = horizon
        self.offers = nn.Linear(N_HISTORY, dim)
        leads = (2 + extra_leads) * (horizon + 1)
        self.n_inputs = dim + N_STATIC + N_ROLE + N_NOW + N_HISTORY + 1 + leads + extra
        self.context = nn.Linear(self.n_inputs, dim)
        self.blocks = nn.ModuleList(_HistoryAttention(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)

    def forward(self, batch: ThreadBatch, extra: Tensor, *more_leads: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return codes ``[M, dim]`` and the context's inputs ``[M, n_inputs]``, for skip connections.

        Args:
            batch: The threads.
            extra: Further inputs ``[M, extra]``.
            *more_leads: Further delivery days, each as lead / league's horizon ``[M]`` and whether it exists.
        """
        own, has_own = last_own(batch.history, batch.history_mask)
        columns = thread_columns()
        answers = batch.x_thread[:, columns.answers]
        # delivery days that enter as one-hot vectors: of our last offer, of the offer on the table, and further ones
        days = ((own[:, columns.history_lead], has_own), (batch.x_thread[:, columns.offer_lead], answers), *more_leads)
        parts = [
            self.day(batch.day),
            batch.day.x_static,
            batch.day.x_role,
            batch.ranges,
            batch.x_thread,
            batch.x_partner,
            own,
            has_own.unsqueeze(1),
            *(self._one_hot(lead, exists) for lead, exists in days),
            extra,
        ]
        inputs = torch.cat(parts, dim=1)  # [M, n_inputs]
        context = torch.relu(self.context(inputs))
        offers = torch.relu(self.offers(batch.history))  # [M, L, dim]
        for block in self.blocks:
            context = block(context, offers, batch.history_mask)
        return self.norm(context), inputs

    def _one_hot(self, lead: Tensor, exists: Tensor) -> Tensor:
        index = (lead * self.day.league_horizon).round().long().clamp(0, self.horizon)
        return nn.functional.one_hot(index, self.horizon + 1).to(lead.dtype) * exists.unsqueeze(1)


def last_own(history: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return our latest offer of each thread ``[M, 6]``, zeros if none, and whether there is one ``[M]``."""
    own = mask & (history[:, :, thread_columns().mine] > 0.5)
    turn = torch.arange(history.shape[1], device=history.device)
    index = torch.where(own, turn, -1).amax(1)  # [M] turn of our latest offer
    exists = (index >= 0).to(history.dtype)
    rows = history[torch.arange(len(history), device=history.device), index.clamp(min=0)]
    return rows * exists.unsqueeze(1), exists


class TemporalDecisionTransformer(nn.Module):
    """Operation and counter-offer of a thread.

    Args:
        horizon: Largest number of delivery days after today; data of a shorter horizon is accepted.
        league_horizon: The league's horizon; default: ``horizon``.
        mode: ``residual`` on L1's baseline, or ``direct``.
        ensemble: Members that predict quantity and price; several measure uncertainty.
        dim: Width of the network.
        layers: Blocks of attention.
    """

    kind = "l3"

    def __init__(
        self,
        horizon: int = 40,
        league_horizon: int | None = None,
        *,
        mode: Mode = "residual",
        ensemble: int = 1,
        dim: int = 64,
        layers: int = 2,
    ) -> None:
        super().__init__()
        self.mode: Mode = mode
        self.horizon, self.ensemble = horizon, ensemble
        n_goal = 4 * DayEncoder(horizon).n_buckets
        residual = mode == "residual"
        self.encoder = ThreadEncoder(
            horizon,
            league_horizon,
            extra=n_goal + (BASELINE_SIZE if residual else 0),
            extra_leads=int(residual),
            dim=dim,
            layers=layers,
        )
        self.op = nn.Linear(dim, 3)
        self.lead = nn.Linear(dim, horizon + 1)
        self.amount = nn.Linear(dim, 2 * ensemble)
        self.op_skip = direct(self.encoder.n_inputs, 3)
        self.lead_skip = direct(self.encoder.n_inputs, horizon + 1)
        self.amount_skip = direct(self.encoder.n_inputs, 2 * ensemble)
        with torch.no_grad():
            self.amount.weight.mul_(0.1)
            self.amount.bias.zero_()
            self.op.bias.copy_(torch.tensor([0.0, 2.0, 0.0]))  # most decisions are counter-offers
        self.sizes: dict[str, int | str] = {
            "horizon": horizon,
            "mode": mode,
            "ensemble": ensemble,
            "dim": dim,
            "layers": layers,
        }

    def forward(self, batch: ThreadBatch) -> ThreadOutputs:
        """Return logits and amounts of M threads."""
        residual = self.mode == "residual"
        base = batch.baseline
        more = [(base[:, 4], base[:, 6])] if residual else []
        extra = torch.cat([batch.goal, base], dim=1) if residual else batch.goal
        code, inputs = self.encoder(batch, extra, *more)
        change = (self.amount(code) + self.amount_skip(inputs)).view(-1, self.ensemble, 2)
        start = _start(base) if residual else torch.full_like(base[:, :2], 0.5)
        amount = start.unsqueeze(1) + change
        op = (self.op(code) + self.op_skip(inputs)).masked_fill(~legal_operations(batch.x_thread), MASKED)
        lead = (self.lead(code) + self.lead_skip(inputs)).masked_fill(~self.legal_leads(batch.ranges), MASKED)
        return ThreadOutputs(op, lead, amount[..., 0], amount[..., 1])

    def legal_leads(self, ranges: Tensor) -> Tensor:
        """Return the delivery days inside the legal range, bool ``[M, H + 1]``."""
        columns = thread_columns()
        lead = torch.arange(self.horizon + 1, device=ranges.device)
        scale = self.encoder.day.league_horizon
        # [M] ends of the legal range in days
        low = (ranges[:, columns.lead_min] * scale).round()
        high = (ranges[:, columns.lead_max] * scale).round()
        return (lead >= low.unsqueeze(1)) & (lead <= high.unsqueeze(1))

    @torch.no_grad()
    def decide(self, batch: ThreadBatch, low: Tensor, high: Tensor) -> Decisions:
        """Return the most probable legal decisions.

        Args:
            batch: The threads.
            low: Least legal quantity, lead and unit price, integers ``[M, 3]``.
            high: Greatest legal values, likewise.
        """
        outputs = self(batch)
        bottom, top = low.to(outputs.quantity.dtype), high.to(outputs.quantity.dtype)
        lead = outputs.lead.argmax(-1)
        # from members of the ensemble to raw units, [M]
        quantity = outputs.quantity.mean(1) * batch.day.lines
        price = bottom[:, 2] + outputs.position.mean(1) * (top[:, 2] - bottom[:, 2])
        # [M] each, rounded and clipped to the legal range
        legal = [torch.clamp(v.round(), bottom[:, i], top[:, i]) for i, v in ((0, quantity), (1, lead), (2, price))]
        return Decisions(outputs.op.argmax(-1), torch.stack(legal, dim=1).long())


def _start(baseline: Tensor) -> Tensor:
    """Return quantity and price that residuals refer to ``[M, 2]``; the middle where the baseline has no offer."""
    exists = baseline[:, 6:7]
    return exists * baseline[:, [3, 5]] + (1.0 - exists) * 0.5


def legal_operations(x_thread: Tensor) -> Tensor:
    """Return the legal operations, bool ``[M, 3]``: ACCEPT needs an offer on the table, the others are always legal."""
    answers = x_thread[:, thread_columns().answers] > 0.5
    always = torch.ones_like(answers)
    return torch.stack([answers, always, always], dim=1)

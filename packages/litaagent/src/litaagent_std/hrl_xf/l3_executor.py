"""L3 as a network: the decision in one thread, from its history, the day, the partner, the day's goals and α.

A context token attends to the thread's past offers and predicts ACCEPT, REJECT or END, and for a rejection the
counter-offer: a delivery day, a quantity and a price. In ``mode="residual"`` quantity and price are residuals on the
heuristic's counter-offer, scaled by the thread's weight α, and the heuristic's operation and delivery day are a bias of
the logits: a new network decides as the heuristic does. In ``mode="direct"`` all of them are absolute (`aop`). Quantity
is in units of the lines, price is a position in the legal band (0 lowest, 1 highest); both are unbounded in training,
where leaving the legal range is penalised, and are clipped to it in `decide`.

As a policy it is a categorical distribution over operations and delivery days, and a Gaussian over quantity and price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Self

import torch
from torch import Tensor, nn

from apexrl.models.distributions import Categorical, DiagonalGaussian, Distribution
from litaagent_std.hrl_xf.l2_manager import N_ROLE, N_STATIC, DayBatch, DayEncoder, direct
from litaagent_std.policy.features import THREAD_FEATURES
from litaagent_std.policy.networks.inputs import BASE_LOGIT, BASELINE_SIZE, MASKED, OFFER_STEPS, thread_columns

__all__ = [
    "DecisionDistribution",
    "Decisions",
    "Mode",
    "TemporalDecisionTransformer",
    "ThreadBatch",
    "ThreadEncoder",
    "ThreadOutputs",
]

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
        baseline: The heuristic's decision ``[M, 7]``, see `policy.networks.inputs.baseline_inputs`.
        log_alpha: Logarithm of L4's weight of each thread ``[M]``; 0 is neutral.
    """

    day: DayBatch
    history: Tensor
    history_mask: Tensor
    ranges: Tensor
    x_thread: Tensor
    x_partner: Tensor
    goal: Tensor
    baseline: Tensor
    log_alpha: Tensor


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
            *(self.one_hot(lead, exists) for lead, exists in days),
            extra,
        ]
        inputs = torch.cat(parts, dim=1)  # [M, n_inputs]
        context = torch.relu(self.context(inputs))
        offers = torch.relu(self.offers(batch.history))  # [M, L, dim]
        for block in self.blocks:
            context = block(context, offers, batch.history_mask)
        return self.norm(context), inputs

    def one_hot(self, lead: Tensor, exists: Tensor) -> Tensor:
        """Return delivery days ``[M]``, as lead / league's horizon, as one-hot vectors ``[M, H + 1]``."""
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
        mode: ``residual`` on the heuristic's decision, or ``direct``.
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
            extra=n_goal + 1 + (BASELINE_SIZE if residual else 0),
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
        self.log_std = nn.Parameter(torch.tensor(OFFER_STEPS).log() - 1.5)  # of quantity and price
        if residual:
            self.base_weight = nn.Parameter(torch.ones(2))  # of the heuristic's operation and delivery day
            for layer in (self.op, self.lead, self.amount):
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)
        else:
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
        extra = [batch.goal, batch.log_alpha.unsqueeze(1), *([base] if residual else [])]
        code, inputs = self.encoder(batch, torch.cat(extra, dim=1), *more)
        change = (self.amount(code) + self.amount_skip(inputs)).view(-1, self.ensemble, 2)
        op, lead = self.op(code) + self.op_skip(inputs), self.lead(code) + self.lead_skip(inputs)
        if residual:
            start = _start(base)
            change = change * batch.log_alpha.exp().view(-1, 1, 1)
            op = op + BASE_LOGIT * self.base_weight[0] * base[:, :3]
            lead = lead + BASE_LOGIT * self.base_weight[1] * self.encoder.one_hot(base[:, 4], base[:, 6])
        else:
            start = torch.full_like(base[:, :2], 0.5)
        amount = start.unsqueeze(1) + change
        op = op.masked_fill(~legal_operations(batch.x_thread), MASKED)
        lead = lead.masked_fill(~self.legal_leads(batch.ranges), MASKED)
        return ThreadOutputs(op, lead, amount[..., 0], amount[..., 1])

    def distribution(self, batch: ThreadBatch) -> DecisionDistribution:
        """Return the distribution over decisions: operation, delivery day, quantity and position of the price."""
        out = self(batch)
        mean = torch.stack([out.quantity.mean(1), out.position.mean(1)], dim=1)
        return DecisionDistribution(out.op, out.lead, mean, self.log_std)

    def act(self, batch: ThreadBatch, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Sample decisions ``[M, 4]``; return them with their log-probabilities ``[M]``."""
        policy = self.distribution(batch)
        actions = policy.sample(generator)
        return actions, policy.log_prob(actions)

    def evaluate(self, batch: ThreadBatch, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probability and entropy ``[M]`` of sampled decisions ``[M, 4]``."""
        policy = self.distribution(batch)
        return policy.log_prob(actions), policy.entropy()

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


class DecisionDistribution(Distribution):
    """Operation, delivery day, quantity and price as one action ``[M, 4]``; the last three matter for a REJECT alone.

    Args:
        op: Logits of the operation ``[*batch, 3]``.
        lead: Logits of the delivery day ``[*batch, H + 1]``.
        mean: Mean quantity and position of the price ``[*batch, 2]``.
        log_std: Logarithm of their standard deviation ``[2]``.
    """

    def __init__(self, op: Tensor, lead: Tensor, mean: Tensor, log_std: Tensor) -> None:
        self.op, self.lead = Categorical(op), Categorical(lead)
        self.amounts = DiagonalGaussian(mean, log_std)

    def _joined(self, op: Tensor, lead: Tensor, amounts: Tensor) -> Tensor:
        return torch.cat([torch.stack([op, lead], dim=-1).to(amounts.dtype), amounts], dim=-1)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw decisions ``[*batch, 4]``."""
        return self._joined(self.op.sample(generator), self.lead.sample(generator), self.amounts.sample(generator))

    def mode(self) -> Tensor:
        """Return the most probable decisions."""
        return self._joined(self.op.mode(), self.lead.mode(), self.amounts.mode())

    def log_prob(self, actions: Tensor) -> Tensor:
        """Compute log P(op) + [op = REJECT]·(log P(lead) + log p(amounts))."""
        op, lead = actions[..., 0].long(), actions[..., 1].long()
        counter = self.lead.log_prob(lead) + self.amounts.log_prob(actions[..., 2:])
        return self.op.log_prob(op) + torch.where(op == 1, counter, torch.zeros_like(counter))

    def _rejects(self) -> Tensor:
        return self.op.log_probs[..., 1].exp()

    def entropy(self) -> Tensor:
        """Compute H(op) + P(REJECT)·(H(lead) + H(amounts))."""
        return self.op.entropy() + self._rejects() * (self.lead.entropy() + self.amounts.entropy())

    def kl(self, other: Self) -> Tensor:
        """Compute KL(op) + P(REJECT)·(KL(lead) + KL(amounts))."""
        return self.op.kl(other.op) + self._rejects() * (self.lead.kl(other.lead) + self.amounts.kl(other.amounts))


def _start(baseline: Tensor) -> Tensor:
    """Return quantity and price that residuals refer to ``[M, 2]``; the middle where the baseline has no offer."""
    exists = baseline[:, 6:7]
    return exists * baseline[:, [3, 5]] + (1.0 - exists) * 0.5


def legal_operations(x_thread: Tensor) -> Tensor:
    """Return the legal operations, bool ``[M, 3]``: ACCEPT needs an offer on the table, the others are always legal."""
    answers = x_thread[:, thread_columns().answers] > 0.5
    always = torch.ones_like(answers)
    return torch.stack([answers, always, always], dim=1)

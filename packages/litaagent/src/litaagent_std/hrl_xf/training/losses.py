"""Losses of the layers: pure functions of tensors, the formula beside the line.

Errors of masked components count neither in the numerator nor in the denominator, and a sample without any gives 0,
never NaN.

L2 can also be trained with a conservative critic of whole goals. A day's goal is one decision whose return is what
followed, so the critic Q(s, g) is regressed on the recorded return-to-go, and goals that were not recorded on that day
are pressed down (Kumar et al., 2020): E[(Q(s, g) − R)²] + α·E[log Σ_k exp Q(s, g_k) − Q(s, g)], where the g_k are the
recorded goal, goals of other rows of the batch, and the network's own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from apexrl.algorithms.losses import masked_mean, squared_error
from litaagent_std.hrl_xf.l2_manager import DayBatch, DayEncoder
from litaagent_std.hrl_xf.l3_executor import ThreadOutputs
from litaagent_std.hrl_xf.training.config import QTransform
from litaagent_std.hrl_xf.training.data import MicroBatch
from litaagent_std.policy.networks.inputs import MASKED, PRICE_UNIT

__all__ = [
    "GoalValue",
    "bounds_penalty",
    "cql_losses",
    "effective_sample_size",
    "ensemble_mask",
    "goal_errors",
    "goal_inputs",
    "l3_losses",
    "transformed",
]

_HUBER = 0.05
"""Threshold of the Huber loss of quantity and price (in lines, in price bands): offers are often repeated to the unit,
and a squared error would average over what is repeated."""
_Q_WEIGHT = 5.0
"""Weight of quantities: in units of the lines their errors are small."""


def transformed(quantity: Tensor, lines: Tensor, transform: QTransform) -> Tensor:
    """Transform quantities ``[N, 2, B]`` to the scale of the loss, x = 10·Q / lines (units, with ten lines).

    none: x / 10. log1p: log(1 + x). sqrt: √x, smoothed at 0 so that its slope stays finite.
    """
    x = 10.0 * quantity / lines.clamp(min=1.0).view(-1, 1, 1)
    if transform == "log1p":
        return torch.log1p(x)
    if transform == "sqrt":
        return torch.sqrt(x + 1e-2) - 0.1
    return x / 10.0


def goal_errors(
    predicted: tuple[Tensor, Tensor],
    target: tuple[Tensor, Tensor, Tensor],
    day: DayBatch,
    days: Tensor,
    transform: QTransform,
    q_weight: float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss of L2 and its parts.

    Args:
        predicted: Quantities and prices ``[N, 2, B]``.
        target: Recorded quantities and prices, and the mask of prices.
        day: The days.
        days: Delivery days of each bucket that exist ``[N, B]``.
        transform: Scale of quantities.
        q_weight: Weight of quantities.
    """
    goal_q, goal_p, p_mask = target
    counts = (day.x_role.unsqueeze(-1) > 0) & (days.unsqueeze(1) > 0)  # [N, 2, B] sides that trade, days that exist
    # [N, 2, B] squared errors on the scale of the loss: quantities, and prices in tenths of the trading price
    q_error = squared_error(transformed(predicted[0], day.lines, transform), transformed(goal_q, day.lines, transform))
    trading_price = day.price.clamp(min=1e-6).unsqueeze(-1)  # [N, 2, 1]
    p_error = squared_error(predicted[1] / trading_price / PRICE_UNIT, goal_p / trading_price / PRICE_UNIT)
    prices = p_mask & counts
    q_loss, p_loss = masked_mean(q_error, counts), masked_mean(p_error, prices)
    loss = (q_weight * q_loss + p_loss) / (q_weight + 1.0)
    every = torch.cat([counts, prices]).to(q_error.dtype)
    mse = (torch.cat([q_error, p_error]) * every).sum() / every.sum().clamp(min=1.0)
    return loss, {"q": q_loss, "p": p_loss, "mse": mse}


def bounds_penalty(outputs: ThreadOutputs, batch: MicroBatch) -> Tensor:
    """Return the mean squared distance of quantity (in lines) and price position from the legal range ``[M]``."""
    lines = batch.thread.day.lines.clamp(min=1.0)
    low, high = batch.low[:, 0] / lines, batch.high[:, 0] / lines  # [M] legal quantities in lines
    # [M, K] distance of each member below and above the range
    below = functional.relu(low.unsqueeze(1) - outputs.quantity) + functional.relu(-outputs.position)
    above = functional.relu(outputs.quantity - high.unsqueeze(1)) + functional.relu(outputs.position - 1.0)
    return (below.square() + above.square()).mean(1)


def ensemble_mask(rows: Tensor, members: int) -> Tensor:
    """Return which members train on which rows ``[M, K]``: about two thirds each, by a hash of the row number."""
    if members == 1:
        return torch.ones(len(rows), 1, device=rows.device)
    member = torch.arange(members, device=rows.device)
    # [M, K] a multiplicative hash of row and member
    mixed = (rows.unsqueeze(1) * 2_654_435_761 + (member + 1) * 40_503_121) % 4_294_967_291
    return ((mixed >> 7) % 3 != 0).to(torch.float32)


def l3_losses(
    outputs: ThreadOutputs, batch: MicroBatch, *, bounds_weight: float, variance_weight: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss of L3 and its parts: cross-entropies of operation and lead, robust errors of quantity and price.

    Quantity, price and lead count where the record holds a counter-offer; each decision has its weight.
    """
    offers = (batch.op == 1).to(outputs.op.dtype) * batch.weight  # [M] weight of each counter-offer
    lines = batch.thread.day.lines.clamp(min=1.0)
    width = (batch.high[:, 2] - batch.low[:, 2]).clamp(min=1)
    # targets without units: quantity over lines, position of the price in its band, each [M]
    quantity = batch.offer[:, 0] / lines
    position = torch.where(batch.high[:, 2] > batch.low[:, 2], (batch.offer[:, 2] - batch.low[:, 2]) / width, 0.5)
    # [M, K] weight of each member's error
    members = ensemble_mask(batch.rows, outputs.quantity.shape[1]) * offers.unsqueeze(1)
    lead = batch.offer[:, 1].clamp(0, outputs.lead.shape[1] - 1)
    legal = outputs.lead.gather(1, lead.unsqueeze(1)).squeeze(1) > MASKED / 2  # [M] the recorded lead is not masked
    op = (functional.cross_entropy(outputs.op, batch.op, reduction="none") * batch.weight).mean()
    t = _weighted(functional.cross_entropy(outputs.lead, lead, reduction="none"), offers * legal)
    q = _weighted(squared_error(outputs.quantity, quantity.unsqueeze(1).expand_as(outputs.quantity), _HUBER), members)
    p = _weighted(squared_error(outputs.position, position.unsqueeze(1).expand_as(outputs.position), _HUBER), members)
    penalty = _weighted(bounds_penalty(outputs, batch), offers)
    loss = op + t + _Q_WEIGHT * q + p + bounds_weight * penalty
    right = (outputs.op.argmax(-1) == batch.op).to(torch.float32).mean()
    parts = {"op": op, "q": q, "p": p, "t": t, "bounds": penalty, "op_acc": right}
    if outputs.quantity.shape[1] > 1:
        variance = _weighted(outputs.quantity.var(1) + outputs.position.var(1), offers)
        loss = loss + variance_weight * variance
        parts["variance"] = variance
    return loss, parts


def _weighted(values: Tensor, weights: Tensor) -> Tensor:
    """Return Σ w·x / Σ w; 0 if all weights are 0."""
    total = weights.sum()
    return (values * weights).sum() / torch.where(total > 0, total, torch.ones_like(total))


def effective_sample_size(weights: Tensor) -> float:
    """Return the effective sample size as a share of the decisions: (Σw)² / (n·Σw²)."""
    squares = weights.square().sum()
    return float(weights.sum().square() / (len(weights) * squares)) if float(squares) > 0 else 0.0


_OTHERS = (1, 2, 3)
"""Shifts within the batch by which goals of other rows are taken as candidates."""


class GoalValue(nn.Module):
    """Q(s, g): the expected return of a goal on a day.

    Args:
        horizon: As in `HorizonManagerPPO`.
        league_horizon: Likewise.
        dim: Width of the network.
    """

    def __init__(self, horizon: int, league_horizon: int | None = None, *, dim: int = 64) -> None:
        super().__init__()
        self.encoder = DayEncoder(horizon, league_horizon, row_dim=16, dim=dim)
        self.hidden = nn.Linear(dim + 4 * self.encoder.n_buckets, dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, day: DayBatch, goals: Tensor) -> Tensor:
        """Return the values ``[N, G]`` of goals ``[N, G, 4·B]`` without units."""
        code = self.encoder(day).unsqueeze(1).expand(-1, goals.shape[1], -1)
        out: Tensor = self.out(torch.relu(self.hidden(torch.cat([code, goals], dim=2))))
        return out.squeeze(-1)


def goal_inputs(quantity: Tensor, price: Tensor, day: DayBatch) -> Tensor:
    """Return goals without units ``[N, 4·B]``; the same as `policy.networks.inputs.goal_inputs`, differentiable."""
    units = quantity / day.lines.clamp(min=1.0).view(-1, 1, 1)
    relative = (price / day.price.clamp(min=1e-6).unsqueeze(-1) - 1.0) / PRICE_UNIT
    relative = torch.where(price > 0, relative, torch.zeros_like(relative))
    return torch.stack([units, relative], dim=1).flatten(1).clamp(-10.0, 10.0)


def cql_losses(
    critic: GoalValue, day: DayBatch, own: Tensor, recorded: Tensor, returns: Tensor, alpha: float
) -> tuple[Tensor, Tensor]:
    """Return the critic's loss, and the mean value of the network's own goals.

    Args:
        critic: Q.
        day: The days.
        own: The network's goals ``[N, 4·B]``; gradients of the value flow into them, those of the loss do not.
        recorded: The recorded goals ``[N, 4·B]``.
        returns: Normalised return-to-go ``[N]``.
        alpha: α.
    """
    others = [recorded.roll(step, 0) for step in _OTHERS]
    candidates = torch.stack([recorded, own.detach(), *others], dim=1)  # [N, G, 4·B]
    values = critic(day, candidates)  # [N, G], the recorded goal first
    error = (values[:, 0] - returns).square().mean()  # E[(Q(s, g) − R)²]
    conservative = (values.logsumexp(1) - values[:, 0]).mean()  # E[log Σ exp Q(s, g_k) − Q(s, g)]
    # The critic's parameters are constants here: the value trains the network alone.
    frozen = {name: parameter.detach() for name, parameter in critic.named_parameters()}
    value = functional_call(critic, frozen, (day, own.unsqueeze(1)))
    return error + alpha * conservative, value.mean()

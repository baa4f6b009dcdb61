"""L2 beyond cloning: a conservative critic of whole goals, and a loss that leans towards what it values.

A day's goal is one decision whose return is what followed, so the critic Q(s, g) is regressed on the recorded
return-to-go, and goals that were not recorded for a morning are pressed down (Kumar et al., 2020):
E[(Q(s, g) − R)²] + α·E[log Σ_k exp Q(s, g_k) − Q(s, g)], where the g_k are the recorded goal, goals of other mornings
of the batch, and the network's own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from litaagent_std.hrl_xf.l2_manager import DayBatch, DayEncoder
from litaagent_std.policy.networks.inputs import PRICE_UNIT

__all__ = ["GoalValue", "cql_losses", "goal_inputs"]

_OTHERS = (1, 2, 3)
"""Distances in the batch from which goals of other mornings are taken."""


class GoalValue(nn.Module):
    """Q(s, g): the return that a goal promises on a morning.

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
        """Values ``[N, G]`` of goals ``[N, G, 4·B]`` without units."""
        code = self.encoder(day).unsqueeze(1).expand(-1, goals.shape[1], -1)
        out: Tensor = self.out(torch.relu(self.hidden(torch.cat([code, goals], dim=2))))
        return out.squeeze(-1)


def goal_inputs(quantity: Tensor, price: Tensor, day: DayBatch) -> Tensor:
    """Goals without units ``[N, 4·B]``; the same as `policy.network_inputs.goal_inputs`, differentiable."""
    units = quantity / day.lines.clamp(min=1.0).view(-1, 1, 1)
    relative = (price / day.price.clamp(min=1e-6).unsqueeze(-1) - 1.0) / PRICE_UNIT
    relative = torch.where(price > 0, relative, torch.zeros_like(relative))
    return torch.stack([units, relative], dim=1).flatten(1).clamp(-10.0, 10.0)


def cql_losses(
    critic: GoalValue, day: DayBatch, own: Tensor, recorded: Tensor, returns: Tensor, alpha: float
) -> tuple[Tensor, Tensor]:
    """Return the critic's loss, and the value that it gives to the network's own goals.

    Args:
        critic: Q.
        day: Mornings.
        own: The network's goals ``[N, 4·B]``; gradients of the value flow into them, those of the loss do not.
        recorded: The recorded goals ``[N, 4·B]``.
        returns: Normalised return-to-go ``[N]``.
        alpha: α.
    """
    others = [recorded.roll(step, 0) for step in _OTHERS]
    candidates = torch.stack([recorded, own.detach(), *others], dim=1)
    values = critic(day, candidates)
    error = (values[:, 0] - returns).square().mean()  # E[(Q(s, g) − R)²]
    conservative = (values.logsumexp(1) - values[:, 0]).mean()  # E[log Σ exp Q(s, g_k) − Q(s, g)]
    frozen = {name: parameter.detach() for name, parameter in critic.named_parameters()}
    value = functional_call(critic, frozen, (day, own.unsqueeze(1)))
    return error + alpha * conservative, value.mean()

"""L2 as a network: residuals on the heuristic's goals of a day, by side and delivery bucket.

The network is a policy: a diagonal Gaussian over *residuals* (`policy.l2.residual`) of quantities, prices and urgency,
and of the values of capacity and input. `decode` adds quantities and prices to the heuristic's and clips them:
quantities lie between 0 and what the lines of the bucket's days allow, prices inside the day's legal band, and a side
that the factory does not trade gets 0, so every sample of the Gaussian is a legal goal. Behaviour cloning trains the
mean by the decoded goals; PPO trains it further with `GoalActor` and `GoalCritic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor, nn
from torch.nn import functional

from apexrl.models.base import Actor, Critic
from apexrl.models.distributions import DiagonalGaussian
from litaagent_std.policy.buckets import buckets
from litaagent_std.policy.features import DAY_FEATURES
from litaagent_std.policy.networks.inputs import GOAL_CAP, GOAL_STEPS, PRICE_UNIT, band_columns

__all__ = [
    "DayBatch",
    "DayEncoder",
    "GoalActor",
    "GoalCritic",
    "HorizonManagerPPO",
    "ReturnCritic",
    "direct",
    "goal_spaces",
]

N_STATIC = len(DAY_FEATURES["x_static"])
N_TEMPORAL = len(DAY_FEATURES["x_temporal"])
N_ROLE = len(DAY_FEATURES["x_role"])


@dataclass(frozen=True)
class DayBatch:
    """N days: their features (`policy.features.day_features`), and the scales of units.

    Attributes:
        x_static: ``[N, S]``.
        x_temporal: ``[N, H + 1, T]``.
        x_role: ``[N, 2]``, buying and selling.
        mask: bool ``[N, H + 1]``, the delivery days that exist.
        lines: ``[N]``, units that a day can produce.
        price: ``[N, 2]``, trading prices of input and output.
        base: ``[N, 7·B + 1]``, the heuristic's goals by bucket, see `policy.l2.residual.goal_base`.
    """

    x_static: Tensor
    x_temporal: Tensor
    x_role: Tensor
    mask: Tensor
    lines: Tensor
    price: Tensor
    base: Tensor


class DayEncoder(nn.Module):
    """Encoder of a day: delivery days are embedded, averaged by bucket, and concatenated with the rest.

    Args:
        horizon: Largest number of delivery days after today.
        league_horizon: The league's horizon, which defines the buckets; default: ``horizon``.
        row_dim: Width of an embedded delivery day.
        dim: Width of the result.
        extra: Width of further inputs.
    """

    pool: Tensor

    def __init__(
        self, horizon: int, league_horizon: int | None = None, *, row_dim: int = 24, dim: int = 128, extra: int = 0
    ) -> None:
        super().__init__()
        self.horizon, self.dim = horizon, dim
        self.n_buckets = len(buckets(horizon))
        self.rows = nn.Linear(N_TEMPORAL, row_dim)
        self.n_inputs = N_STATIC + N_ROLE + self.n_buckets * (row_dim + 1) + extra
        self.hidden = nn.Linear(self.n_inputs, dim)
        self.out = nn.Linear(dim, dim)
        self.register_buffer("pool", torch.zeros(horizon + 1, self.n_buckets), persistent=False)
        self.set_league_horizon(horizon if league_horizon is None else league_horizon)

    def set_league_horizon(self, league_horizon: int) -> None:
        """Set the buckets from the league's horizon; later delivery days are ignored.

        Raises:
            ValueError: If it exceeds the network's horizon, or has another number of buckets.
        """
        parts = buckets(league_horizon)
        if league_horizon > self.horizon or len(parts) != self.n_buckets:
            raise ValueError(
                f"the data's horizon is {league_horizon} with {len(parts)} buckets, the network was built for "
                f"horizon={self.horizon} with {self.n_buckets}; build it with a horizon of at least {league_horizon}"
            )
        self.league_horizon = league_horizon
        self.pool.zero_()
        for bucket, leads in enumerate(parts):
            self.pool[leads.start : leads.stop, bucket] = 1.0

    def days(self, mask: Tensor) -> Tensor:
        """Return the number of existing delivery days of each bucket ``[N, B]``."""
        return mask.to(self.pool.dtype) @ self.pool[: mask.shape[1]]

    def forward(self, day: DayBatch) -> Tensor:
        """Return codes ``[N, dim]``."""
        return self.both(day)[0]

    def both(self, day: DayBatch, *extra: Tensor) -> tuple[Tensor, Tensor]:
        """Return codes ``[N, dim]`` and the inputs of the hidden layer ``[N, n_inputs]``, for skip connections."""
        length = day.x_temporal.shape[1]
        if length > self.horizon + 1:
            raise ValueError(
                f"the data has {length - 1} delivery days after today, the network horizon={self.horizon}; "
                "build the network with the data's horizon"
            )
        counts = self.days(day.mask)  # [N, B]
        # [N, B, row_dim] mean of the embedded delivery days of each bucket
        rows = torch.relu(self.rows(day.x_temporal)) * day.mask.unsqueeze(-1)
        pooled = torch.einsum("nhr,hb->nbr", rows, self.pool[:length]) / counts.clamp(min=1.0).unsqueeze(-1)
        share = counts / self.pool.sum(0).clamp(min=1.0)  # [N, B] part of the bucket that still exists
        joined = torch.cat([day.x_static, day.x_role, pooled.flatten(1), share, *extra], dim=1)
        hidden = torch.relu(self.hidden(joined))
        return hidden + torch.relu(self.out(hidden)), joined


class HorizonManagerPPO(nn.Module):
    """The day's goals as residuals on the heuristic's: a Gaussian policy over residuals.

    A new network gives zeros, which is the heuristic L2.

    Args:
        horizon: Largest number of delivery days after today; data of a shorter horizon is accepted and defines buckets.
        league_horizon: The league's horizon; default: ``horizon``.
        dim: Width of the network.
        row_dim: Width of an embedded delivery day.

    Attributes:
        log_std: Logarithm of the exploration's standard deviation, ``[7·B + 1]``.
    """

    kind = "l2"

    def __init__(
        self, horizon: int = 40, league_horizon: int | None = None, *, dim: int = 128, row_dim: int = 24
    ) -> None:
        super().__init__()
        count = len(buckets(horizon))
        self.n_latents = 7 * count + 1
        self.encoder = DayEncoder(horizon, league_horizon, row_dim=row_dim, dim=dim, extra=self.n_latents)
        self.head = nn.Linear(dim, self.n_latents)
        self.skip = direct(self.encoder.n_inputs, self.n_latents)
        self.days_skip = direct((horizon + 1) * (N_TEMPORAL + 1), self.n_latents)
        self.log_std = nn.Parameter(initial_log_std(count, -1.0))
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.sizes = {"horizon": horizon, "dim": dim, "row_dim": row_dim}

    @property
    def horizon(self) -> int:
        """Largest number of delivery days after today."""
        return self.encoder.horizon

    def latents(self, day: DayBatch) -> Tensor:
        """Return the mean residuals ``[N, 7·B + 1]``, in the order of `policy.l2.residual.goal_names`."""
        code, inputs = self.encoder.both(day, base_inputs(day))
        rows = torch.cat([day.x_temporal, day.mask.unsqueeze(-1).to(day.x_temporal.dtype)], dim=-1)
        rows = functional.pad(rows, (0, 0, 0, self.horizon + 1 - rows.shape[1]))  # [N, H + 1, T + 1]
        out: Tensor = self.head(code) + self.skip(inputs) + self.days_skip(rows.flatten(1))
        return out

    def forward(self, day: DayBatch) -> tuple[Tensor, Tensor]:
        """Return goals: quantities and unit prices, each ``[N, 2, B]`` in raw units."""
        return self.decode(self.latents(day), day)

    def decode(self, latents: Tensor, day: DayBatch) -> tuple[Tensor, Tensor]:
        """Return the heuristic's goals with residuals ``[N, 7·B + 1]``, clipped: ``clip(a_base + Δa, mask)``."""
        count = self.encoder.n_buckets
        role = day.x_role.unsqueeze(-1)  # [N, 2, 1]
        days = self.encoder.days(day.mask).unsqueeze(1)  # [N, 1, B]
        base = day.base[:, : 6 * count].view(-1, 3, 2, count)  # [N, part, side, bucket]
        change = latents[:, : 6 * count].view(-1, 3, 2, count)
        lines = day.lines.view(-1, 1, 1)
        # [N, 2, B] units between 0 and what the delivery days that exist allow
        most = torch.maximum(GOAL_CAP * days * lines, base[:, 0])
        quantity = clip(base[:, 0] + change[:, 0] * lines, torch.zeros_like(most), most)
        # [N, 2, B] prices inside the legal band, or as far outside as the heuristic's
        low, high = (day.price.unsqueeze(-1) * (1.0 + end.unsqueeze(-1)) for end in band(day.x_static))
        price = base[:, 1] + change[:, 1] * (high - low)
        price = clip(price, torch.minimum(low, base[:, 1]), torch.maximum(high, base[:, 1]))
        return quantity * role, price * role

    def act(self, day: DayBatch, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Sample residuals ``[N, 7·B + 1]``; return them with their log-probabilities ``[N]``."""
        policy = DiagonalGaussian(self.latents(day), self.log_std)
        latents = policy.sample(generator)
        return latents, policy.log_prob(latents)

    def evaluate(self, day: DayBatch, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probability and entropy ``[N]`` of sampled residuals ``[N, 7·B + 1]``."""
        policy = DiagonalGaussian(self.latents(day), self.log_std)
        return policy.log_prob(latents), policy.entropy()


def initial_log_std(count: int, log_scale: float) -> Tensor:
    """Return log σ of new residuals ``[7·B + 1]``: the step of each component times ``exp(log_scale)``."""
    steps = [GOAL_STEPS[0]] * (2 * count) + [GOAL_STEPS[1]] * (2 * count) + [GOAL_STEPS[2]] * (3 * count + 1)
    return torch.tensor(steps).log() + log_scale


def clip(values: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Clip values; the gradient is that of the values, so that what was clipped can be learned back."""
    clipped = torch.minimum(torch.maximum(values, low), high)
    return values + (clipped - values).detach()


def base_inputs(day: DayBatch) -> Tensor:
    """Return the heuristic's goals without units ``[N, 7·B + 1]``; as `policy.networks.inputs.base_inputs`."""
    count, size = day.base.shape
    by_side = day.base[:, : size - 1 - size // 7].view(count, 3, 2, -1)
    usual = day.price.clamp(min=1e-6).unsqueeze(-1)
    units = by_side[:, 0] / day.lines.clamp(min=1.0).view(-1, 1, 1)
    relative = (by_side[:, 1] / usual - 1.0) / PRICE_UNIT
    relative = torch.where(by_side[:, 1] > 0, relative, torch.zeros_like(relative))
    values = day.base[:, size - 1 - size // 7 :] / usual[:, 1]
    return torch.cat([units.flatten(1), relative.flatten(1), by_side[:, 2].flatten(1), values], dim=1).clamp(-10, 10)


def direct(inputs: int, outputs: int) -> nn.Linear:
    """Return a linear skip connection past the hidden layers, initially zero: a network includes a linear model."""
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def band(x_static: Tensor) -> tuple[Tensor, Tensor]:
    """Return the legal price bands relative to the trading price, low and high, each ``[N, 2]``."""
    low, high = band_columns()
    return PRICE_UNIT * x_static[:, list(low)], PRICE_UNIT * x_static[:, list(high)]


class ReturnCritic(nn.Module):
    """V(s): the expected return of a day, learned by regression; the baseline of AWR's advantages.

    Args:
        horizon: As in `HorizonManagerPPO`.
        league_horizon: Likewise.
        dim: Width of the network.
    """

    kind = "critic"

    def __init__(self, horizon: int = 40, league_horizon: int | None = None, *, dim: int = 64) -> None:
        super().__init__()
        self.encoder = DayEncoder(horizon, league_horizon, row_dim=16, dim=dim)
        self.head = nn.Linear(dim, 1)
        self.sizes = {"horizon": horizon, "dim": dim}

    def forward(self, day: DayBatch) -> Tensor:
        """Return the expected normalised return ``[N]``."""
        out: Tensor = self.head(self.encoder(day))
        return out.squeeze(-1)


def goal_spaces(horizon: int) -> tuple[Box, Box]:
    """Return the spaces of PPO: a flattened day (see `flatten`), and the residuals of its goals."""
    rows, latents = horizon + 1, 7 * len(buckets(horizon)) + 1
    size = N_STATIC + N_ROLE + rows * (N_TEMPORAL + 1) + 3 + latents
    return Box(-np.inf, np.inf, (size,), np.float32), Box(-np.inf, np.inf, (latents,), np.float32)


def unflatten(obs: Tensor, horizon: int) -> DayBatch:
    """Split flattened days ``[N, size]``; see `policy.networks.flat.flat_days`."""
    rows, latents = horizon + 1, 7 * len(buckets(horizon)) + 1
    sizes = [N_STATIC, N_ROLE, rows * N_TEMPORAL, rows, 1, 2, latents]
    static, role, temporal, mask, lines, price, base = torch.split(obs, sizes, dim=-1)
    return DayBatch(
        static, temporal.reshape(-1, rows, N_TEMPORAL), role, mask > 0.5, lines.squeeze(-1), price, base
    )  # fmt: skip


class GoalActor(Actor):
    """`HorizonManagerPPO` as an actor of `apexrl`'s PPO; observations and actions as in `goal_spaces`.

    Args:
        observation_space: Of `goal_spaces`.
        action_space: Of `goal_spaces`.
        horizon: Delivery days after today.
        dim: Width of the network.
    """

    wants_discrete = False

    def __init__(
        self, observation_space: Space[Any], action_space: Space[Any], *, horizon: int = 10, dim: int = 128
    ) -> None:
        super().__init__(observation_space, action_space)
        self.manager = HorizonManagerPPO(horizon, dim=dim)

    def forward(self, obs: Tensor) -> Tensor:
        """Return the mean residuals ``[*batch, 7·B + 1]``."""
        flat = obs.reshape(-1, obs.shape[-1])
        out: Tensor = self.manager.latents(unflatten(flat, self.manager.horizon))
        return out.reshape(*obs.shape[:-1], -1)


class GoalCritic(Critic):
    """The value of a flattened day for `apexrl`'s PPO.

    Args:
        observation_space: Of `goal_spaces`.
        horizon: Delivery days after today.
        dim: Width of the network.
    """

    def __init__(self, observation_space: Space[Any], *, horizon: int = 10, dim: int = 64) -> None:
        super().__init__(observation_space)
        self.critic = ReturnCritic(horizon, dim=dim)

    def forward(self, obs: Tensor) -> Tensor:
        """Return values ``[*batch]``."""
        flat = obs.reshape(-1, obs.shape[-1])
        out: Tensor = self.critic(unflatten(flat, self.critic.encoder.horizon))
        return out.reshape(obs.shape[:-1])

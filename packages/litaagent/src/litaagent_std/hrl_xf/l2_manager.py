"""L2 as a network: the day's goals, a quantity and a price for each side and delivery bucket.

The network is a policy: a diagonal Gaussian over unbounded *latents*, which `decode` squashes into bounds. Quantities
lie between 0 and what the lines of the bucket's days allow, prices inside the day's legal band, and a side that the
factory does not trade gets 0, so every sample of the Gaussian is a legal goal. Behaviour cloning trains the mean; PPO
uses `GoalActor` and `GoalCritic`.

A quantity, in days of full production, is nearly linear in its latent above 0 and nearly 0 below: most goals of a
bucket are 0, and the others differ by units, not by factors.
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
from litaagent_std.policy.buckets import buckets
from litaagent_std.policy.features import DAY_FEATURES
from litaagent_std.policy.networks.inputs import GOAL_CAP, GOAL_SHARPNESS, PRICE_UNIT, band_columns

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
    """

    x_static: Tensor
    x_temporal: Tensor
    x_role: Tensor
    mask: Tensor
    lines: Tensor
    price: Tensor


class DayEncoder(nn.Module):
    """Encoder of a day: delivery days are embedded, averaged by bucket, and concatenated with the rest.

    Args:
        horizon: Largest number of delivery days after today.
        league_horizon: The league's horizon, which defines the buckets; default: ``horizon``.
        row_dim: Width of an embedded delivery day.
        dim: Width of the result.
    """

    pool: Tensor

    def __init__(self, horizon: int, league_horizon: int | None = None, *, row_dim: int = 24, dim: int = 128) -> None:
        super().__init__()
        self.horizon, self.dim = horizon, dim
        self.n_buckets = len(buckets(horizon))
        self.rows = nn.Linear(N_TEMPORAL, row_dim)
        self.n_inputs = N_STATIC + N_ROLE + self.n_buckets * (row_dim + 1)
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

    def both(self, day: DayBatch) -> tuple[Tensor, Tensor]:
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
        joined = torch.cat([day.x_static, day.x_role, pooled.flatten(1), share], dim=1)
        hidden = torch.relu(self.hidden(joined))
        return hidden + torch.relu(self.out(hidden)), joined


class HorizonManagerPPO(nn.Module):
    """The day's goals as a Gaussian policy over latents, with a value head.

    Args:
        horizon: Largest number of delivery days after today; data of a shorter horizon is accepted and defines buckets.
        league_horizon: The league's horizon; default: ``horizon``.
        dim: Width of the network.
        row_dim: Width of an embedded delivery day.
    """

    kind = "l2"

    def __init__(
        self, horizon: int = 40, league_horizon: int | None = None, *, dim: int = 128, row_dim: int = 24
    ) -> None:
        super().__init__()
        self.encoder = DayEncoder(horizon, league_horizon, row_dim=row_dim, dim=dim)
        self.n_latents = 4 * self.encoder.n_buckets
        self.head = nn.Linear(dim, self.n_latents)
        self.skip = direct(self.encoder.n_inputs, self.n_latents)
        self.days_skip = direct((horizon + 1) * (N_TEMPORAL + 1), self.n_latents)
        self.value_head = nn.Linear(dim, 1)
        self.log_std = nn.Parameter(torch.full((self.n_latents,), -1.0))
        with torch.no_grad():
            self.head.weight.mul_(0.1)
            self.head.bias[: self.n_latents // 2] = 0.1  # initial goals are small, as recorded ones are
        self.sizes = {"horizon": horizon, "dim": dim, "row_dim": row_dim}

    @property
    def horizon(self) -> int:
        """Largest number of delivery days after today."""
        return self.encoder.horizon

    def latents(self, day: DayBatch) -> Tensor:
        """Return the means of the latents ``[N, 2, 2, B]``: quantity and price, buying and selling, buckets."""
        return self._code_and_mean(day)[1].view(-1, 2, 2, self.encoder.n_buckets)

    def _code_and_mean(self, day: DayBatch) -> tuple[Tensor, Tensor]:
        code, inputs = self.encoder.both(day)
        rows = torch.cat([day.x_temporal, day.mask.unsqueeze(-1).to(day.x_temporal.dtype)], dim=-1)
        rows = functional.pad(rows, (0, 0, 0, self.horizon + 1 - rows.shape[1]))  # [N, H + 1, T + 1]
        return code, self.head(code) + self.skip(inputs) + self.days_skip(rows.flatten(1))

    def forward(self, day: DayBatch) -> tuple[Tensor, Tensor]:
        """Return goals: quantities and unit prices, each ``[N, 2, B]`` in raw units."""
        return self.decode(self.latents(day), day)

    def decode(self, latents: Tensor, day: DayBatch) -> tuple[Tensor, Tensor]:
        """Squash latents ``[N, 2, 2, B]`` into legal goals in raw units."""
        role = day.x_role.unsqueeze(-1)  # [N, 2, 1]
        days = self.encoder.days(day.mask).unsqueeze(1)  # [N, 1, B]
        # [N, 2, B] units: softplus in days of full production, capped by the days that exist
        units = functional.softplus(latents[:, 0], beta=GOAL_SHARPNESS) * day.lines.view(-1, 1, 1)
        quantity = torch.minimum(units, GOAL_CAP * days * day.lines.view(-1, 1, 1)) * role
        low, high = band(day.x_static)
        position = torch.sigmoid(latents[:, 1])
        # [N, 2, B] price inside the legal band, relative to the trading price
        relative = low.unsqueeze(-1) + (high - low).unsqueeze(-1) * position
        return quantity, day.price.unsqueeze(-1) * (1.0 + relative) * role

    def value(self, day: DayBatch) -> Tensor:
        """Return the expected return ``[N]``."""
        out: Tensor = self.value_head(self.encoder(day))
        return out.squeeze(-1)

    def act(self, day: DayBatch, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Sample latents ``[N, 4·B]``; return them with their log-probabilities ``[N]`` and the values ``[N]``."""
        code, mean = self._code_and_mean(day)
        # z = μ + σ·ε, [N, 4·B]
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        latents = mean + noise * self.log_std.exp()
        return latents, self._log_prob(mean, latents), self.value_head(code).squeeze(-1)

    def evaluate(self, day: DayBatch, latents: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probability, entropy and value ``[N]`` of sampled latents ``[N, 4·B]``."""
        code, mean = self._code_and_mean(day)
        normal = torch.distributions.Normal(mean, self.log_std.exp())
        entropy = normal.entropy().sum(-1)  # type: ignore[no-untyped-call]  # torch's own annotation is missing
        return self._log_prob(mean, latents), entropy, self.value_head(code).squeeze(-1)

    def _log_prob(self, mean: Tensor, latents: Tensor) -> Tensor:
        normal = torch.distributions.Normal(mean, self.log_std.exp())
        out: Tensor = normal.log_prob(latents).sum(-1)  # type: ignore[no-untyped-call]  # as above
        return out


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
    """Return the spaces of PPO: a flattened day (see `unflatten`), and the latents of its goals."""
    rows = horizon + 1
    size = N_STATIC + N_ROLE + rows * (N_TEMPORAL + 1)
    latents = 4 * len(buckets(horizon))
    return Box(-np.inf, np.inf, (size,), np.float32), Box(-np.inf, np.inf, (latents,), np.float32)


def unflatten(obs: Tensor, horizon: int) -> DayBatch:
    """Split flattened days ``[N, size]`` into x_static, x_role, x_temporal and mask; scales are not part of them."""
    rows = horizon + 1
    static, role, temporal, mask = torch.split(obs, [N_STATIC, N_ROLE, rows * N_TEMPORAL, rows], dim=-1)
    count = obs.shape[0]
    ones = obs.new_ones(count)
    scale = ones.unsqueeze(-1).expand(-1, 2)
    return DayBatch(static, temporal.reshape(count, rows, N_TEMPORAL), role, mask > 0.5, ones, scale)


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
        """Return the means of the latents ``[*batch, 4·B]``."""
        flat = obs.reshape(-1, obs.shape[-1])
        out: Tensor = self.manager.latents(unflatten(flat, self.manager.horizon)).flatten(1)
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

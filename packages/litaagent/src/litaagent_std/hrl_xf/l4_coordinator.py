"""L4 as a network: attention over the threads of a round, a weight α for each.

α scales a thread's residuals and concession, and orders the threads of a round; 1 is neutral, and a new network gives 1
to every thread. Distilled from the exact coordinator (`policy.plan.best_subsets`), α is the odds that it accepts the
thread's offer. Threads attend to each other, so that an offer has less weight beside better ones.

As a policy it is a Gaussian over the logarithms of α.
"""

from __future__ import annotations

from math import log, pi
from typing import Final, Self

import torch
from torch import Tensor, nn

from apexrl.models.distributions import Distribution
from litaagent_std.policy.networks.inputs import ALPHA_STEP, L4_SIZE, MASKED

__all__ = ["MaskedGaussian", "ThreadCoordinator"]

_HALF_LOG_2PI: Final = 0.5 * log(2.0 * pi)


class ThreadCoordinator(nn.Module):
    """Weights of the threads of a round.

    Args:
        dim: Width of the network.
        heads: Heads of attention; divides ``dim``.
        layers: Blocks of attention.
    """

    kind = "l4"

    def __init__(self, *, dim: int = 32, heads: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Linear(L4_SIZE, dim)
        self.blocks = nn.ModuleList(_Block(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.log_std = nn.Parameter(torch.tensor([ALPHA_STEP]).log() - 1.5)
        self.sizes = {"dim": dim, "heads": heads, "layers": layers}

    def forward(self, threads: Tensor, mask: Tensor) -> Tensor:
        """Return the logarithms of α ``[N, K]``: the logits of acceptance by the exact coordinator.

        Args:
            threads: Inputs of each thread ``[N, K, L4_SIZE]``, see `policy.networks.inputs.coordinator_inputs`.
            mask: Threads that exist, bool ``[N, K]``.
        """
        tokens = torch.relu(self.embed(threads))  # [N, K, dim]
        for block in self.blocks:
            tokens = block(tokens, mask)
        out: Tensor = self.out(self.norm(tokens))
        return out.squeeze(-1)

    def act(self, threads: Tensor, mask: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Sample logarithms of α ``[N, K]``; return them with their log-probabilities ``[N]``."""
        policy = MaskedGaussian(self(threads, mask), self.log_std, mask)
        actions = policy.sample(generator)
        return actions, policy.log_prob(actions)

    def evaluate(self, threads: Tensor, mask: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probability and entropy ``[N]`` of sampled logarithms of α ``[N, K]``."""
        policy = MaskedGaussian(self(threads, mask), self.log_std, mask)
        return policy.log_prob(actions), policy.entropy()


class MaskedGaussian(Distribution):
    """Normal distributions with one σ, of the threads that exist.

    Args:
        mean: ``[*batch, K]``.
        log_std: ``[1]``.
        mask: Threads that exist, bool ``[*batch, K]``.
    """

    def __init__(self, mean: Tensor, log_std: Tensor, mask: Tensor) -> None:
        self.mean, self.log_std, self.mask = mean, log_std, mask.to(mean.dtype)

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw actions ``[*batch, K]``; 0 where there is no thread."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return (self.mean + noise * self.log_std.exp()) * self.mask

    def mode(self) -> Tensor:
        """Return the means; 0 where there is no thread."""
        return self.mean * self.mask

    def log_prob(self, actions: Tensor) -> Tensor:
        """Compute Σ −½((a−μ)/σ)² − log σ − ½ log 2π over the threads that exist."""
        z = (actions - self.mean) * torch.exp(-self.log_std)
        return ((-0.5 * z.square() - self.log_std - _HALF_LOG_2PI) * self.mask).sum(-1)

    def entropy(self) -> Tensor:
        """Compute Σ log σ + ½ log 2πe over the threads that exist."""
        return ((self.log_std + _HALF_LOG_2PI + 0.5) * self.mask).sum(-1)

    def kl(self, other: Self) -> Tensor:
        """Compute the divergence of the threads that exist."""
        ratio = torch.exp(2.0 * (self.log_std - other.log_std))
        distance = ((self.mean - other.mean) * torch.exp(-other.log_std)).square()
        return ((other.log_std - self.log_std + 0.5 * (ratio + distance - 1.0)) * self.mask).sum(-1)


class _Block(nn.Module):
    """Self-attention among threads and a feed-forward layer."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Linear(dim, 3 * dim)
        self.project = nn.Linear(dim, dim)
        self.norm_up = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return new tokens ``[N, K, D]`` from tokens ``[N, K, D]`` and their mask bool ``[N, K]``."""
        count, length, width = tokens.shape
        mixed = self.mix(self.norm(tokens)).view(count, length, 3, self.heads, width // self.heads)
        query, key, value = mixed.unbind(2)  # each [N, K, heads, D / heads]
        # attention among the threads of a round, [N, heads, K, K]
        scores = torch.einsum("nihd,njhd->nhij", query, key) * (width // self.heads) ** -0.5
        weights = scores.masked_fill(~mask[:, None, None, :], MASKED).softmax(-1)
        tokens = tokens + self.project(torch.einsum("nhij,njhd->nihd", weights, value).flatten(2))
        out: Tensor = tokens + self.down(torch.relu(self.up(self.norm_up(tokens))))
        return out

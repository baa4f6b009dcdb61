"""L4 as a network: attention over the threads of a round, a weight α for each.

α is the probability that the exact coordinator (`policy.plan.best_subsets`) accepts the thread's offer; the
network is distilled from it. Threads attend to each other, so that an offer has less weight beside better ones.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from litaagent_std.policy.networks.inputs import L4_SIZE, MASKED

__all__ = ["ThreadCoordinator"]


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
        self.sizes = {"dim": dim, "heads": heads, "layers": layers}

    def forward(self, threads: Tensor, mask: Tensor) -> Tensor:
        """Return the logits of α ``[N, K]``.

        Args:
            threads: Inputs of each thread ``[N, K, L4_SIZE]``, see `policy.networks.inputs.coordinator_inputs`.
            mask: Threads that exist, bool ``[N, K]``.
        """
        tokens = torch.relu(self.embed(threads))  # [N, K, dim]
        for block in self.blocks:
            tokens = block(tokens, mask)
        out: Tensor = self.out(self.norm(tokens))
        return out.squeeze(-1)


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

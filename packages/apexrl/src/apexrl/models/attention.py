"""Attention over sets of varying size."""

from torch import Tensor, nn
from torch.nn import functional

from apexrl.models.mlp import make_mlp, orthogonal_linear


class _SetAttentionBlock(nn.Module):
    """Self-attention and a feed-forward layer, each behind a LayerNorm and with a residual connection.

    Args:
        dim: Width of a token.
        num_heads: Number of attention heads; divides `dim`.
        feedforward_dim: Width of the hidden feed-forward layer.
    """

    def __init__(self, dim: int, num_heads: int, feedforward_dim: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm_attention = nn.LayerNorm(dim)
        self.norm_feedforward = nn.LayerNorm(dim)
        self.query_key_value = orthogonal_linear(dim, 3 * dim, 1.0)
        self.project = orthogonal_linear(dim, dim, 1.0)
        self.feedforward = make_mlp(dim, (feedforward_dim,), dim, activation="gelu")

    def forward(self, tokens: Tensor, attend: Tensor) -> Tensor:
        """Encode tokens ``[B, N, dim]``; `attend` bool ``[B, N]``: which tokens others may attend to.

        Where a row has nothing to attend to, torch's attention gives zeros, not NaN.
        """
        batch, length, dim = tokens.shape
        mixed = self.query_key_value(self.norm_attention(tokens))
        heads = mixed.view(batch, length, 3, self.num_heads, dim // self.num_heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each [B, heads, N, dim / heads]
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=attend[:, None, None, :])
        tokens = tokens + self.project(seen.transpose(1, 2).reshape(batch, length, dim))
        out: Tensor = tokens + self.feedforward(self.norm_feedforward(tokens))
        return out


class SetEncoder(nn.Module):
    """A permutation-equivariant encoder of masked sets, with a pooled summary.

    Absent elements influence nothing and come out as zeros; an empty set gives zeros, never NaN.

    Args:
        input_dim: Number of features of an element.
        dim: Width of the encoding.
        num_heads: Number of attention heads; must divide `dim`.
        num_layers: Number of attention blocks.
        feedforward_dim: Width of the feed-forward layers; None takes 2·dim.

    Raises:
        ValueError: If `num_heads` does not divide `dim`.
    """

    def __init__(
        self,
        input_dim: int,
        *,
        dim: int = 64,
        num_heads: int = 4,
        num_layers: int = 1,
        feedforward_dim: int | None = None,
    ) -> None:
        super().__init__()
        if dim % num_heads:
            raise ValueError(f"num_heads must divide dim, got dim={dim} and num_heads={num_heads}.")
        self.embed = orthogonal_linear(input_dim, dim, 1.0)
        width = 2 * dim if feedforward_dim is None else feedforward_dim
        self.blocks = nn.ModuleList(_SetAttentionBlock(dim, num_heads, width) for _ in range(num_layers))
        self.norm = nn.LayerNorm(dim)
        self.dim = dim

    def forward(self, elements: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encode sets.

        Args:
            elements: ``[*batch, N, input_dim]``; absent rows may hold anything finite.
            mask: bool ``[*batch, N]``, True = present.

        Returns:
            Encoded elements ``[*batch, N, dim]`` and their mean over the present ones ``[*batch, dim]``.
        """
        batch, length = mask.shape[:-1], mask.shape[-1]
        present = mask.reshape(-1, length)
        tokens = self.embed(elements.reshape(-1, length, elements.shape[-1]))
        for block in self.blocks:
            tokens = block(tokens, present)
        encoded = self.norm(tokens) * present.unsqueeze(-1)
        count = present.sum(-1, keepdim=True).clamp(min=1)
        pooled = encoded.sum(-2) / count.to(encoded.dtype)
        return encoded.reshape(*batch, length, self.dim), pooled.reshape(*batch, self.dim)

"""Building blocks of the networks: a recurrent trunk and the transformer of the skill coordinator.

Shapes: L steps of a sequence, B sequences, H width, N tokens (the state and one per agent).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from apexrl.models.mlp import make_mlp, orthogonal_linear

HEAD_GAIN = 0.01
"""Gain of the last layer of policies: small weights make the first policy nearly uniform."""
VALUE_DECAY = 0.99999
"""β of the value normalisers' averages, as in MAPPO."""
VALUE_VARIANCE_FLOOR = 1e-4
"""Smallest variance that values are normalised by; it matters until a sparse reward is seen."""


class RecurrentTrunk(nn.Module):
    """LayerNorm → MLP → GRU → LayerNorm.

    Args:
        n_inputs: Length of one input.
        width: Width of the hidden layers and of the memory.
    """

    def __init__(self, n_inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.features = nn.Sequential(
            nn.LayerNorm(n_inputs), make_mlp(n_inputs, (width, width), None, activation="relu", layer_norm=True)
        )
        self.memory = nn.GRU(width, width)
        for name, parameter in self.memory.named_parameters():
            if "weight" in name:
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)
        self.norm = nn.LayerNorm(width)

    def forward(self, inputs: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Run over sequences whose only possible episode start is their first step.

        Args:
            inputs: ``[L, B, n_inputs]``.
            memory: Memory before the first step ``[B, H]``; zeros at an episode start.

        Returns:
            Features ``[L, B, H]`` and the memory after every step ``[L, B, H]``.
        """
        memories, _ = self.memory(self.features(inputs), memory.unsqueeze(0).contiguous())
        return self.norm(memories), memories


class Attention(nn.Module):
    """Single-head scaled dot-product attention.

    Args:
        width: Width of tokens.
        causal: Whether a token sees only itself and earlier tokens.
    """

    def __init__(self, width: int, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.query = orthogonal_linear(width, width, 1.0)
        self.key = orthogonal_linear(width, width, 1.0)
        self.value = orthogonal_linear(width, width, 1.0)
        self.output = orthogonal_linear(width, width, 1.0)

    def forward(self, query: Tensor, source: Tensor) -> Tensor:
        """Let tokens ``query [B, N, H]`` attend to tokens ``source [B, N, H]``; returns ``[B, N, H]``."""
        mixed = F.scaled_dot_product_attention(
            self.query(query), self.key(source), self.value(source), is_causal=self.causal
        )
        out: Tensor = self.output(mixed)
        return out


class EncoderBlock(nn.Module):
    """Full self-attention and a feed-forward layer, each with a residual and a LayerNorm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = Attention(width, causal=False)
        self.feed_forward = make_mlp(width, (width,), width, activation="gelu")
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens ``[B, N, H]`` to tokens of the same shape."""
        tokens = self.norms[0](tokens + self.attention(tokens, tokens))
        out: Tensor = self.norms[1](tokens + self.feed_forward(tokens))
        return out


class DecoderBlock(nn.Module):
    """Causal self-attention over choices, then masked cross-attention whose query is the encoder's output."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.self_attention = Attention(width, causal=True)
        self.cross_attention = Attention(width, causal=True)
        self.feed_forward = make_mlp(width, (width,), width, activation="gelu")
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, choices: Tensor, encoded: Tensor) -> Tensor:
        """Decode ``[B, N, H]`` from choices so far and encoder output, both ``[B, N, H]``; token i sees choices ≤ i."""
        choices = self.norms[0](choices + self.self_attention(choices, choices))
        choices = self.norms[1](encoded + self.cross_attention(encoded, choices))
        out: Tensor = self.norms[2](choices + self.feed_forward(choices))
        return out


def token_embedding(n_inputs: int, width: int) -> nn.Sequential:
    """Return LayerNorm → linear → GELU, from an observation or a state to a token."""
    return nn.Sequential(nn.LayerNorm(n_inputs), orthogonal_linear(n_inputs, width, math.sqrt(2.0)), nn.GELU())


def value_head(width: int) -> nn.Sequential:
    """Return an MLP from a token to its value ``[..., 1]``."""
    return make_mlp(width, (width,), 1, activation="gelu", layer_norm=True)


def policy_head(width: int, n_outputs: int) -> nn.Sequential:
    """Return an MLP from a token to small logits ``[..., n_outputs]``."""
    return make_mlp(width, (width,), n_outputs, activation="gelu", layer_norm=True, output_gain=HEAD_GAIN)


def one_hot(index: Tensor, n: int, dtype: torch.dtype | None = None) -> Tensor:
    """Return the one-hot code ``[..., n]`` of int64 ``index [...]``; ``dtype`` is torch's default if None."""
    return F.one_hot(index, n).to(torch.get_default_dtype() if dtype is None else dtype)

"""Networks with memory: an encoder, a GRU and a head."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Unpack

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.models.base import RecurrentActor, RecurrentCritic, flatten_batch
from apexrl.models.heads import GaussianOptions
from apexrl.models.mlp import make_mlp


class GRUMemory(nn.Module):
    """A GRU over ``[T, B]`` sequences that forgets where an episode starts.

    The recurrence runs in one call per stretch without starts, so a sequence costs little more than its
    longest stretch, and gives what stepping through it one by one gives.

    Args:
        input_dim: Number of inputs.
        hidden_dim: Width of the memory.
        num_layers: Number of stacked GRU layers.
    """

    def __init__(self, input_dim: int, hidden_dim: int, num_layers: int = 1) -> None:
        super().__init__()
        self.gru = nn.GRU(input_dim, hidden_dim, num_layers)
        self.hidden_dim = hidden_dim
        self.num_layers = num_layers
        for name, parameter in self.gru.named_parameters():
            if "weight" in name:
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)

    def initial_state(self, batch_size: int) -> Tensor:
        """Return zeros ``[batch_size, num_layers, hidden_dim]``."""
        weight = next(self.gru.parameters())
        return torch.zeros(batch_size, self.num_layers, self.hidden_dim, dtype=weight.dtype, device=weight.device)

    def forward(self, inputs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Run over a sequence.

        Args:
            inputs: ``[T, B, input_dim]``.
            state: ``[B, num_layers, hidden_dim]``, the memory before the first step.
            episode_starts: bool ``[T, B]``; the memory is zeroed before these steps.

        Returns:
            Outputs ``[T, B, hidden_dim]`` and the memory after the last step.
        """
        hidden = state.transpose(0, 1).contiguous()  # [layers, B, H]
        length = inputs.shape[0]
        if length == 1:
            outputs, hidden = self.gru(inputs, _forget(hidden, episode_starts[0]))
            return outputs, hidden.transpose(0, 1)
        starts_later = episode_starts[1:].any(dim=1).nonzero().flatten() + 1
        cuts: list[int] = [0, *starts_later.tolist(), length]
        pieces = []
        for begin, end in pairwise(cuts):
            piece, hidden = self.gru(inputs[begin:end], _forget(hidden, episode_starts[begin]))
            pieces.append(piece)
        return torch.cat(pieces), hidden.transpose(0, 1)


def _forget(hidden: Tensor, starts: Tensor) -> Tensor:
    """Zero the memory ``[layers, B, H]`` of the rows that start; filling also removes NaN and infinity."""
    return hidden.masked_fill(starts.view(1, -1, 1), 0.0)


class _GRUPolicy(RecurrentActor):
    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        *,
        hidden_dims: Sequence[int] = (64,),
        rnn_hidden_dim: int = 64,
        rnn_num_layers: int = 1,
        head_dims: Sequence[int] = (),
        activation: str | type[nn.Module] = "tanh",
        layer_norm: bool = False,
        **head_options: Unpack[GaussianOptions],
    ) -> None:
        super().__init__(observation_space, action_space, **head_options)
        width = hidden_dims[-1] if hidden_dims else self.obs_dim
        self.encoder = make_mlp(self.obs_dim, hidden_dims, None, activation=activation, layer_norm=layer_norm)
        self.memory = GRUMemory(width, rnn_hidden_dim, rnn_num_layers)
        self.norm = nn.LayerNorm(rnn_hidden_dim) if layer_norm else nn.Identity()
        self.output = make_mlp(rnn_hidden_dim, head_dims, self.head.num_inputs, activation=activation, output_gain=0.01)

    def initial_state(self, batch_size: int) -> Tensor:
        """Return zeros ``[batch_size, rnn_num_layers, rnn_hidden_dim]``."""
        return self.memory.initial_state(batch_size)

    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the head's inputs ``[T, B, n]`` and the memory after the last step."""
        features = self.encoder(flatten_batch(obs, self.observation_space))
        features, state = self.memory(features, state, episode_starts)
        return self.output(self.norm(features)), state


class GRUActor(_GRUPolicy):
    """A Gaussian policy with memory.

    Args:
        observation_space: Space of one observation; flattened.
        action_space: One-dimensional Box.
        hidden_dims: Layers before the GRU.
        rnn_hidden_dim: Width of the GRU.
        rnn_num_layers: Number of stacked GRU layers.
        head_dims: Layers after the GRU.
        activation: Name or class.
        layer_norm: Normalise hidden layers and the GRU's output.
        **head_options: Keyword arguments of `apexrl.models.heads.GaussianHead`.

    Raises:
        TypeError: If the action space is discrete.
    """

    wants_discrete = False
    counterpart = "GRUDiscreteActor"


class GRUDiscreteActor(_GRUPolicy):
    """A categorical policy with memory; arguments as in `GRUActor`, without the Gaussian's.

    Raises:
        TypeError: If the action space is continuous.
    """

    wants_discrete = True
    counterpart = "GRUActor"


class GRUCritic(RecurrentCritic):
    """A value function with memory; arguments as in `GRUActor`, without the action's."""

    def __init__(
        self,
        observation_space: Space[Any],
        *,
        hidden_dims: Sequence[int] = (64,),
        rnn_hidden_dim: int = 64,
        rnn_num_layers: int = 1,
        head_dims: Sequence[int] = (),
        activation: str | type[nn.Module] = "tanh",
        layer_norm: bool = False,
    ) -> None:
        super().__init__(observation_space)
        width = hidden_dims[-1] if hidden_dims else self.obs_dim
        self.encoder = make_mlp(self.obs_dim, hidden_dims, None, activation=activation, layer_norm=layer_norm)
        self.memory = GRUMemory(width, rnn_hidden_dim, rnn_num_layers)
        self.norm = nn.LayerNorm(rnn_hidden_dim) if layer_norm else nn.Identity()
        self.output = make_mlp(rnn_hidden_dim, head_dims, 1, activation=activation)

    def initial_state(self, batch_size: int) -> Tensor:
        """Return zeros ``[batch_size, rnn_num_layers, rnn_hidden_dim]``."""
        return self.memory.initial_state(batch_size)

    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Compute values ``[T, B]`` and the memory after the last step."""
        features = self.encoder(flatten_batch(obs, self.observation_space))
        features, state = self.memory(features, state, episode_starts)
        return self.output(self.norm(features)).squeeze(-1), state

"""Networks with memory: an encoder, a GRU and a head."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypedDict, Unpack

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.models.base import RecurrentActor, RecurrentCritic, split_head_options
from apexrl.models.encoders import VectorEncoder, default_encoder_class
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


class GRUOptions(TypedDict, total=False):
    """Keyword arguments of `GRUCritic`."""

    hidden_dims: Sequence[int]
    rnn_hidden_dim: int
    rnn_num_layers: int
    head_dims: Sequence[int]
    activation: str | type[nn.Module]
    layer_norm: bool


class GRUActorOptions(GRUOptions, GaussianOptions):
    """Keyword arguments of `GRUActor`."""


class _GRULayers(nn.Module):
    """The layers that policies and value functions with memory share."""

    def _build(
        self,
        observation_space: Space[Any],
        num_outputs: int,
        output_gain: float,
        *,
        hidden_dims: Sequence[int] = (64,),
        rnn_hidden_dim: int = 64,
        rnn_num_layers: int = 1,
        head_dims: Sequence[int] = (),
        activation: str | type[nn.Module] = "tanh",
        layer_norm: bool = False,
    ) -> None:
        encoder: Any = default_encoder_class(observation_space)
        options: dict[str, Any] = {"hidden_dims": hidden_dims, "activation": activation}
        if encoder is VectorEncoder:
            options["layer_norm"] = layer_norm
        self.encoder = encoder(observation_space, **options)
        self.memory = GRUMemory(int(self.encoder.num_features), rnn_hidden_dim, rnn_num_layers)
        self.norm = nn.LayerNorm(rnn_hidden_dim) if layer_norm else nn.Identity()
        self.output = make_mlp(rnn_hidden_dim, head_dims, num_outputs, activation=activation, output_gain=output_gain)

    def initial_state(self, batch_size: int) -> Tensor:
        """Return zeros ``[batch_size, rnn_num_layers, rnn_hidden_dim]``."""
        return self.memory.initial_state(batch_size)

    def _run(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs ``[T, B, num_outputs]`` and the memory after the last step."""
        features, state = self.memory(self.encoder(obs), state, episode_starts)
        return self.output(self.norm(features)), state


class _GRUPolicy(_GRULayers, RecurrentActor):
    def __init__(
        self, observation_space: Space[Any], action_space: Space[Any], **options: Unpack[GRUActorOptions]
    ) -> None:
        head_options, layer_options = split_head_options(options)
        super().__init__(observation_space, action_space, **head_options)
        self._build(observation_space, self.head.num_inputs, 0.01, **layer_options)

    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the head's inputs ``[T, B, n]`` and the memory after the last step."""
        return self._run(obs, state, episode_starts)


class GRUActor(_GRUPolicy):
    """A Gaussian policy with memory.

    Args:
        observation_space: Space of one observation; pictures go through convolutions, the rest is flattened.
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


class GRUCritic(_GRULayers, RecurrentCritic):
    """A value function with memory; arguments as in `GRUActor`, without the action's."""

    def __init__(self, observation_space: Space[Any], **options: Unpack[GRUOptions]) -> None:
        super().__init__(observation_space)
        self._build(observation_space, 1, 1.0, **options)

    def forward(self, obs: Tensor, state: Tensor, episode_starts: Tensor) -> tuple[Tensor, Tensor]:
        """Compute values ``[T, B]`` and the memory after the last step."""
        values, state = self._run(obs, state, episode_starts)
        return values.squeeze(-1), state

"""Fully connected networks."""

import math
from collections.abc import Sequence
from typing import Any, Unpack

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.models.base import Actor, Critic
from apexrl.models.heads import GaussianOptions

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "leaky_relu": nn.LeakyReLU,
    "softplus": nn.Softplus,
    "sigmoid": nn.Sigmoid,
    "identity": nn.Identity,
}


def make_activation(activation: str | type[nn.Module]) -> nn.Module:
    """Return an activation from its name (see `ACTIVATIONS`) or its class.

    Raises:
        ValueError: If the name is unknown.
    """
    if not isinstance(activation, str):
        return activation()
    try:
        return ACTIVATIONS[activation.lower()]()
    except KeyError:
        raise ValueError(
            f"Unknown activation {activation!r}: use one of {sorted(ACTIVATIONS)} or an nn.Module class."
        ) from None


def orthogonal_linear(in_features: int, out_features: int, gain: float) -> nn.Linear:
    """Return a linear layer with orthogonal weights of the given gain and zero bias."""
    layer = nn.Linear(in_features, out_features)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def make_mlp(
    input_dim: int,
    hidden_dims: Sequence[int],
    output_dim: int | None,
    *,
    activation: str | type[nn.Module] = "tanh",
    output_gain: float = 1.0,
    layer_norm: bool = False,
) -> nn.Sequential:
    """Build linear layers with activations between them, orthogonal with gain √2 (hidden) and `output_gain` (last).

    Args:
        input_dim: Number of inputs.
        hidden_dims: Width of each hidden layer.
        output_dim: Number of outputs; None ends after the last hidden activation.
        activation: Name or class.
        output_gain: Gain of the last layer; small values make the first policy nearly uniform.
        layer_norm: Normalise each hidden layer before its activation.

    Raises:
        TypeError: If the widths are no list.
        ValueError: If a width is not positive.
    """
    if not isinstance(hidden_dims, Sequence):
        raise TypeError(f"hidden_dims={hidden_dims!r} must be a list of widths, such as [64, 64].")
    if any(width <= 0 for width in hidden_dims):
        raise ValueError(f"hidden_dims must be positive, got {list(hidden_dims)}.")
    layers: list[nn.Module] = []
    width = input_dim
    for hidden in hidden_dims:
        layers.append(orthogonal_linear(width, hidden, math.sqrt(2.0)))
        if layer_norm:
            layers.append(nn.LayerNorm(hidden))
        layers.append(make_activation(activation))
        width = hidden
    if output_dim is not None:
        layers.append(orthogonal_linear(width, output_dim, output_gain))
    return nn.Sequential(*layers)


def flatten_batch(obs: Tensor, space: Space[Any]) -> Tensor:
    """Flatten ``[*batch, *obs]`` to float ``[*batch, prod(obs)]``."""
    shape = space.shape
    assert shape is not None  # flat_dim refused such spaces at construction
    if len(shape) != 1:
        obs = obs.reshape(*obs.shape[: obs.dim() - len(shape)], -1)
    return obs if obs.is_floating_point() else obs.to(torch.get_default_dtype())


class _MLPPolicy(Actor):
    """The network that both MLP actors share."""

    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        *,
        hidden_dims: Sequence[int] = (64, 64),
        activation: str | type[nn.Module] = "tanh",
        layer_norm: bool = False,
        output_gain: float = 0.01,
        **head_options: Unpack[GaussianOptions],
    ) -> None:
        super().__init__(observation_space, action_space, **head_options)
        self.net = make_mlp(
            self.obs_dim,
            hidden_dims,
            self.head.num_inputs,
            activation=activation,
            output_gain=output_gain,
            layer_norm=layer_norm,
        )

    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, *obs]`` to the head's inputs."""
        out: Tensor = self.net(flatten_batch(obs, self.observation_space))
        return out


class MLPActor(_MLPPolicy):
    """A Gaussian policy for continuous actions.

    Args:
        observation_space: Space of one observation; flattened.
        action_space: One-dimensional Box.
        hidden_dims: Width of each hidden layer.
        activation: Name or class.
        layer_norm: Normalise hidden layers.
        output_gain: Gain of the last layer; small values make the first policy nearly uniform.
        **head_options: `log_std_init`, `state_dependent_std`, `squash`, `log_std_range`; see
            `apexrl.models.heads.GaussianHead`.

    Raises:
        TypeError: If the action space is discrete.
    """

    wants_discrete = False
    counterpart = "MLPDiscreteActor"


class MLPDiscreteActor(_MLPPolicy):
    """A categorical policy for Discrete, MultiDiscrete and MultiBinary actions, with optional action masks.

    Args:
        observation_space: Space of one observation; flattened.
        action_space: Discrete, MultiDiscrete or MultiBinary.
        hidden_dims: Width of each hidden layer.
        activation: Name or class.
        layer_norm: Normalise hidden layers.
        output_gain: Gain of the last layer; small values make the first policy nearly uniform, larger ones let agents
            that signal to each other start with signals that differ.

    Raises:
        TypeError: If the action space is continuous.
    """

    wants_discrete = True
    counterpart = "MLPActor"


class MLPCritic(Critic):
    """A value function.

    Args:
        observation_space: Space of what the critic sees; flattened.
        hidden_dims: Width of each hidden layer.
        activation: Name or class.
        layer_norm: Normalise hidden layers.
    """

    def __init__(
        self,
        observation_space: Space[Any],
        *,
        hidden_dims: Sequence[int] = (64, 64),
        activation: str | type[nn.Module] = "tanh",
        layer_norm: bool = False,
    ) -> None:
        super().__init__(observation_space)
        self.net = make_mlp(self.obs_dim, hidden_dims, 1, activation=activation, layer_norm=layer_norm)

    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, *obs]`` to values ``[*batch]``."""
        out: Tensor = self.net(flatten_batch(obs, self.observation_space))
        return out.squeeze(-1)

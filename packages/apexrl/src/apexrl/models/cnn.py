"""Convolutional networks for image observations."""

import math
from collections.abc import Sequence
from typing import Any, Unpack

from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.models.base import Actor, Critic
from apexrl.models.heads import GaussianOptions
from apexrl.models.mlp import make_activation, make_mlp

ConvLayer = tuple[int, int, int]
"""(channels, kernel size, stride)."""

_NATURE_CNN: tuple[ConvLayer, ...] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""The layers of Mnih et al. (2015), for images of at least 36 × 36."""


class CNNEncoder(nn.Module):
    """Images to feature vectors.

    uint8 images are divided by 255; float images are taken as they are.

    Args:
        observation_space: Box of shape (channels, height, width) or (height, width, channels).
        conv_layers: (channels, kernel, stride) of each layer.
        hidden_dims: Fully connected layers after the convolutions; the last is the number of features.
        activation: Name or class.
        channels_last: Where the channels are; None takes the end that is smaller.

    Raises:
        ValueError: If the observations are no images, or too small for the layers.
    """

    def __init__(
        self,
        observation_space: Space[Any],
        *,
        conv_layers: Sequence[ConvLayer] = _NATURE_CNN,
        hidden_dims: Sequence[int] = (512,),
        activation: str | type[nn.Module] = "relu",
        channels_last: bool | None = None,
    ) -> None:
        super().__init__()
        shape = observation_space.shape
        if shape is None or len(shape) != 3 or not hidden_dims:
            raise ValueError(
                f"A CNN needs images of three dimensions and at least one hidden layer, got shape {shape} "
                f"and hidden_dims={list(hidden_dims)}. Use an MLP actor for vectors."
            )
        self.channels_last = shape[2] < shape[0] if channels_last is None else channels_last
        channels, *size = (shape[2], shape[0], shape[1]) if self.channels_last else shape
        self.is_byte = str(observation_space.dtype) == "uint8"
        layers: list[nn.Module] = []
        for width, kernel, stride in conv_layers:
            size = [(pixels - kernel) // stride + 1 for pixels in size]
            if min(size) < 1:
                raise ValueError(
                    f"Images of shape {shape} are too small for conv_layers={list(conv_layers)}: nothing is "
                    f"left after ({width}, {kernel}, {stride}). Use fewer layers, smaller kernels or smaller "
                    f"strides."
                )
            conv = nn.Conv2d(channels, width, kernel, stride)
            nn.init.orthogonal_(conv.weight, math.sqrt(2.0))
            assert conv.bias is not None  # a Conv2d has one unless bias=False
            nn.init.zeros_(conv.bias)
            layers += [conv, make_activation(activation)]
            channels = width
        self.conv = nn.Sequential(*layers, nn.Flatten())
        self.dense = make_mlp(channels * math.prod(size), hidden_dims, None, activation=activation)
        self.num_features = hidden_dims[-1]

    def forward(self, obs: Tensor) -> Tensor:
        """Map images ``[*batch, *obs]`` to features ``[*batch, num_features]``."""
        batch = obs.shape[:-3]
        images = obs.reshape(-1, *obs.shape[-3:])
        if self.channels_last:
            images = images.permute(0, 3, 1, 2)
        images = images.to(next(self.dense.parameters()).dtype)
        if self.is_byte:
            images = images / 255.0
        features: Tensor = self.dense(self.conv(images))
        return features.reshape(*batch, self.num_features)


class _CNNPolicy(Actor):
    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        *,
        conv_layers: Sequence[ConvLayer] = _NATURE_CNN,
        hidden_dims: Sequence[int] = (512,),
        activation: str | type[nn.Module] = "relu",
        channels_last: bool | None = None,
        **head_options: Unpack[GaussianOptions],
    ) -> None:
        super().__init__(observation_space, action_space, **head_options)
        self.encoder = CNNEncoder(
            observation_space,
            conv_layers=conv_layers,
            hidden_dims=hidden_dims,
            activation=activation,
            channels_last=channels_last,
        )
        self.output = make_mlp(self.encoder.num_features, (), self.head.num_inputs, output_gain=0.01)

    def forward(self, obs: Tensor) -> Tensor:
        """Map images ``[*batch, *obs]`` to the head's inputs."""
        out: Tensor = self.output(self.encoder(obs))
        return out


class CNNActor(_CNNPolicy):
    """A Gaussian policy over images; arguments of `CNNEncoder` and `apexrl.models.heads.GaussianHead`.

    Raises:
        TypeError: If the action space is discrete.
    """

    wants_discrete = False
    counterpart = "CNNDiscreteActor"


class CNNDiscreteActor(_CNNPolicy):
    """A categorical policy over images; arguments of `CNNEncoder`.

    Raises:
        TypeError: If the action space is continuous.
    """

    wants_discrete = True
    counterpart = "CNNActor"


class CNNCritic(Critic):
    """A value function over images; arguments of `CNNEncoder`."""

    def __init__(
        self,
        observation_space: Space[Any],
        *,
        conv_layers: Sequence[ConvLayer] = _NATURE_CNN,
        hidden_dims: Sequence[int] = (512,),
        activation: str | type[nn.Module] = "relu",
        channels_last: bool | None = None,
    ) -> None:
        super().__init__(observation_space)
        self.encoder = CNNEncoder(
            observation_space,
            conv_layers=conv_layers,
            hidden_dims=hidden_dims,
            activation=activation,
            channels_last=channels_last,
        )
        self.output = make_mlp(self.encoder.num_features, (), 1)

    def forward(self, obs: Tensor) -> Tensor:
        """Map images ``[*batch, *obs]`` to values ``[*batch]``."""
        out: Tensor = self.output(self.encoder(obs))
        return out.squeeze(-1)

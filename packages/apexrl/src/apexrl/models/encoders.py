"""Encoders: from an observation to a feature vector, by what the observation is.

=================  ========================================================================================
`VectorEncoder`    an MLP over the flattened observation
`CNNEncoder`       convolutions over pictures
`DictEncoder`      an encoder per key of a Dict observation, joined by an MLP
=================  ========================================================================================

An encoder is a module with `num_features` that maps ``[*batch, *obs]`` to ``[*batch, num_features]``; a class of your
own is used by ``encoder_class = …`` in a subclass of `apexrl.models.EncodedActor`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import torch
from gymnasium.spaces import Box, Space
from torch import Tensor, nn

from apexrl.models.base import flat_dim
from apexrl.models.mlp import flatten_batch, make_activation, make_mlp
from apexrl.spaces import PackedBox, is_image

ConvLayer = tuple[int, int, int]
"""(channels, kernel size, stride)."""

_LAYERS_BY_SIDE: tuple[tuple[int, tuple[ConvLayer, ...]], ...] = (
    (36, ((32, 8, 4), (64, 4, 2), (64, 3, 1))),  # Mnih et al. (2015)
    (7, ((32, 3, 2), (64, 3, 2))),
    (2, ((32, 2, 1),)),
)
"""Layers for pictures whose shorter side has at least so many pixels."""


class VectorEncoder(nn.Sequential):
    """An MLP over the flattened observation; without hidden layers the flattened observation itself.

    Args:
        observation_space: Space of one observation.
        hidden_dims: Width of each layer; the last is the number of features.
        activation: Name or class.
        layer_norm: Normalise each layer before its activation.
    """

    def __init__(
        self,
        observation_space: Space[Any],
        *,
        hidden_dims: Sequence[int] = (64,),
        activation: str | type[nn.Module] = "tanh",
        layer_norm: bool = False,
    ) -> None:
        size = flat_dim(observation_space)
        super().__init__(*make_mlp(size, hidden_dims, None, activation=activation, layer_norm=layer_norm))
        self.observation_space = observation_space
        self.num_features = hidden_dims[-1] if hidden_dims else size

    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, *obs]`` to features ``[*batch, num_features]``."""
        features = flatten_batch(obs, self.observation_space)
        for layer in self:
            features = layer(features)
        return features


class CNNOptions(TypedDict, total=False):
    """Keyword arguments of `CNNEncoder`."""

    conv_layers: Sequence[ConvLayer] | None
    hidden_dims: Sequence[int]
    activation: str | type[nn.Module]
    channels_last: bool | None


class CNNEncoder(nn.Module):
    """Pictures to feature vectors.

    Bytes are divided by 255; floats are taken as they are.

    Args:
        observation_space: Box of shape (channels, height, width) or (height, width, channels).
        conv_layers: (channels, kernel, stride) of each layer; None chooses by the size of the pictures.
        hidden_dims: Fully connected layers after the convolutions; the last is the number of features.
        activation: Name or class.
        channels_last: Where the channels are; None takes the end that is smaller.

    Raises:
        ValueError: If the observations are no pictures, or too small for the layers.
    """

    def __init__(
        self,
        observation_space: Space[Any],
        *,
        conv_layers: Sequence[ConvLayer] | None = None,
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
        layers: list[nn.Module] = []
        for width, kernel, stride in _default_layers(size) if conv_layers is None else conv_layers:
            size = [(pixels - kernel) // stride + 1 for pixels in size]
            if min(size) < 1:
                raise ValueError(
                    f"Images of shape {shape} are too small for conv_layers: nothing is left after "
                    f"({width}, {kernel}, {stride}). Use fewer layers, smaller kernels or smaller strides."
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
        """Map pictures ``[*batch, *obs]`` to features ``[*batch, num_features]``."""
        batch = obs.shape[:-3]
        images = obs.reshape(-1, *obs.shape[-3:])
        if self.channels_last:
            images = images.permute(0, 3, 1, 2)  # [B, channels, height, width]
        images = images.to(next(self.dense.parameters()).dtype)
        if obs.dtype is torch.uint8:  # a normaliser gives floats
            images = images / 255.0
        features: Tensor = self.dense(self.conv(images))
        return features.reshape(*batch, self.num_features)


def _default_layers(size: Sequence[int]) -> tuple[ConvLayer, ...]:
    return next((layers for side, layers in _LAYERS_BY_SIDE if min(size) >= side), ())


def picture_side(space: Space[Any]) -> int:
    """Return the shorter side of a picture in pixels; 0 if observations are no pictures."""
    if not is_image(space):
        return 0
    *sides, _ = sorted(space.shape or (), reverse=True)  # the channels are fewest
    return int(min(sides))


class DictOptions(TypedDict, total=False):
    """Keyword arguments of `DictEncoder`."""

    encoders: Mapping[str, Mapping[str, Any] | Callable[[Box], nn.Module]] | None
    hidden_dims: Sequence[int]
    activation: str | type[nn.Module]


class DictEncoder(nn.Module):
    """An encoder per key of a Dict observation; their features are joined and go through an MLP.

    Parts of three dimensions are pictures and go through a `CNNEncoder`, everything else is passed on as it is, or
    through a `VectorEncoder` if it has options.

    Args:
        observation_space: The packed space that `GymVecEnv` makes of a Dict.
        encoders: By key: keyword arguments of the part's encoder, or a class (any function) that makes one from the
            part's space and gives it `num_features`.
        hidden_dims: Layers after the join; the last is the number of features.
        activation: Of these layers.

    Raises:
        TypeError: If the observation is no packed Dict.
        ValueError: If a key is unknown.
    """

    def __init__(
        self,
        observation_space: Space[Any],
        *,
        encoders: Mapping[str, Mapping[str, Any] | Callable[[Box], nn.Module]] | None = None,
        hidden_dims: Sequence[int] = (256,),
        activation: str | type[nn.Module] = "tanh",
    ) -> None:
        super().__init__()
        if not isinstance(observation_space, PackedBox):
            raise TypeError(
                f"An encoder per key needs the parts of a Dict observation, got {observation_space}. GymVecEnv keeps "
                "them; a custom env declares observation_space=apexrl.spaces.PackedBox({...})."
            )
        options = dict(encoders or {})
        unknown = sorted(options.keys() - observation_space.parts.keys())
        if unknown:
            raise ValueError(f"encoders has the keys {unknown}; the observation has {list(observation_space.parts)}.")
        self.observation_space = observation_space
        # Module names may hold no dot, which nested keys do.
        made = [_part_encoder(part, options.get(name)) for name, part in observation_space.parts.items()]
        self.encoders = nn.ModuleList(made)
        width = sum(int(encoder.num_features) for encoder in made)
        self.join = make_mlp(width, hidden_dims, None, activation=activation)
        self.num_features = hidden_dims[-1] if hidden_dims else width

    def forward(self, obs: Tensor) -> Tensor:
        """Map packed observations ``[*batch, n]`` to features ``[*batch, num_features]``."""
        parts = self.observation_space.split(obs).values()
        joined = torch.cat([encoder(part) for encoder, part in zip(self.encoders, parts, strict=True)], dim=-1)
        features: Tensor = self.join(joined)
        return features


def _part_encoder(part: Box, options: Mapping[str, Any] | Callable[[Box], nn.Module] | None) -> Any:  # noqa: ANN401 - nn.Module hides num_features
    if callable(options):
        return options(part)
    given = dict(options or {})
    if len(part.shape) == 3:
        return CNNEncoder(part, **{"hidden_dims": (256,)} | given)
    return VectorEncoder(part, **given if given else {"hidden_dims": ()})


def default_encoder_class(observation_space: Space[Any]) -> type[nn.Module]:
    """Return the encoder for an observation: convolutions for pictures, per key for a Dict with pictures, or an MLP."""
    if picture_side(observation_space) >= _LAYERS_BY_SIDE[-1][0]:
        return CNNEncoder
    if isinstance(observation_space, PackedBox):
        pictures = (len(part.shape) == 3 for part in observation_space.parts.values())
        return DictEncoder if any(pictures) else VectorEncoder
    return VectorEncoder

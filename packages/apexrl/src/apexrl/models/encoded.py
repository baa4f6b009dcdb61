"""Policies and value functions made of an encoder and one more layer: for pictures, Dicts, or your own encoder."""

from typing import Any, ClassVar, Unpack

from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.models.base import Actor, Critic, split_head_options
from apexrl.models.encoders import CNNEncoder, CNNOptions, DictEncoder, DictOptions
from apexrl.models.heads import GaussianOptions
from apexrl.models.mlp import make_mlp


class EncodedActor(Actor):
    """A policy with an encoder; a subclass names it: ``encoder_class = MyEncoder``.

    Args:
        observation_space: Space of one observation.
        action_space: Space of one action.
        **options: Keyword arguments of the encoder and of `apexrl.models.heads.GaussianHead`.
    """

    encoder_class: ClassVar[Any]
    """Made with ``(observation_space, **options)``; has `num_features`."""

    def __init__(self, observation_space: Space[Any], action_space: Space[Any], **options: Any) -> None:  # noqa: ANN401 - the encoder's
        head_options, encoder_options = split_head_options(options)
        super().__init__(observation_space, action_space, **head_options)
        self.encoder: nn.Module = self.encoder_class(observation_space, **encoder_options)
        self.output = make_mlp(int(self.encoder.num_features), (), self.head.num_inputs, output_gain=0.01)

    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, *obs]`` to the head's inputs."""
        out: Tensor = self.output(self.encoder(obs))
        return out


class EncodedCritic(Critic):
    """A value function with an encoder; a subclass names it: ``encoder_class = MyEncoder``.

    Args:
        observation_space: Space of what the critic sees.
        **options: Keyword arguments of the encoder.
    """

    encoder_class: ClassVar[Any]
    """Made with ``(observation_space, **options)``; has `num_features`."""

    def __init__(self, observation_space: Space[Any], **options: Any) -> None:  # noqa: ANN401 - the encoder's
        super().__init__(observation_space)
        self.encoder: nn.Module = self.encoder_class(observation_space, **options)
        self.output = make_mlp(int(self.encoder.num_features), (), 1)

    def forward(self, obs: Tensor) -> Tensor:
        """Map observations ``[*batch, *obs]`` to values ``[*batch]``."""
        out: Tensor = self.output(self.encoder(obs))
        return out.squeeze(-1)


class CNNActorOptions(CNNOptions, GaussianOptions):
    """Keyword arguments of `CNNActor`."""


class DictActorOptions(DictOptions, GaussianOptions):
    """Keyword arguments of `DictActor`."""


class _CNNPolicy(EncodedActor):
    encoder_class = CNNEncoder

    def __init__(
        self, observation_space: Space[Any], action_space: Space[Any], **options: Unpack[CNNActorOptions]
    ) -> None:
        super().__init__(observation_space, action_space, **options)


class CNNActor(_CNNPolicy):
    """A Gaussian policy over pictures; arguments of `CNNEncoder` and `apexrl.models.heads.GaussianHead`.

    Raises:
        TypeError: If the action space is discrete.
    """

    wants_discrete = False
    counterpart = "CNNDiscreteActor"


class CNNDiscreteActor(_CNNPolicy):
    """A categorical policy over pictures; arguments of `CNNEncoder`.

    Raises:
        TypeError: If the action space is continuous.
    """

    wants_discrete = True
    counterpart = "CNNActor"


class CNNCritic(EncodedCritic):
    """A value function over pictures; arguments of `CNNEncoder`."""

    encoder_class = CNNEncoder

    def __init__(self, observation_space: Space[Any], **options: Unpack[CNNOptions]) -> None:
        super().__init__(observation_space, **options)


class DictActor(EncodedActor):
    """A policy over a Dict of observations, for any actions; arguments of `DictEncoder` and the Gaussian's."""

    encoder_class = DictEncoder

    def __init__(
        self, observation_space: Space[Any], action_space: Space[Any], **options: Unpack[DictActorOptions]
    ) -> None:
        super().__init__(observation_space, action_space, **options)


class DictCritic(EncodedCritic):
    """A value function over a Dict of observations; arguments of `DictEncoder`."""

    encoder_class = DictEncoder

    def __init__(self, observation_space: Space[Any], **options: Unpack[DictOptions]) -> None:
        super().__init__(observation_space, **options)

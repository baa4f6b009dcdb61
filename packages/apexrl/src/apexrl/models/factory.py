"""Which networks fit a task, and building them from a user's options."""

import difflib
import typing
from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar

from gymnasium.spaces import Box, Space

from apexrl.models.base import Policy, ValueFunction
from apexrl.models.encoded import CNNActor, CNNCritic, CNNDiscreteActor, DictActor, DictCritic
from apexrl.models.encoders import CNNEncoder, DictEncoder, default_encoder_class
from apexrl.models.mlp import MLPActor, MLPCritic, MLPDiscreteActor
from apexrl.runs.errors import UserFacingError

T = TypeVar("T")

_SYNONYMS = {
    "hidden_sizes": "hidden_dims",
    "hidden_layers": "hidden_dims",
    "net_arch": "hidden_dims",
    "actor_hidden_dims": "hidden_dims",
    "critic_hidden_dims": "hidden_dims",
    "activation_fn": "activation",
    "rnn_hidden_size": "rnn_hidden_dim",
    "lstm_hidden_size": "rnn_hidden_dim",
    "squash_output": "squash",
}
"""Other libraries' names for options of these networks."""


class NetworkOptionError(UserFacingError, TypeError):
    """A network does not take an option."""


def default_actor_class(observation_space: Space[Any], action_space: Space[Any]) -> type[Policy]:
    """Return the policy for a task: a CNN for pictures, an encoder per key for a Dict with pictures, else an MLP."""
    encoder = default_encoder_class(observation_space)
    is_continuous = isinstance(action_space, Box)
    if encoder is CNNEncoder:
        return CNNActor if is_continuous else CNNDiscreteActor
    if encoder is DictEncoder:
        return DictActor
    return MLPActor if is_continuous else MLPDiscreteActor


def default_critic_class(observation_space: Space[Any]) -> type[ValueFunction]:
    """Return the value function for what the critic sees; see `default_actor_class`."""
    encoder = default_encoder_class(observation_space)
    if encoder is CNNEncoder:
        return CNNCritic
    return DictCritic if encoder is DictEncoder else MLPCritic


def make_actor(
    actor_class: type[Policy] | None,
    observation_space: Space[Any],
    action_space: Space[Any],
    options: Mapping[str, Any],
) -> Any:  # noqa: ANN401 - an Actor or a RecurrentActor
    """Build a policy; if its class is None, the one for the spaces. See `make_network`."""
    network = actor_class or default_actor_class(observation_space, action_space)
    return make_network(network, observation_space, action_space, options=options)


def make_critic(
    critic_class: type[ValueFunction] | None, observation_space: Space[Any], options: Mapping[str, Any]
) -> Any:  # noqa: ANN401 - a Critic or a RecurrentCritic
    """Build a value function; if its class is None, the one for the space. See `make_network`."""
    return make_network(critic_class or default_critic_class(observation_space), observation_space, options=options)


def make_network(network: type[T], *spaces: Space[Any], options: Mapping[str, Any] | None = None) -> T:
    """Build a network; options under another library's name, such as ``hidden_sizes``, are understood.

    Args:
        network: A policy or a value function.
        *spaces: Its positional arguments.
        options: Its keyword arguments.

    Raises:
        NetworkOptionError: It does not take one of them.
    """
    known, takes_any = _option_names(network)
    given = {}
    for name, value in (options or {}).items():
        meant = _SYNONYMS.get(name, name)
        if name not in known and meant in known and meant not in (options or {}):
            given[meant] = value
        elif name in known or takes_any:
            given[name] = value
        else:
            raise _refusal(network, name, value, sorted(known))
    make: Any = network  # custom networks may have signatures of their own
    made: T = make(*spaces, **given)
    return made


def _refusal(network: type, name: str, value: object, known: list[str]) -> NetworkOptionError:
    near = difflib.get_close_matches(name, known, n=1)
    return NetworkOptionError(
        f"{network.__name__} does not take {name}={value!r}",
        f"it takes {', '.join(known) or 'no options'}",
        f"perhaps {near[0]} was meant" if near else "correct or remove the option",
    )


def _option_names(network: type) -> tuple[set[str], bool]:
    """Return the names of a network's keyword arguments, and whether it takes others behind ``**``."""
    names: set[str] = set()
    takes_any = False
    for parameter in signature(network).parameters.values():
        if parameter.kind is not Parameter.VAR_KEYWORD:
            names.add(parameter.name)
        elif typing.get_origin(parameter.annotation) is typing.Unpack:
            (options,) = typing.get_args(parameter.annotation)
            names |= set(options.__annotations__)
        else:
            takes_any = True
    return names - {"observation_space", "action_space"}, takes_any

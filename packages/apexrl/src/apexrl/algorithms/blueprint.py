"""What it takes to build an agent again: spaces and networks, as tensors and plain values inside a checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces import Space

import apexrl.models
from apexrl.envs.vec_env import EnvBatch
from apexrl.models.mlp import ACTIVATIONS
from apexrl.runs.digest import to_plain
from apexrl.runs.errors import ConfigurationError, NotPlainError
from apexrl.spaces import PackedBox


@dataclass(frozen=True, kw_only=True)
class Spaces:
    """What an algorithm needs to know of an environment.

    Attributes:
        observation_space: Space of one observation.
        action_space: Space of one action.
        privileged_observation_space: Space of the critic's own observation; None if it sees what the actor sees.
        state_space: With several agents: space of the global state.
        num_agents: With several agents: how many.
        device: Where the environment computes; None if it is not known.
    """

    observation_space: Space[Any]
    action_space: Space[Any]
    privileged_observation_space: Space[Any] | None = None
    state_space: Space[Any] | None = None
    num_agents: int | None = None
    device: torch.device | None = None

    @property
    def critic_observation_space(self) -> Space[Any]:
        """What the critic sees: the privileged space if there is one, otherwise the observation space."""
        return self.privileged_observation_space or self.observation_space

    @classmethod
    def of(cls, env: Any) -> "Spaces":  # noqa: ANN401 - whatever stands for an environment
        """Read the spaces of an environment, or of whatever stands for one."""
        if isinstance(env, Spaces):
            return env
        if not isinstance(env, EnvBatch):
            from apexrl.envs.coercion import as_vec_env  # imports other libraries' wrappers

            env = as_vec_env(env)
        known: Any = env
        return cls(
            observation_space=known.observation_space,
            action_space=known.action_space,
            privileged_observation_space=getattr(known, "privileged_observation_space", None),
            state_space=getattr(known, "state_space", None),
            num_agents=getattr(known, "num_agents", None),
            device=torch.device(known.device),
        )

    @classmethod
    def from_arguments(cls, env: Any, spaces: Mapping[str, Any], who: str) -> "Spaces":  # noqa: ANN401 - as in of
        """Return the spaces of an environment, or those that are given by name.

        Raises:
            ConfigurationError: Neither is given, or both are.
        """
        if env is not None and not spaces:
            return cls.of(env)
        if env is None and {"observation_space", "action_space"} <= spaces.keys():
            return cls(**spaces)
        raise ConfigurationError(
            f"{who} got env={env!r} and {', '.join(spaces) or 'no spaces'}",
            "the networks need spaces: an environment, or observation_space and action_space",
            f"write {who}(env=env), or {who}(observation_space=…, action_space=…)",
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the spaces as tensors and plain values."""
        named = {name: getattr(self, name) for name in _SPACES}
        encoded = {name: None if space is None else _encode(space) for name, space in named.items()}
        return {**encoded, "num_agents": self.num_agents}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> "Spaces":
        """Return the spaces that :meth:`state_dict` described."""
        decoded = {name: None if state[name] is None else _decode(state[name]) for name in _SPACES}
        return cls(**decoded, num_agents=state["num_agents"])  # type: ignore[arg-type]  # two of them are never None


_SPACES = ("observation_space", "action_space", "privileged_observation_space", "state_space")


def _encode(space: Space[Any]) -> dict[str, Any]:
    if isinstance(space, PackedBox):
        return {"kind": "packed", "parts": {name: _encode(part) for name, part in space.parts.items()}}
    if isinstance(space, spaces.Box):
        low, high = (torch.from_numpy(np.array(bound, dtype=np.float64)) for bound in (space.low, space.high))
        return {"kind": "box", "low": low, "high": high, "dtype": np.dtype(space.dtype).name}
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "multi_discrete", "nvec": [int(n) for n in space.nvec]}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi_binary", "shape": [int(n) for n in space.shape]}
    return {"kind": "unknown", "text": str(space)}


def _decode(state: Mapping[str, Any]) -> Space[Any]:
    kind = state["kind"]
    if kind == "packed":
        return PackedBox({name: _decode(part) for name, part in state["parts"].items()})  # type: ignore[misc]  # parts are boxes
    if kind == "box":
        dtype: Any = np.dtype(state["dtype"])
        return spaces.Box(state["low"].numpy().astype(dtype), state["high"].numpy().astype(dtype), dtype=dtype)
    if kind == "discrete":
        return spaces.Discrete(state["n"], start=state["start"])
    if kind == "multi_discrete":
        return spaces.MultiDiscrete(state["nvec"])
    if kind == "multi_binary":
        return spaces.MultiBinary(state["shape"])
    raise ConfigurationError(
        f"the checkpoint was made with the space {state.get('text', kind)}",
        "it describes Box, Discrete, MultiDiscrete and MultiBinary spaces",
        "pass env=, an environment of the same kind",
    )


def describe_network(network: type | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Describe a network's class and options; options that are not plain values are left out and marked."""
    named = {kind: name for name, kind in ACTIVATIONS.items()}  # nn.ReLU is "relu"
    values = {
        name: named.get(value, value) if isinstance(value, type) else value for name, value in (options or {}).items()
    }
    try:
        plain: Any = to_plain(values)
    except NotPlainError:
        plain = None
    return {"class": None if network is None else network.__name__, "options": plain}


def network_of(which: str, described: Mapping[str, Any], given: type | None) -> type | None:
    """Return the class of a network: the given one, or the one of this package that a checkpoint names.

    Raises:
        ConfigurationError: The checkpoint names a class that only its author has.
    """
    name = described["class"]
    if given is not None or name is None:
        return given
    if name not in apexrl.models.__all__:
        raise ConfigurationError(
            f"the checkpoint's {which} is {name}, which is not part of apexrl",
            "a checkpoint does not decide what is imported",
            f"pass {which}_class={name}",
        )
    found: type = getattr(apexrl.models, name)
    return found


def options_of(which: str, described: Mapping[str, Any], given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the options of a network: the given ones, or the checkpoint's.

    Raises:
        ConfigurationError: The checkpoint could not hold them.
    """
    if given is not None:
        return given
    if described["options"] is None:
        raise ConfigurationError(
            f"the options of the checkpoint's {which} are not plain values, so it does not hold them",
            "",
            f"pass {which}_cfg",
        )
    options: Mapping[str, Any] = described["options"]
    return options

"""One observation shape and one action space for agents that may differ."""

from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from torch import Tensor

from apexrl.arrays import Array, Bools, Floats32
from apexrl.envs.vec_env import NotAnEnvError, Opaque, UnsupportedSpacesError
from apexrl.runs.errors import ConfigurationError, UserFacingError


class ObservationMismatchError(UserFacingError, ValueError):
    """An environment gives an observation that its declared space does not allow."""


class ParallelEnv(Protocol):
    """The part of PettingZoo's parallel API that is used: any object with these methods will do."""

    agents: list[str]
    possible_agents: list[str]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Return observations and infos by agent."""
        ...

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Return observations, rewards, terminations, truncations and infos by agent."""
        ...

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's observation."""
        ...

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's action."""
        ...

    def state(self) -> Array:
        """Return the global state; used only if the environment has a ``state_space``."""
        ...

    def close(self) -> None:
        """Release what the environment holds."""
        ...


_PARALLEL_NAMES = ("possible_agents", "reset", "step", "observation_space", "action_space")

AEC_HINT = "convert it with pettingzoo.utils.aec_to_parallel(env), or take the module's parallel_env()"
"""What to do about an environment whose agents act in turn."""


def is_parallel(env: Opaque) -> bool:
    """Return whether something has PettingZoo's parallel API, and not the one in which agents act in turn."""
    return all(hasattr(env, name) for name in _PARALLEL_NAMES) and not hasattr(env, "agent_iter")


def refuse_other_apis(index: int, env: Opaque) -> None:
    """Refuse what is no parallel environment.

    Args:
        index: Its number in the batch.
        env: What a function returned.

    Raises:
        NotAnEnvError: It is an AEC environment, or has not what a parallel environment has.
    """
    if is_parallel(env):
        return
    name = f"environment {index} is an object of {type(env).__name__}"
    if hasattr(env, "agent_iter"):
        raise NotAnEnvError(f"{name}, whose agents act in turn (AEC)", "agents act at the same time", AEC_HINT)
    missing = [wanted for wanted in _PARALLEL_NAMES if not hasattr(env, wanted)]
    raise NotAnEnvError(
        f"{name}, which has no {', '.join(missing)}",
        "it must be a pettingzoo.ParallelEnv, and its constructor sets possible_agents",
        "return such an environment; GymVecEnv takes those of Gymnasium",
    )


def _inner(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Return the observation part of ``Dict(observation=…, action_mask=…)``, otherwise the space itself."""
    return space["observation"] if isinstance(space, spaces.Dict) and "observation" in space.spaces else space


def _misfit(space: spaces.Space[Any], observation: Opaque) -> str:
    """Return why an observation is not of a space; empty if it is. Bounds of numbers are not checked."""
    if isinstance(space, spaces.Dict):
        if not isinstance(observation, dict) or not set(space.spaces) <= set(observation):
            return f"not a dict with the keys {sorted(space.spaces)}"
        parts = (_misfit(part, observation[key]) for key, part in space.spaces.items())
        return next(filter(None, parts), "")
    if isinstance(space, spaces.Tuple):
        if not isinstance(observation, tuple | list) or len(observation) != len(space.spaces):
            return f"not a tuple of {len(space.spaces)}"
        return next(filter(None, map(_misfit, space.spaces, observation)), "")
    if isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        shape = np.shape(observation)
        return "" if shape == space.shape else f"of shape {shape} instead of {space.shape}"
    return "" if space.contains(observation) else f"{observation!r}"


class AgentObservations:
    """Agents' observations in one padded shape.

    Agents with equal Box shapes keep them, unless `flat` is set; otherwise, and with `agent_ids`, observations are
    flattened to vectors and padded with zeros to the longest.

    Args:
        env: A parallel environment.
        names: Agents along the agent axis.
        agent_ids: Append a one-hot agent number.
        flat: Make a vector of every observation.

    Raises:
        UnsupportedSpacesError: An agent's observations have no fixed number of entries.
    """

    def __init__(self, env: ParallelEnv, names: list[str], *, agent_ids: bool, flat: bool = False) -> None:
        self._spaces = {name: _inner(env.observation_space(name)) for name in names}
        for name, space in self._spaces.items():
            if not space.is_np_flattenable:
                raise UnsupportedSpacesError(
                    f"agent {name!r} observes {space}",
                    "observations need a fixed number of entries",
                    "wrap the environment so that it gives a Box",
                )
        self._ids = {name: i for i, name in enumerate(names)} if agent_ids else {}
        shapes = {space.shape if isinstance(space, spaces.Box) else None for space in self._spaces.values()}
        self._keeps_shape = len(shapes) == 1 and None not in shapes and not agent_ids
        if self._keeps_shape:
            shape = next(shape for shape in shapes if shape is not None)
            self._shape: tuple[int, ...] = (int(np.prod(shape)),) if flat else shape
        else:
            self._width = max(spaces.flatdim(space) for space in self._spaces.values())
            self._shape = (self._width + len(self._ids),)
        self.space = spaces.Box(-np.inf, np.inf, self._shape, np.float32)

    def single(self, name: str, observation: Opaque) -> Floats32:
        """Convert one agent's observation to the common shape.

        Raises:
            ObservationMismatchError: It is not of the space that the environment declares.
        """
        space = self._spaces[name]
        if isinstance(observation, dict) and "observation" in observation:
            observation = observation["observation"]
        if misfit := _misfit(space, observation):
            raise ObservationMismatchError(
                f"agent {name!r} is given an observation {misfit}, but observation_space({name!r}) declares {space}",
                "an environment must give what it declares",
                "correct the environment's observation_space or its observations",
            )
        if self._keeps_shape:
            return np.asarray(observation, np.float32).reshape(self._shape)
        flat = np.asarray(spaces.flatten(space, observation), np.float32)
        row = np.zeros(self._shape, np.float32)
        row[: flat.size] = flat
        if self._ids:
            row[self._width + self._ids[name]] = 1.0
        return row


class AgentActions:
    """Agents' actions in one space: the largest Discrete, or the longest Box vector.

    Attributes:
        space: The common space.
        needs_mask: Whether some agent has fewer actions than the common space.

    Raises:
        UnsupportedSpacesError: If the action spaces are not all Discrete or all one-dimensional Boxes.
    """

    space: spaces.Space[Any]

    def __init__(self, env: ParallelEnv, names: list[str]) -> None:
        self._spaces = {name: env.action_space(name) for name in names}
        every = list(self._spaces.values())
        self.needs_mask = False
        if all(isinstance(space, spaces.Discrete) for space in every):
            sizes = [int(space.n) for space in every if isinstance(space, spaces.Discrete)]
            self._width = max(sizes)
            self.needs_mask = min(sizes) < self._width
            self.space = spaces.Discrete(self._width)
            self._by_agent = np.arange(self._width)[None, :] < np.array(sizes)[:, None]
            self._row_shape: tuple[int, ...] = ()
        elif all(isinstance(space, spaces.Box) and len(space.shape) == 1 for space in every):
            self._width = max(spaces.flatdim(space) for space in every)
            self.space = self._common_box(every)
            self._by_agent = np.ones((len(names), 0), np.bool_)
            self._row_shape = (self._width,)
        else:
            raise UnsupportedSpacesError(
                f"Agents need Discrete action spaces, or one-dimensional Boxes, all of one kind; got {self._spaces}"
            )

    def _common_box(self, every: list[spaces.Space[Any]]) -> spaces.Box:
        low, high = np.full(self._width, np.inf, np.float32), np.full(self._width, -np.inf, np.float32)
        for space in every:
            assert isinstance(space, spaces.Box)  # the constructor distinguishes
            n = space.shape[0]
            low[:n], high[:n] = np.minimum(low[:n], space.low), np.maximum(high[:n], space.high)
        return spaces.Box(low, high, dtype=np.float32)

    def full_mask(self, num_envs: int) -> Bools:
        """Return what each agent may do by its space alone, ``[num_envs, num_agents, n]``; a fresh array."""
        return np.repeat(self._by_agent[None], num_envs, axis=0)

    def check(self, actions: Tensor, num_envs: int) -> Array:
        """Convert actions to an array if their shape and type fit.

        Raises:
            ValueError: If they do not.
        """
        array: Array = actions.numpy(force=True)
        expected = (num_envs, len(self._spaces), *self._row_shape)
        is_right_kind = (array.dtype.kind == "f") == bool(self._row_shape)
        if array.shape != expected or not is_right_kind:
            kind = "floats" if self._row_shape else "integers"
            raise ValueError(
                f"Expected {kind} of shape {list(expected)}, got {actions.dtype} of shape {list(actions.shape)}."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError("Actions are NaN or infinite: the policy has diverged.")
        return array

    def single(self, name: str, row: Opaque) -> Opaque:
        """Convert one agent's action to its own space; Box actions are clipped to their bounds."""
        space = self._spaces[name]
        if isinstance(space, spaces.Discrete):
            return space.start + row
        assert isinstance(space, spaces.Box)  # the constructor distinguishes
        return row[: space.shape[0]].clip(space.low, space.high).astype(space.dtype)

    def legal(self, name: str, observation: Opaque, info: dict[str, Any]) -> Bools | None:
        """Return the agent's own action mask in the common width, or None if it gives none.

        Raises:
            ConfigurationError: The mask has another number of entries than the agent has actions, or forbids all.
        """
        given = info.get("action_mask")
        if given is None and isinstance(observation, dict):
            given = observation.get("action_mask")
        if given is None or not isinstance(self.space, spaces.Discrete):
            return None
        own = self._spaces[name]
        assert isinstance(own, spaces.Discrete)  # the agents' spaces are of one kind
        mask = np.asarray(given).astype(np.bool_)
        if mask.shape != (own.n,) or not mask.any():
            raise ConfigurationError(
                f"agent {name!r} has the action mask {np.asarray(given).tolist()}",
                f"a mask has one entry for each of its {own.n} actions, and at least one of them is legal",
                "correct the environment's action_mask",
            )
        legal = np.zeros(self._width, np.bool_)
        legal[: own.n] = mask
        return legal

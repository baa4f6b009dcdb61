"""Tasks ``pettingzoo:MODULE``: a batch of environments from any PettingZoo module, with errors that say what to fix."""

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from apexrl.envs import MultiAgentVecEnv, PettingZooVecEnv
from apexrl.envs.pettingzoo.spaces import ObservationMismatchError
from apexrl.envs.vec_env import NotAnEnvError, SharedEnvError, StepFormatError, UnsupportedSpacesError
from apexrl.runs.errors import ConfigurationError

PREFIX = "pettingzoo:"
"""Prefix of task names; a module's name follows it."""


def pettingzoo_env(task: str, *, num_envs: int, max_steps: int, n_agents: int | None) -> MultiAgentVecEnv:
    """Return a batch of ``MODULE.parallel_env()`` with flat observations and a time limit.

    Args:
        task: ``pettingzoo:MODULE``.
        num_envs: Number of environments.
        max_steps: Time limit of an episode. It is passed as ``max_cycles`` to environments that take it, and
            enforced in any case.
        n_agents: Number of agents that the user expects; None accepts any.

    Raises:
        ConfigurationError: The module cannot be used, or has another number of agents.
    """
    module = _load(task)
    make = _constructor(task, module, max_steps)
    try:
        env = PettingZooVecEnv([make] * num_envs, flat=True, max_steps=max_steps)
    except (NotAnEnvError, SharedEnvError) as error:
        hint = f"correct what parallel_env() returns: {error.hint}"
        raise ConfigurationError(f"task {task}: {error.got}", error.expected, hint) from error
    except (UnsupportedSpacesError, ObservationMismatchError, StepFormatError, ConfigurationError) as error:
        raise ConfigurationError(f"task {task}: {error}") from error
    if n_agents not in (None, env.num_agents):
        env.close()
        raise ConfigurationError(
            f"n_agents={n_agents}: {task} has {env.num_agents} agents",
            "the module alone determines the number of agents",
            "leave n_agents out, or name a module of your own whose parallel_env() makes that many",
        )
    return env


def _load(task: str) -> ModuleType:
    name = task.removeprefix(PREFIX)
    if not name or name.startswith("."):
        raise ConfigurationError(
            f"task {task}: {name!r} is not the full name of a module",
            "names are absolute",
            "name it from its top package, for instance pettingzoo:mpe2.simple_spread_v3",
        )
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"task {task}: the module cannot be imported ({error})",
            hint="install the package that brings it; a module in the working directory needs PYTHONPATH=. in front "
            "of the command",
        ) from error
    except (Exception, SystemExit) as error:  # a foreign module may raise anything; the cause is named and chained
        raise ConfigurationError(
            f"task {task}: importing the module raised {type(error).__name__}: {error}",
            "a module must import without an error",
            f"fix it until python -c 'import {name}' passes",
        ) from error
    if not callable(getattr(module, "parallel_env", None)):
        raise ConfigurationError(f"task {task}: the module has no parallel_env(); name one that has")
    return module


def _constructor(task: str, module: ModuleType, max_steps: int) -> Callable[[], Any]:
    """Return ``parallel_env``, with ``max_cycles`` if it takes that."""
    parameters = inspect.signature(module.parallel_env).parameters.values()
    by_name = {
        parameter.name: parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    needed = [
        name for name, parameter in by_name.items() if parameter.default is parameter.empty and name != "max_cycles"
    ]
    if needed:
        raise ConfigurationError(
            f"task {task}: parallel_env() needs {', '.join(needed)}",
            "it is called without arguments of its own",
            "name a module of your own whose parallel_env() gives them",
        )
    unlimited: Callable[..., Any] = module.parallel_env
    limited = partial(unlimited, max_cycles=max_steps)
    if "max_cycles" in by_name:
        return limited
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return unlimited
    # A function with **kwargs does not say what its environment takes, so try it.
    try:
        limited().close()
    except TypeError as error:
        if "max_cycles" not in str(error):
            raise
        return unlimited
    return limited

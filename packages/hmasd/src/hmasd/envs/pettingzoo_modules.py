"""Anybody's PettingZoo module as a batch of environments, with errors that tell its user what to do."""

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from apexrl.envs import MultiAgentVecEnv, PettingZooVecEnv
from apexrl.envs.pettingzoo.spaces import ObservationMismatchError, UnsupportedSpacesError
from apexrl.runs.errors import ConfigurationError

PREFIX = "pettingzoo:"
"""Task names that begin with it go on with a module's name."""


def pettingzoo_env(task: str, *, num_envs: int, max_steps: int, n_agents: int | None) -> MultiAgentVecEnv:
    """Return a batch of ``MODULE.parallel_env()`` with flat observations and a time limit.

    Args:
        task: ``pettingzoo:MODULE``.
        num_envs: Number of environments.
        max_steps: Time limit of an episode. It is passed on as ``max_cycles`` to environments that take it, and kept
            in any case.
        n_agents: Number of agents that the user expects; None for whatever the module has.

    Raises:
        ConfigurationError: The module cannot be used, or has another number of agents.
    """
    module = _load(task)
    make = _constructor(task, module, max_steps)
    try:
        env = PettingZooVecEnv([make] * num_envs, flat=True, max_steps=max_steps)
    except (UnsupportedSpacesError, ObservationMismatchError) as error:
        raise ConfigurationError(f"task {task}: {error}") from error
    if n_agents not in (None, env.num_agents):
        env.close()
        raise ConfigurationError(
            f"n_agents={n_agents}: {task} has {env.num_agents} agents",
            "the module alone decides how many there are",
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
    except (Exception, SystemExit) as error:  # a stranger's module may raise anything; the cause is named and chained
        raise ConfigurationError(
            f"task {task}: importing the module raised {type(error).__name__}: {error}",
            "a module must import without an error",
            f"mend it until python -c 'import {name}' passes",
        ) from error
    if not callable(getattr(module, "parallel_env", None)):
        raise ConfigurationError(f"task {task}: the module has no parallel_env(); name one that has")
    return module


def _constructor(task: str, module: ModuleType, max_steps: int) -> Callable[[], Any]:
    """``parallel_env``, with ``max_cycles`` where it is taken."""
    parameters = inspect.signature(module.parallel_env).parameters.values()
    named = {each.name: each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    needed = [name for name, each in named.items() if each.default is each.empty and name != "max_cycles"]
    if needed:
        raise ConfigurationError(
            f"task {task}: parallel_env() needs {', '.join(needed)}",
            "it is called without arguments of its own",
            "name a module of your own whose parallel_env() gives them",
        )
    plain: Callable[..., Any] = module.parallel_env
    limited = partial(plain, max_cycles=max_steps)
    if "max_cycles" in named:
        return limited
    if not any(each.kind is each.VAR_KEYWORD for each in parameters):
        return plain
    # Functions that hand on all they are given seldom say what their environment takes; only a trial tells.
    try:
        limited().close()
    except TypeError as error:
        if "max_cycles" not in str(error):
            raise
        return plain
    return limited

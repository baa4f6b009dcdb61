"""From what a user has at hand to a batch of environments: an id, a single environment, another library's batch."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.vector import VectorEnv

from apexrl.envs.gymnasium import GymVecEnv
from apexrl.envs.multi_agent import MultiAgentVecEnv
from apexrl.envs.pettingzoo import PettingZooVecEnv
from apexrl.envs.pettingzoo.spaces import AEC_HINT, is_parallel
from apexrl.envs.vec_env import EnvBatch, NotAnEnvError, Opaque, VecEnv

AnyVecEnv: TypeAlias = VecEnv | MultiAgentVecEnv

NUM_ENVS = 8
"""Copies that an id stands for."""

_EXPECTED = "it must be a VecEnv, a Gymnasium id, env or vector env, or a PettingZoo parallel env"


def as_vec_env(env: Opaque) -> AnyVecEnv:
    """Return a batch of environments for whatever stands for one.

    ==========================================  ============================================================
    given                                       becomes
    ==========================================  ============================================================
    a ``VecEnv`` or ``MultiAgentVecEnv``        itself
    ``"CartPole-v1"``                           `GymVecEnv` with 8 copies
    ``gym.make(…)``                             `GymVecEnv` with this one environment
    a list of Gymnasium envs or functions       `GymVecEnv` with all of them
    ``gym.make_vec(…)``                         `GymVecEnv.from_vector_env`
    a PettingZoo parallel env, or a list        `PettingZooVecEnv` with it
    a function or class that makes any of them  what it makes
    ==========================================  ============================================================

    Raises:
        NotAnEnvError: It is none of them; the message says what to do.
    """
    if isinstance(env, VecEnv | MultiAgentVecEnv):
        return env
    if isinstance(env, str):
        return GymVecEnv.make(env, NUM_ENVS)
    if isinstance(env, VectorEnv):
        return GymVecEnv.from_vector_env(env)
    if isinstance(env, gym.Env):
        return GymVecEnv([env])  # type: ignore[list-item]  # it stands for its function
    if isinstance(env, Sequence) and env:
        return _from_list(env)
    if is_parallel(env) and not isinstance(env, type):
        return PettingZooVecEnv([lambda: env])
    if callable(env) and not hasattr(env, "step"):
        return as_vec_env(env())
    if isinstance(env, type):
        return as_vec_env(env())
    raise NotAnEnvError(f"env is {_describe(env)}", _EXPECTED, _hint(env))


def _from_list(envs: Sequence[Any]) -> AnyVecEnv:
    """Batch single environments, or functions that make them."""
    functions = [env if callable(env) and not hasattr(env, "step") else _constant(env) for env in envs]
    first = functions[0]()
    if isinstance(first, EnvBatch):
        raise NotAnEnvError(
            f"env is a list of {len(envs)} batches ({type(first).__name__})",
            "one batch is needed here",
            "pass a list of functions that make one batch each to the runner, which steps them as env groups",
        )
    if isinstance(first, gym.Env):
        return GymVecEnv([_constant(first), *functions[1:]])
    if is_parallel(first):
        return PettingZooVecEnv([_constant(first), *functions[1:]])
    raise NotAnEnvError(f"env is a list of {_describe(first)}", _EXPECTED, _hint(first))


def _constant(env: Opaque) -> Callable[[], Any]:
    return lambda: env


def _describe(env: Opaque) -> str:
    kind = env if isinstance(env, type) else type(env)
    return f"a {kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else repr(env)


def _hint(env: Opaque) -> str:
    """Return what to write instead."""
    modules = {base.__module__.split(".")[0] for base in type(env).__mro__}
    if "stable_baselines3" in modules:
        return "give the functions that made it to GymVecEnv: GymVecEnv([lambda: gym.make(...)] * 8)"
    if hasattr(env, "agent_iter"):
        return f"its agents act in turn (AEC): {AEC_HINT}"
    if "gym" in modules:
        return "it comes from the old gym package; make it with gymnasium, or wrap it with shimmy.GymV26CompatibilityV0"
    return 'write env="CartPole-v1", env=gym.make(...) or env=GymVecEnv([lambda: gym.make(...)] * 8)'

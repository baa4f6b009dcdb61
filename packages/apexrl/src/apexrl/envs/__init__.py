"""Environments: the contract, wrappers for other libraries' environments, and a checker.

==================  ==============================================================================
``vec_env``         ``VecEnv``: a batch of environments, stepped together, with tensors in and out
``multi_agent``     ``MultiAgentVecEnv``: the same with an agent axis and a global state
``gymnasium``       ``GymVecEnv``: Gymnasium environments with any action and observation space
``pettingzoo``      ``PettingZooVecEnv``: parallel environments
``frame_stack``     ``FrameStack``: the last few observations as one
``coercion``        ``as_vec_env``: a batch from an id, a single environment or another library's batch
``checker``         ``check_env``: finds mistakes that training shows only as a policy that does not learn
``cue_recall``      ``CueRecall``: a task that nothing but memory solves
``snapshot``        the state of a Python environment as tensors and plain values, for exact resume
==================  ==============================================================================
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from apexrl.envs.checker import CheckReport, EnvCheckError, check_env
    from apexrl.envs.coercion import as_vec_env
    from apexrl.envs.frame_stack import FrameStack
    from apexrl.envs.gymnasium import GymVecEnv, GymVecEnvContinuous
    from apexrl.envs.multi_agent import MultiAgentExtras, MultiAgentVecEnv
    from apexrl.envs.pettingzoo import PettingZooVecEnv
    from apexrl.envs.vec_env import Extras, StateDict, StateNotSupportedError, VecEnv
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "apexrl.envs.checker": ("CheckReport", "EnvCheckError", "check_env"),
            "apexrl.envs.coercion": ("as_vec_env",),
            "apexrl.envs.frame_stack": ("FrameStack",),
            "apexrl.envs.gymnasium": ("GymVecEnv", "GymVecEnvContinuous"),
            "apexrl.envs.multi_agent": ("MultiAgentExtras", "MultiAgentVecEnv"),
            "apexrl.envs.pettingzoo": ("PettingZooVecEnv",),
            "apexrl.envs.vec_env": ("Extras", "StateDict", "StateNotSupportedError", "VecEnv"),
        },
    )

__all__ = [
    "CheckReport",
    "EnvCheckError",
    "Extras",
    "FrameStack",
    "GymVecEnv",
    "GymVecEnvContinuous",
    "MultiAgentExtras",
    "MultiAgentVecEnv",
    "PettingZooVecEnv",
    "StateDict",
    "StateNotSupportedError",
    "VecEnv",
    "as_vec_env",
    "check_env",
]

# SPDX-License-Identifier: Apache-2.0
"""apexrl: an on-policy reinforcement-learning engine with strictly synchronous collection and exact resume.

What most programs need is importable from here::

    from apexrl import GymVecEnv, OnPolicyRunner, PPOConfig

=================  ==========================================================================
``agent``          runners: the loops that train, log, evaluate, save and resume
``algorithms``     PPO, MAPPO, BC and AWR, and the loss functions under them
``models``         policies, value functions, distributions and normalisers
``envs``           the contract of environments, wrappers for Gymnasium and PettingZoo, `check_env`
``collect``        rollouts from groups of environments, inline or in workers
``storage``        rollouts, minibatches, advantages, recorded datasets
``execution``      tasks and actors inline, in processes or on Ray, with the same results
``runs``           run folders, checkpoints, metrics, signals
``export``         trained policies as ONNX or ``.npz``
``configuration``  frozen, validated options from defaults, YAML and flags
``statistics``     bootstrap intervals, paired differences, robust means
``charts``         charts as plain data, drawn by plotly and matplotlib
=================  ==========================================================================

Importing this package loads none of them: a name is imported when it is first used, so that commands which need only
``apexrl.runs.errors`` do not wait for torch.
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from apexrl.agent import LearnResult, MultiAgentRunner, OfflineRunner, OnPolicyRunner, StopTraining
    from apexrl.algorithms import AWR, BC, MAPPO, PPO, AWRConfig, BCConfig, MAPPOConfig, PPOConfig
    from apexrl.envs import (
        EnvCheckError,
        Extras,
        FrameStack,
        GymVecEnv,
        GymVecEnvContinuous,
        MultiAgentExtras,
        MultiAgentVecEnv,
        PettingZooVecEnv,
        VecEnv,
        as_vec_env,
        check_env,
    )
    from apexrl.execution import ExecutionOptions, make_executor
    from apexrl.export import NumpyPolicy, export_npz, export_onnx
    from apexrl.storage.offline import OfflineDataset

    __version__: str
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "apexrl.agent": ("LearnResult", "MultiAgentRunner", "OfflineRunner", "OnPolicyRunner", "StopTraining"),
            "apexrl.algorithms": ("AWR", "AWRConfig", "BC", "BCConfig", "MAPPO", "MAPPOConfig", "PPO", "PPOConfig"),
            "apexrl.envs": (
                "EnvCheckError",
                "Extras",
                "FrameStack",
                "GymVecEnv",
                "GymVecEnvContinuous",
                "MultiAgentExtras",
                "MultiAgentVecEnv",
                "PettingZooVecEnv",
                "VecEnv",
                "as_vec_env",
                "check_env",
            ),
            "apexrl.execution": ("ExecutionOptions", "make_executor"),
            "apexrl.export": ("NumpyPolicy", "export_npz", "export_onnx"),
            "apexrl.storage.offline": ("OfflineDataset",),
        },
        distribution="apexrl",
    )


__all__ = [
    "AWR",
    "BC",
    "MAPPO",
    "PPO",
    "AWRConfig",
    "BCConfig",
    "EnvCheckError",
    "ExecutionOptions",
    "Extras",
    "FrameStack",
    "GymVecEnv",
    "GymVecEnvContinuous",
    "LearnResult",
    "MAPPOConfig",
    "MultiAgentExtras",
    "MultiAgentRunner",
    "MultiAgentVecEnv",
    "NumpyPolicy",
    "OfflineDataset",
    "OfflineRunner",
    "OnPolicyRunner",
    "PPOConfig",
    "PettingZooVecEnv",
    "StopTraining",
    "VecEnv",
    "__version__",
    "as_vec_env",
    "check_env",
    "export_npz",
    "export_onnx",
    "make_executor",
]

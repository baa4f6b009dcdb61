"""Runners: the loops that train, log, evaluate, save and resume.

=========================  ================================================================================
``OnPolicyRunner``         trains PPO on a ``VecEnv``; its ``learn`` is the training loop to read first
``MultiAgentRunner``       trains MAPPO on a ``MultiAgentVecEnv``
``OfflineRunner``          trains BC or AWR on recorded decisions
``runner``, ``session``    what they share: evaluation and checkpoints; signals, clock, metrics, progress
``callbacks``              code of the user's at six points of every iteration
=========================  ================================================================================
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from apexrl.agent.callbacks import EVENTS, Callback, StopTraining
    from apexrl.agent.evaluation import EvaluationError
    from apexrl.agent.multi_agent_runner import MultiAgentRunner
    from apexrl.agent.offline_runner import OfflineRunner
    from apexrl.agent.on_policy_runner import OnPolicyRunner
    from apexrl.agent.session import LearnResult
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "apexrl.agent.callbacks": (
                "Callback",
                "EVENTS",
                "StopTraining",
            ),
            "apexrl.agent.evaluation": ("EvaluationError",),
            "apexrl.agent.multi_agent_runner": ("MultiAgentRunner",),
            "apexrl.agent.offline_runner": ("OfflineRunner",),
            "apexrl.agent.on_policy_runner": ("OnPolicyRunner",),
            "apexrl.agent.session": ("LearnResult",),
        },
    )

__all__ = [
    "EVENTS",
    "Callback",
    "EvaluationError",
    "LearnResult",
    "MultiAgentRunner",
    "OfflineRunner",
    "OnPolicyRunner",
    "StopTraining",
]

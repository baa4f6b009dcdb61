"""Runners: the loops that train, log, evaluate, save and resume.

=========================  ================================================================================
``Runner``                 trains any ``Learner``; its ``learn`` is the loop to read first
``Learner``                what is trained: collect, update, evaluate, state
``OnPolicyRunner``         trains PPO on a ``VecEnv``
``MultiAgentRunner``       trains MAPPO on a ``MultiAgentVecEnv``
``OfflineRunner``          trains BC or AWR on recorded decisions
``check_resume``           checks that a learner's state is complete: a killed run equals an uninterrupted one
=========================  ================================================================================
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from apexrl.agent.evaluation import EvaluationError
    from apexrl.agent.learner import IterationAbandoned, Learner
    from apexrl.agent.multi_agent_runner import MultiAgentRunner
    from apexrl.agent.offline_runner import OfflineRunner
    from apexrl.agent.on_policy_runner import OnPolicyRunner
    from apexrl.agent.resume_check import check_resume
    from apexrl.agent.runner import EVENTS, Callback, LearnResult, Runner, StopTraining
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "apexrl.agent.evaluation": ("EvaluationError",),
            "apexrl.agent.learner": ("IterationAbandoned", "Learner"),
            "apexrl.agent.multi_agent_runner": ("MultiAgentRunner",),
            "apexrl.agent.offline_runner": ("OfflineRunner",),
            "apexrl.agent.on_policy_runner": ("OnPolicyRunner",),
            "apexrl.agent.resume_check": ("check_resume",),
            "apexrl.agent.runner": ("Callback", "EVENTS", "LearnResult", "Runner", "StopTraining"),
        },
    )

__all__ = [
    "EVENTS",
    "Callback",
    "EvaluationError",
    "IterationAbandoned",
    "LearnResult",
    "Learner",
    "MultiAgentRunner",
    "OfflineRunner",
    "OnPolicyRunner",
    "Runner",
    "StopTraining",
    "check_resume",
]

"""Algorithms: PPO (feed-forward and recurrent), MAPPO, BC and AWR.

==================  ========================================================================================
``ppo``             PPO: advantages, replay audit, epochs of minibatches; ``ppo_config`` its hyperparameters
``mappo``           MAPPO on top of it; ``multi_agent_networks`` actors and critics over an agent axis
``bc``, ``awr``     learning from recordings; ``offline`` is their common base
``losses``          the objectives as pure functions of tensors, and the check that a rollout fits its policy
``actor_critic``    networks and normalisers as one module, and how they are built from an environment
``analytic``        the gradient of PPO's loss for plain MLPs, without autograd
==================  ========================================================================================
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from apexrl.algorithms.actor_critic import ActorCritic, PolicySnapshot
    from apexrl.algorithms.awr import AWR, AWRConfig
    from apexrl.algorithms.bc import BC, BCConfig
    from apexrl.algorithms.losses import ReplayMismatchError
    from apexrl.algorithms.mappo import MAPPO, MAPPOConfig
    from apexrl.algorithms.ppo import PPO
    from apexrl.algorithms.ppo_config import PPOConfig
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "apexrl.algorithms.actor_critic": (
                "ActorCritic",
                "PolicySnapshot",
            ),
            "apexrl.algorithms.awr": (
                "AWR",
                "AWRConfig",
            ),
            "apexrl.algorithms.bc": (
                "BC",
                "BCConfig",
            ),
            "apexrl.algorithms.mappo": (
                "MAPPO",
                "MAPPOConfig",
            ),
            "apexrl.algorithms.ppo": ("PPO",),
            "apexrl.algorithms.ppo_config": ("PPOConfig",),
            "apexrl.algorithms.losses": ("ReplayMismatchError",),
        },
    )

__all__ = [
    "AWR",
    "BC",
    "MAPPO",
    "PPO",
    "AWRConfig",
    "ActorCritic",
    "BCConfig",
    "MAPPOConfig",
    "PPOConfig",
    "PolicySnapshot",
    "ReplayMismatchError",
]

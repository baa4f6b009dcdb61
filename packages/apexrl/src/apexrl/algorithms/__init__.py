"""Algorithms: PPO (feed-forward and recurrent), MAPPO, BC and AWR.

==================  ========================================================================================
``ppo``             PPO: advantages, replay audit, epochs of minibatches; ``ppo_config`` its hyperparameters
``mappo``           MAPPO on top of it; ``multi_agent_networks`` actors and critics over an agent axis
``bc``, ``awr``     learning from recordings; ``offline`` is their common base
``losses``          the objectives as pure functions of tensors
``actor_critic``    networks and normalisers as one module, and how they are built from an environment
``gradients``       the gradient of a minibatch, by autograd or analytically
``replay_audit``    the check that a rollout was made by the policy that learns from it
==================  ========================================================================================
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from apexrl.algorithms.actor_critic import ActorCritic, PolicySnapshot
    from apexrl.algorithms.awr import AWR, AWRConfig
    from apexrl.algorithms.bc import BC, BCConfig
    from apexrl.algorithms.mappo import MAPPO, MAPPOConfig
    from apexrl.algorithms.ppo import PPO
    from apexrl.algorithms.ppo_config import PPOConfig
    from apexrl.algorithms.replay_audit import ReplayMismatchError
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
            "apexrl.algorithms.replay_audit": ("ReplayMismatchError",),
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

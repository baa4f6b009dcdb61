"""The policy as it goes out to the environments: networks and normalisers of one version."""

from dataclasses import dataclass

from apexrl.algorithms.actor_critic import ActorCritic


@dataclass(frozen=True)
class PolicySnapshot:
    """A policy and the number of updates that made it.

    Nothing in it changes while a rollout is collected: weights and normalisers move only at the barrier. A process or
    Ray executor pickles it; the inline executor uses it as it is.

    Attributes:
        version: How many updates the policy has had.
        policy: Networks and normalisers.
    """

    version: int
    policy: ActorCritic

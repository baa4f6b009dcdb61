"""Storage of one batch: T steps of E environments with n agents, made by one policy version."""

import numpy as np
import torch
from torch import Tensor

from apexrl.arrays import Bools, Floats
from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv
from apexrl.models.base import flat_dim
from apexrl.storage.rollout import IncompleteRolloutError, MixedVersionsError


class Rollout:
    """Preallocated, time-major tensors; every transition carries the policy version that made it.

    Args:
        n_steps: T.
        num_envs: E.
        n_agents: n.
        n_observation: Length of one observation.
        n_state: Length of the state.
        action_shape: Shape of one action; empty for discrete actions.
        width: Width of the actor's memory.
        device: Where the tensors are.
    """

    def __init__(
        self,
        *,
        n_steps: int,
        num_envs: int,
        n_agents: int,
        n_observation: int,
        n_state: int,
        action_shape: tuple[int, ...],
        width: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.n_steps, self.num_envs, self.n_agents = n_steps, num_envs, n_agents
        self.device = torch.device(device)
        with self.device:
            self._allocate((n_steps, num_envs), n_agents, n_observation, n_state, action_shape, width)
        self.action_masks: Tensor | None = None
        """Legal discrete actions ``[T, E, n, A]``; None until a step has a mask."""
        self.filled = 0

    def _allocate(
        self,
        shape: tuple[int, int],
        n_agents: int,
        n_observation: int,
        n_state: int,
        action_shape: tuple[int, ...],
        width: int,
    ) -> None:
        """Allocate the tensors; ``shape`` is ``[T, E]``."""
        dtype = torch.get_default_dtype() if action_shape else torch.int64
        self.observations = torch.zeros(*shape, n_agents, n_observation)
        """Observations before the step ``[T, E, n, do]``."""
        self.states = torch.zeros(*shape, n_state)
        """States before the step ``[T, E, ds]``."""
        self.next_observations = torch.zeros(*shape, n_agents, n_observation)
        """Observations after the step ``[T, E, n, do]``; final ones where the episode ended or the agent left it."""
        self.next_states = torch.zeros(*shape, n_state)
        """States after the step ``[T, E, ds]``; final ones where the episode ended."""
        self.present = torch.zeros(*shape, n_agents, dtype=torch.bool)
        """The agent takes part in the step ``[T, E, n]``."""
        self.actions = torch.zeros(*shape, n_agents, *action_shape, dtype=dtype)
        """``[T, E, n, *action_shape]``."""
        self.log_probs = torch.zeros(*shape, n_agents)
        """Log-probabilities of the actions ``[T, E, n]``."""
        self.memories = torch.zeros(*shape, n_agents, width)
        """The actor's memory before the step ``[T, E, n, H]``."""
        self.rewards = torch.zeros(*shape)
        """Team rewards ``[T, E]``."""
        self.terminated = torch.zeros(*shape, dtype=torch.bool)
        """The episode terminated in the step ``[T, E]``."""
        self.truncated = torch.zeros(*shape, dtype=torch.bool)
        """The episode was truncated in the step and did not terminate ``[T, E]``."""
        self.episode_starts = torch.zeros(*shape, dtype=torch.bool)
        """The episode begins with the step ``[T, E]``."""
        self.skill_ages = torch.zeros(shape[1], dtype=torch.int64)
        """Steps that the skills in force at the first step had lasted before it ``[E]``; 0 for new ones."""
        self.assigned = torch.zeros(*shape, dtype=torch.bool)
        """Skills were chosen before the step ``[T, E]``."""
        self.skills = torch.zeros(*shape, n_agents + 1, dtype=torch.int64)
        """Z, z_1 … z_n in force ``[T, E, n + 1]``."""
        self.skill_log_probs = torch.zeros(*shape, n_agents + 1)
        """Log-probabilities of the skills ``[T, E, n + 1]``; only where ``assigned``."""
        self.skill_values = torch.zeros(*shape, n_agents + 1)
        """V_h of each token in the units of the value normaliser ``[T, E, n + 1]``; only where ``assigned``."""
        self.versions = torch.full(shape, -1, dtype=torch.int64)
        """Policy version that made the transition ``[T, E]``; −1 before it is made."""

    @classmethod
    def for_env(cls, env: MultiAgentVecEnv, n_steps: int, width: int, device: torch.device) -> "Rollout":
        """Return an empty rollout of ``n_steps`` steps with the sizes of ``env``; ``width`` is the memory's."""
        return cls(
            n_steps=n_steps,
            num_envs=env.num_envs,
            n_agents=env.num_agents,
            n_observation=flat_dim(env.observation_space),
            n_state=flat_dim(env.state_space),
            action_shape=tuple(env.action_space.shape or ()),
            width=width,
            device=device,
        )

    def clear(self) -> None:
        """Start an empty batch."""
        self.filled = 0
        self.versions.fill_(-1)

    def add_observations(
        self,
        observations: Tensor,
        state: Tensor,
        present: Tensor,
        episode_starts: Tensor,
        action_mask: Tensor | None = None,
    ) -> None:
        """Store the inputs of the next step; without a mask all actions are legal."""
        if self.filled >= self.n_steps:
            raise IncompleteRolloutError(
                f"the rollout holds all of its {self.n_steps} steps per environment; update before collecting further"
            )
        step = self.filled
        self.observations[step] = observations
        self.states[step] = state
        self.present[step] = present
        self.episode_starts[step] = episode_starts
        if action_mask is not None and self.action_masks is None:
            shape = (self.n_steps, *action_mask.shape)
            self.action_masks = torch.ones(shape, dtype=torch.bool, device=self.device)
        if self.action_masks is not None:
            self.action_masks[step] = True if action_mask is None else action_mask

    def add_outcome(
        self, observations: Tensor, rewards: Tensor, dones: Tensor, extras: MultiAgentExtras, version: int
    ) -> None:
        """Store the outcome of the step; final observations where an episode ended or an agent left it."""
        step = self.filled
        self.next_observations[step] = observations
        self.next_states[step] = extras["state"]
        if "final_observation" in extras:
            over = dones.view(-1, 1)  # [E, 1]
            left = extras["agent_terminated"] | extras["agent_truncated"]  # [E, n]
            final = (over | left).unsqueeze(-1)  # [E, n, 1]
            self.next_observations[step] = torch.where(final, extras["final_observation"], observations)
            self.next_states[step] = torch.where(over, extras["final_state"], extras["state"])
        self.rewards[step] = rewards
        self.terminated[step] = extras["terminated"]
        self.truncated[step] = extras["truncated"] & ~extras["terminated"]
        self.versions[step] = version
        self.filled += 1

    def action_mask(self, step: int) -> Tensor | None:
        """Return the legal actions of a step ``[E, n, A]``, or None if no step had a mask so far."""
        return None if self.action_masks is None else self.action_masks[step]

    def check(self, version: int) -> None:
        """Check that the rollout is complete and was made by one policy version.

        Raises:
            IncompleteRolloutError: Steps are missing.
            MixedVersionsError: A transition was made under another version.
        """
        if self.filled != self.n_steps:
            raise IncompleteRolloutError(
                f"the rollout holds {self.filled} of {self.n_steps} steps per environment; collect the rest first"
            )
        foreign = self.versions != version
        if bool(foreign.any()):
            step, env = torch.nonzero(foreign)[0].tolist()
            raise MixedVersionsError(
                f"the transition at step {step} of environment {env} was made by policy version "
                f"{int(self.versions[step, env])}, this update is of version {version}; collect the batch again"
            )

    def counts_per_env(self) -> Floats:
        """Count the transitions of each environment, ``(E,)``."""
        return (self.versions >= 0).sum(dim=0).cpu().numpy().astype(np.float64)

    @property
    def dones(self) -> Tensor:
        """Whether an episode ended in the step, ``[T, E]``."""
        return self.terminated | self.truncated

    def interval_ends(self) -> Tensor:
        """Return the last steps of intervals: before new skills, at episode ends and at the barrier, ``[T, E]``."""
        ends = self.dones.clone()
        ends[:-1] |= self.assigned[1:]
        ends[-1] = True
        return ends


def team_reward(rewards: Tensor, present: Tensor) -> Tensor:
    """Return the mean reward of the agents that are present, ``[E]`` from ``[E, n]``."""
    weights = present.to(rewards.dtype)
    return (rewards * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)


def as_bools(values: Tensor) -> Bools:
    """Return a boolean tensor as a numpy array."""
    array: Bools = values.cpu().numpy()
    return array

"""MAT: PPO on the joint transformer, with the team's reward at every agent's token."""

from typing import Any

import torch
from torch import Tensor, nn

from apexrl.algorithms.losses import (
    approximate_kl,
    masked_mean,
    needed_mask,
    ppo_surrogate,
    standardize,
    value_loss,
)
from apexrl.algorithms.replay_audit import audit_log_probs
from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv
from apexrl.models.base import flat_dim
from apexrl.models.normalizers import ValueNormalizer
from apexrl.storage.advantages import gae
from hmasd.baselines.joint_transformer import JointTransformer
from hmasd.config.schema import HMASDConfig
from hmasd.learning.low_level import minibatches
from hmasd.learning.rollout import Rollout
from hmasd.networks.blocks import VALUE_DECAY, VALUE_VARIANCE_FLOOR


class MATAgent:
    """The joint transformer behind :class:`hmasd.training.learner.Learner`.

    Args:
        config: Hyperparameters; those of skills and of memories are unused.
        env: The environments it will act in; gives spaces and sizes only.
    """

    def __init__(self, config: HMASDConfig, env: MultiAgentVecEnv) -> None:
        self.config = config
        self.version = 0
        n_observation, n_state = flat_dim(env.observation_space), flat_dim(env.state_space)
        self.rollout = Rollout(
            n_steps=config.rollout_steps,
            num_envs=env.num_envs,
            n_agents=env.num_agents,
            n_observation=n_observation,
            n_state=n_state,
            action_shape=tuple(env.action_space.shape or ()),
            width=1,
        )
        self.networks = JointTransformer(
            n_inputs=n_observation + n_state,
            n_agents=env.num_agents,
            action_space=env.action_space,
            width=config.hidden_size,
            n_blocks=config.transformer_blocks,
        )
        self.optimizer = torch.optim.Adam(self.networks.parameters(), lr=config.lr, eps=1e-5, fused=True)
        self.value_norm = ValueNormalizer(decay=VALUE_DECAY, epsilon=VALUE_VARIANCE_FLOOR)
        self.generator = torch.Generator().manual_seed(config.seed)
        self._values = torch.zeros(config.rollout_steps, env.num_envs, env.num_agents)

    def act(self, observations: Tensor, state: Tensor, present: Tensor, episode_starts: Tensor) -> Tensor:
        """Draw joint actions ``[E, n, ...]``."""
        rollout, step = self.rollout, self.rollout.filled
        rollout.put_before(observations, state, present, episode_starts)
        seen = with_state(rollout.observations[step], rollout.states[step])
        actions, log_probs, values = self.networks.act(seen, self.generator)
        rollout.actions[step] = actions
        rollout.log_probs[step] = log_probs
        self._values[step] = values
        return actions

    def observe(self, observations: Tensor, rewards: Tensor, dones: Tensor, extras: MultiAgentExtras) -> None:
        """Take in a step."""
        self.rollout.put_after(observations, rewards, dones, extras, self.version)

    def update(self, env_steps: int) -> dict[str, float]:
        """Audit, then PPO passes."""
        rollout = self.rollout
        rollout.check(self.version)
        advantages, returns = self._advantages()
        self.value_norm.update(returns, needed_mask(rollout.present))
        mask = rollout.present.flatten(0, 1).to(returns.dtype)
        inputs = with_state(rollout.observations, rollout.states).flatten(0, 1)
        actions, old = rollout.actions.flatten(0, 1), rollout.log_probs.flatten(0, 1)
        with torch.no_grad():
            audit = audit_log_probs("joint transformer", old, self.networks.evaluate(inputs, actions).log_probs, mask)
        scaled = standardize(advantages, rollout.present.to(returns.dtype)).flatten(0, 1)
        targets = self.value_norm.normalize(returns).flatten(0, 1)
        values = self._values.flatten(0, 1)
        samples = (inputs, actions, old, scaled, values, targets, mask)  # a row is an env step with all its agents
        totals: dict[str, float] = {}
        for _ in range(self.config.ppo_epochs):
            parts = minibatches(inputs.shape[0], self.config.num_minibatches, self.generator)
            for rows in parts:
                found = self._pass(*(samples if rows is None else (part[rows] for part in samples)))
                for name, value in found.items():
                    totals[name] = totals.get(name, 0.0) + value / (self.config.ppo_epochs * len(parts))
        rollout.begin()
        self.version += 1
        return totals | {"Sync/ReplayLogProbError": audit}

    def _pass(
        self,
        inputs: Tensor,
        actions: Tensor,
        old: Tensor,
        advantages: Tensor,
        values: Tensor,
        targets: Tensor,
        mask: Tensor,
    ) -> dict[str, float]:
        config = self.config
        scores = self.networks.evaluate(inputs, actions)
        surrogate = ppo_surrogate(scores.log_probs, old, advantages, config.clip_range, mask)
        entropy = masked_mean(scores.entropies, mask)
        error = value_loss(scores.values, targets, values, config.clip_range, mask, config.huber_delta)
        loss = surrogate - config.entropy_low * entropy + config.value_coef * error
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        nn.utils.clip_grad_norm_(self.networks.parameters(), config.max_grad_norm)
        self.optimizer.step()
        with torch.no_grad():
            divergence = approximate_kl(scores.log_probs, old, mask)
        return {
            "Losses/Policy": surrogate.item(),
            "Losses/Value": error.item(),
            "Policy/Entropy": entropy.item(),
            "Policy/KL": divergence.item(),
        }

    @torch.no_grad()
    def _advantages(self) -> tuple[Tensor, Tensor]:
        """Advantages and returns ``[T, E, n]``, bootstrapping at time limits and at the barrier."""
        rollout = self.rollout
        ends = rollout.dones.clone()
        ends[-1] = True
        following = torch.cat([self._values[1:], self._values[-1:]])
        bootstrap = ends & ~rollout.terminated
        if bool(bootstrap.any()):
            seen = with_state(rollout.next_observations[bootstrap], rollout.next_states[bootstrap])
            following[bootstrap] = self.networks.values(seen)
        following = self.value_norm.denormalize(following).masked_fill(rollout.terminated.unsqueeze(-1), 0.0)
        values = self.value_norm.denormalize(self._values)
        rewards = rollout.rewards.unsqueeze(-1).expand_as(values)
        advantages = gae(rewards, values, following, ends.unsqueeze(-1), self.config.gamma, self.config.gae_lambda)
        return advantages, advantages + values

    def policy(self, num_envs: int, generator: torch.Generator, *, deterministic: bool) -> "JointPolicy":
        """Return the present policy for other environments."""
        return JointPolicy(self.networks, generator, deterministic=deterministic)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how learning goes on."""
        return {
            "version": self.version,
            "generator": self.generator.get_state(),
            "networks": self.networks.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "value_norm": self.value_norm.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state_dict` gave."""
        self.version = state["version"]
        self.generator.set_state(state["generator"])
        self.networks.load_state_dict(state["networks"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.value_norm.load_state_dict(state["value_norm"])
        self.rollout.begin()


class JointPolicy:
    """The joint transformer without memory.

    Args:
        networks: Who acts.
        generator: Random stream of actions.
        deterministic: Take the most probable actions.
    """

    def __init__(self, networks: JointTransformer, generator: torch.Generator, *, deterministic: bool) -> None:
        self._networks = networks
        self._generator = generator
        self._deterministic = deterministic
        self.skills: Tensor | None = None

    def act(self, observations: Tensor, state: Tensor, episode_starts: Tensor) -> Tensor:
        """Actions ``[E, n, ...]``."""
        seen = with_state(observations, state)
        return self._networks.act(seen, self._generator, deterministic=self._deterministic)[0]


def with_state(observations: Tensor, state: Tensor) -> Tensor:
    """Each agent's observation beside the state, ``[*batch, n, do + ds]``."""
    shared = state.unsqueeze(-2).expand(*observations.shape[:-1], state.shape[-1])
    return torch.cat([observations, shared], dim=-1)

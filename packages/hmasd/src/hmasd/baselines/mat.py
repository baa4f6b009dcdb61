"""MAT (Wen et al., 2022): PPO on a joint policy π(a_1 | ·)·π(a_2 | a_1, ·)… from one transformer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.algorithms.devices import resolve_device
from apexrl.algorithms.losses import (
    approximate_kl,
    masked_mean,
    needed_mask,
    ppo_surrogate,
    standardize,
    value_loss,
)
from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv
from apexrl.models.base import flat_dim
from apexrl.models.distributions import Distribution
from apexrl.models.heads import make_action_head
from apexrl.models.normalizers import ValueNormalizer
from apexrl.storage.samples import gae
from hmasd.config import HMASDConfig
from hmasd.learning.audit import audit_transformer
from hmasd.learning.low_level import minibatches
from hmasd.learning.optimization import gradient_step, restore_generator
from hmasd.learning.rollout import Rollout
from hmasd.networks.blocks import (
    VALUE_DECAY,
    VALUE_VARIANCE_FLOOR,
    DecoderBlock,
    EncoderBlock,
    one_hot,
    policy_head,
    token_embedding,
    value_head,
)


class JointScores(NamedTuple):
    """Stored joint actions under the current parameters, each ``[B, n]``."""

    log_probs: Tensor
    entropies: Tensor
    values: Tensor


class JointTransformer(nn.Module):
    """One token per agent, of its observation and the state; actions are chosen in the agents' order.

    Args:
        n_inputs: Length of an observation together with the state.
        n_agents: n.
        action_space: Space of one agent's action.
        width: Width of tokens.
        n_blocks: Blocks of the encoder and of the decoder.
    """

    def __init__(self, *, n_inputs: int, n_agents: int, action_space: Space[Any], width: int, n_blocks: int) -> None:
        super().__init__()
        self.n_agents = n_agents
        self.head = make_action_head(action_space)
        n_action = self.head.num_inputs
        self.embed = token_embedding(n_inputs, width)
        # Position embeddings of the agents; the name is that of the key in checkpoints.
        self.places = nn.Parameter(torch.randn(n_agents, width) * 0.02)
        self.encoder = nn.ModuleList(EncoderBlock(width) for _ in range(n_blocks))
        self.value = value_head(width)
        self.start = nn.Parameter(torch.randn(width) * 0.02)
        self.embed_action = nn.Linear(n_action, width)
        self.decoder = nn.ModuleList(DecoderBlock(width) for _ in range(n_blocks))
        self.to_action = policy_head(width, n_action)

    def encode(self, inputs: Tensor) -> Tensor:
        """Encode inputs ``[B, n, n_inputs]`` as tokens ``[B, n, H]``."""
        tokens: Tensor = self.embed(inputs) + self.places
        for block in self.encoder:
            tokens = block(tokens)
        return tokens

    def values(self, inputs: Tensor) -> Tensor:
        """Return values ``[B, n]``."""
        out: Tensor = self.value(self.encode(inputs)).squeeze(-1)
        return out

    @torch.no_grad()
    def act(
        self,
        inputs: Tensor,
        generator: torch.Generator | None,
        action_mask: Tensor | None = None,
        *,
        deterministic: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Sample actions ``[B, n, ...]``; returns also their log-probabilities ``[B, n]`` and values ``[B, n]``."""
        encoded = self.encode(inputs)
        choices = self.start.expand(inputs.shape[0], 1, -1)
        actions: list[Tensor] = []
        log_probs: list[Tensor] = []
        for position in range(self.n_agents):
            legal = None if action_mask is None else action_mask[:, position]
            distribution = self._distribution(choices, encoded[:, : position + 1], legal, last_only=True)
            action = distribution.mode() if deterministic else distribution.sample(generator)
            actions.append(action)
            log_probs.append(distribution.log_prob(action))
            choices = torch.cat([choices, self._embed(action).unsqueeze(1)], dim=1)
        return torch.stack(actions, dim=1), torch.stack(log_probs, dim=1), self.value(encoded).squeeze(-1)

    def evaluate(self, inputs: Tensor, actions: Tensor, action_mask: Tensor | None = None) -> JointScores:
        """Score stored actions in one teacher-forced pass."""
        encoded = self.encode(inputs)
        start = self.start.expand(inputs.shape[0], 1, -1)
        choices = torch.cat([start, self._embed(actions[:, :-1])], dim=1)
        distribution = self._distribution(choices, encoded, action_mask, last_only=False)
        return JointScores(distribution.log_prob(actions), distribution.entropy(), self.value(encoded).squeeze(-1))

    def _distribution(
        self, choices: Tensor, encoded: Tensor, action_mask: Tensor | None, *, last_only: bool
    ) -> Distribution:
        for block in self.decoder:
            choices = block(choices, encoded)
        return self.head.distribution(self.to_action(choices[:, -1] if last_only else choices), action_mask)

    def _embed(self, actions: Tensor) -> Tensor:
        discrete = self.head.is_discrete
        dtype = self.embed_action.weight.dtype  # float64 in the audit
        out: Tensor = self.embed_action(one_hot(actions, self.head.num_inputs, dtype) if discrete else actions)
        return out


class MATAgent:
    """The joint transformer with the team reward at every token; implements :class:`hmasd.learning.protocols.Agent`.

    Args:
        config: Hyperparameters; those of skills and of memories are unused.
        env: The environments it will act in; only spaces and sizes are read.
    """

    def __init__(self, config: HMASDConfig, env: MultiAgentVecEnv) -> None:
        self.config = config
        self.device = device = resolve_device(config.device)
        self.version = 0
        n_observation, n_state = flat_dim(env.observation_space), flat_dim(env.state_space)
        self.rollout = Rollout.for_env(env, config.rollout_steps, 1, device)
        self.networks = JointTransformer(
            n_inputs=n_observation + n_state,
            n_agents=env.num_agents,
            action_space=env.action_space,
            width=config.hidden_size,
            n_blocks=config.transformer_blocks,
        ).to(device)
        self.optimizer = torch.optim.Adam(self.networks.parameters(), lr=config.lr, eps=1e-5, fused=True)
        self.value_norm = ValueNormalizer(decay=VALUE_DECAY, epsilon=VALUE_VARIANCE_FLOOR).to(device)
        self.generator = torch.Generator(device).manual_seed(config.seed)
        self._values = torch.zeros(config.rollout_steps, env.num_envs, env.num_agents, device=device)

    def act(
        self,
        observations: Tensor,
        state: Tensor,
        present: Tensor,
        episode_starts: Tensor,
        action_mask: Tensor | None = None,
    ) -> Tensor:
        """Sample joint actions ``[E, n, ...]``."""
        rollout, step = self.rollout, self.rollout.filled
        rollout.add_observations(observations, state, present, episode_starts, action_mask)
        inputs = _with_state(rollout.observations[step], rollout.states[step])
        actions, log_probs, values = self.networks.act(inputs, self.generator, rollout.action_mask(step))
        rollout.actions[step] = actions
        rollout.log_probs[step] = log_probs
        self._values[step] = values
        return actions

    def observe(self, observations: Tensor, rewards: Tensor, dones: Tensor, extras: MultiAgentExtras) -> None:
        """Store the outcome of a step."""
        self.rollout.add_outcome(observations, rewards, dones, extras, self.version)

    def update(self, env_steps: int) -> dict[str, float]:
        """Audit the log-probabilities, then run the PPO epochs."""
        rollout = self.rollout
        rollout.check(self.version)
        advantages, returns = self._advantages()
        self.value_norm.update(returns, needed_mask(rollout.present))
        mask = rollout.present.flatten(0, 1).to(returns.dtype)
        inputs = _with_state(rollout.observations, rollout.states).flatten(0, 1)
        actions, old = rollout.actions.flatten(0, 1), rollout.log_probs.flatten(0, 1)
        legal = None if rollout.action_masks is None else rollout.action_masks.flatten(0, 1)

        def score(networks: JointTransformer, convert: Callable[[Tensor], Tensor]) -> Tensor:
            given = convert(actions) if actions.is_floating_point() else actions
            return networks.evaluate(convert(inputs), given, legal).log_probs

        with torch.no_grad():
            audit = audit_transformer("joint transformer", self.networks, score, old, mask)
        scaled = standardize(advantages, rollout.present.to(returns.dtype)).flatten(0, 1)
        targets = self.value_norm.normalize(returns).flatten(0, 1)
        values = self._values.flatten(0, 1)
        # [T·E, n, …] a row is an environment step with all its agents
        samples = (inputs, actions, legal, old, scaled, values, targets, mask)
        totals: dict[str, float] = {}
        for _ in range(self.config.ppo_epochs):
            parts = minibatches(inputs.shape[0], self.config.num_minibatches, self.generator)
            for rows in parts:
                chosen = samples if rows is None else (None if part is None else part[rows] for part in samples)
                losses = self._gradient_step(*chosen)
                for name, value in losses.items():
                    totals[name] = totals.get(name, 0.0) + value / (self.config.ppo_epochs * len(parts))
        rollout.clear()
        self.version += 1
        return totals | {"Sync/ReplayLogProbError": audit}

    def _gradient_step(
        self,
        inputs: Tensor,
        actions: Tensor,
        action_mask: Tensor | None,
        old: Tensor,
        advantages: Tensor,
        values: Tensor,
        targets: Tensor,
        mask: Tensor,
    ) -> dict[str, float]:
        config = self.config
        scores = self.networks.evaluate(inputs, actions, action_mask)
        surrogate = ppo_surrogate(scores.log_probs, old, advantages, config.clip_range, mask)
        entropy = masked_mean(scores.entropies, mask)
        error = value_loss(scores.values, targets, values, config.clip_range, mask, config.huber_delta)
        loss = surrogate - config.entropy_low * entropy + config.value_coef * error
        gradient_step(loss, self.optimizer, max_norm=config.max_grad_norm)
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
        """Compute advantages and returns ``[T, E, n]``, bootstrapping at time limits and at the barrier."""
        rollout = self.rollout
        ends = rollout.interval_ends()
        next_values = torch.cat([self._values[1:], self._values[-1:]])
        bootstrap = ends & ~rollout.terminated
        if bool(bootstrap.any()):
            last = _with_state(rollout.next_observations[bootstrap], rollout.next_states[bootstrap])
            next_values[bootstrap] = self.networks.values(last)
        next_values = self.value_norm.denormalize(next_values).masked_fill(rollout.terminated.unsqueeze(-1), 0.0)
        values = self.value_norm.denormalize(self._values)
        rewards = rollout.rewards.unsqueeze(-1).expand_as(values)
        advantages = gae(rewards, values, next_values, ends.unsqueeze(-1), self.config.gamma, self.config.gae_lambda)
        return advantages, advantages + values

    def policy(self, num_envs: int, generator: torch.Generator, *, deterministic: bool) -> "JointPolicy":
        """Return the current policy for other environments."""
        return JointPolicy(self, generator, deterministic=deterministic)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        return {
            "version": self.version,
            "generator": self.generator.get_state(),
            "networks": self.networks.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "value_norm": self.value_norm.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.version = state["version"]
        restore_generator(self.generator, state["generator"])
        self.networks.load_state_dict(state["networks"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.value_norm.load_state_dict(state["value_norm"])
        self.rollout.clear()


class JointPolicy:
    """The joint transformer as a policy for evaluation.

    Args:
        agent: The agent whose networks are used.
        generator: Random generator of actions.
        deterministic: Take the most probable actions.
    """

    def __init__(self, agent: MATAgent, generator: torch.Generator, *, deterministic: bool) -> None:
        self._networks, self._device = agent.networks, agent.device
        self._generator = generator
        self._deterministic = deterministic
        self.skills: Tensor | None = None

    def act(
        self, observations: Tensor, state: Tensor, episode_starts: Tensor, action_mask: Tensor | None = None
    ) -> Tensor:
        """Return actions ``[E, n, ...]``."""
        inputs = _with_state(observations, state).to(self._device)
        legal = None if action_mask is None else action_mask.to(self._device)
        actions, _, _ = self._networks.act(inputs, self._generator, legal, deterministic=self._deterministic)
        return actions.to(observations.device)


def _with_state(observations: Tensor, state: Tensor) -> Tensor:
    """Append the state to each agent's observation, ``[*batch, n, do + ds]``."""
    shared = state.unsqueeze(-2).expand(*observations.shape[:-1], state.shape[-1])
    return torch.cat([observations, shared], dim=-1)

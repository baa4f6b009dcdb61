"""Recurrent PPO for agents that share an actor: the low level of HMASD, and all of MAPPO.

The critic runs once over the finished rollout instead of once per step. The end of a skill is a time limit of the low
level: the value after it is V_l under the same skill, whatever the next skill will be.
"""

from dataclasses import dataclass, fields
from typing import Any, Final

import torch
from torch import Tensor

from apexrl.algorithms.losses import (
    approximate_kl,
    audit_log_probs,
    masked_mean,
    needed_mask,
    ppo_surrogate,
    standardize,
    value_loss,
)
from apexrl.models.normalizers import ValueNormalizer
from apexrl.storage.samples import gae
from hmasd.config.schema import HMASDConfig
from hmasd.learning.optimization import gradient_step
from hmasd.learning.rollout import Rollout, as_bools
from hmasd.learning.skill_clock import Chunks, cut_chunks
from hmasd.networks.blocks import VALUE_DECAY, VALUE_VARIANCE_FLOOR
from hmasd.networks.discoverer import SkillDiscoverer, concat_features


@dataclass(frozen=True, kw_only=True)
class LowLevelInputs:
    """Skill codes and rewards of a rollout for the low level. T steps, E environments, n agents."""

    actor_codes: Tensor
    """Skill code of each agent ``[T, E, n, c]``; c may be 0."""
    critic_codes: Tensor
    """Skill code that the critic sees ``[T, E, d]``; d may be 0."""
    rewards: Tensor
    """Reward of each agent ``[T, E, n]``."""
    ends: Tensor
    """The step is the last under its skill, in its episode or in the batch ``[T, E]``."""


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """R sequences of L steps for the critic, R·n for the actor."""

    actor_inputs: Tensor
    """Observations with skill codes ``[L, R·n, do + c]``."""
    actor_memory: Tensor
    """The actor's memory before the first step ``[R·n, H]``."""
    action_mask: Tensor | None
    """Legal discrete actions ``[L, R·n, A]``; None if all are."""
    actions: Tensor
    """``[L, R·n, ...]``."""
    log_probs: Tensor
    """log π_l(a|o, z) from collection ``[L, R·n]``."""
    advantages: Tensor
    """Standardised ``[L, R·n]``."""
    mask: Tensor
    """1 for steps of the sequence in which the agent is present, else 0 ``[L, R·n]``."""
    critic_inputs: Tensor
    """States with skill codes ``[L, R, ds + d]``."""
    critic_memory: Tensor
    """The critic's memory before the first step ``[R, H]``."""
    values: Tensor
    """V_l before the update, in the units of the value normaliser ``[L, R, n]``."""
    targets: Tensor
    """Returns of each agent in the units of the value normaliser ``[L, R, n]``."""
    critic_mask: Tensor
    """``mask`` with an axis of agents ``[L, R, n]``."""


_CRITIC_FIELDS: Final = frozenset({"critic_inputs", "critic_memory", "values", "targets", "critic_mask"})
"""Fields with one sequence per environment; the others have one per agent."""


class LowLevel:
    """Actor and critic with their optimisers, memories and update.

    Args:
        config: Hyperparameters.
        networks: Actor and critic.
        num_envs: E.
        n_agents: n.
        device: Where the networks are.
    """

    def __init__(
        self, config: HMASDConfig, networks: SkillDiscoverer, num_envs: int, n_agents: int, device: torch.device
    ) -> None:
        self._config = config
        self.networks = networks
        self.value_norm = ValueNormalizer(decay=VALUE_DECAY, epsilon=VALUE_VARIANCE_FLOOR).to(device)
        self.actor_optimizer = torch.optim.Adam(networks.actor_parameters(), lr=config.lr, eps=1e-5, fused=True)
        self.critic_optimizer = torch.optim.Adam(networks.critic_parameters(), lr=config.lr, eps=1e-5, fused=True)
        self.actor_memory = torch.zeros(num_envs, n_agents, networks.width, device=device)
        self.critic_memory = torch.zeros(num_envs, networks.width, device=device)

    @torch.no_grad()
    def sample(
        self,
        observations: Tensor,
        codes: Tensor,
        memory: Tensor,
        generator: torch.Generator,
        action_mask: Tensor | None = None,
        *,
        deterministic: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions ``[E, n, ...]``, their log-probabilities ``[E, n]`` and the memory after the step."""
        # one step of E·n sequences: [1, E·n, n_actor_inputs]
        inputs = concat_features(observations, codes).flatten(0, 1).unsqueeze(0)
        legal = None if action_mask is None else action_mask.flatten(0, 1).unsqueeze(0)
        distribution, memories = self.networks.policy(inputs, memory.flatten(0, 1), legal)
        actions = distribution.mode() if deterministic else distribution.sample(generator)
        shape = observations.shape[:2]
        log_probs = distribution.log_prob(actions).view(shape)
        return actions[0].view(*shape, *actions.shape[2:]), log_probs, memories[0].view_as(memory)

    def act(self, rollout: Rollout, codes: Tensor, generator: torch.Generator) -> Tensor:
        """Sample actions for the observations that the rollout has just stored.

        Args:
            rollout: Holds the observations of its step ``filled``; stores actions, log-probabilities and memories.
            codes: Skill codes ``[E, n, c]``.
            generator: Random generator.

        Returns:
            Actions ``[E, n, ...]``.
        """
        step = rollout.filled
        self.actor_memory[rollout.episode_starts[step]] = 0.0
        rollout.memories[step] = self.actor_memory
        rollout.actions[step], rollout.log_probs[step], self.actor_memory = self.sample(
            rollout.observations[step], codes, self.actor_memory, generator, rollout.action_mask(step)
        )
        return rollout.actions[step]

    def update(self, rollout: Rollout, inputs: LowLevelInputs, generator: torch.Generator) -> dict[str, float]:
        """Audit the log-probabilities, then run the PPO epochs; returns losses and diagnostics by name."""
        batch = self._prepare(rollout, inputs)
        audit = self._audit(batch)
        totals: dict[str, float] = {}
        steps = 0
        for _ in range(self._config.ppo_epochs):
            for rows in minibatches(batch.critic_memory.shape[0], self._config.num_minibatches, generator):
                for name, value in self._gradient_step(_select_rows(batch, rows, rollout.n_agents)).items():
                    totals[name] = totals.get(name, 0.0) + value
                steps += 1
        return {name: value / steps for name, value in totals.items()} | {"replay_error": audit}

    def audit(self, rollout: Rollout, inputs: LowLevelInputs) -> float:
        """Audit the log-probabilities without learning; memories and statistics are still updated."""
        return self._audit(self._prepare(rollout, inputs))

    def _gradient_step(self, batch: _Batch) -> dict[str, float]:
        config = self._config
        distribution, _ = self.networks.policy(batch.actor_inputs, batch.actor_memory, batch.action_mask)
        log_probs = distribution.log_prob(batch.actions)
        surrogate = ppo_surrogate(log_probs, batch.log_probs, batch.advantages, config.clip_range, batch.mask)
        entropy = masked_mean(distribution.entropy(), batch.mask)
        actor_loss = surrogate - config.entropy_low * entropy
        gradient_step(actor_loss, self.actor_optimizer, max_norm=config.max_grad_norm)
        values, _ = self.networks.values(batch.critic_inputs, batch.critic_memory)
        error = value_loss(
            values.expand_as(batch.targets),
            batch.targets,
            batch.values,
            config.clip_range,
            batch.critic_mask,
            config.huber_delta,
        )
        critic_loss = config.value_coef * error
        gradient_step(critic_loss, self.critic_optimizer, max_norm=config.max_grad_norm)
        with torch.no_grad():
            divergence = approximate_kl(log_probs, batch.log_probs, batch.mask)
        return {
            "total": actor_loss.item() + critic_loss.item(),
            "policy": surrogate.item(),
            "value": error.item(),
            "entropy": entropy.item(),
            "kl": divergence.item(),
        }

    def _audit(self, batch: _Batch) -> float:
        with torch.no_grad():
            distribution, _ = self.networks.policy(batch.actor_inputs, batch.actor_memory, batch.action_mask)
            return audit_log_probs("discoverer", batch.log_probs, distribution.log_prob(batch.actions), batch.mask)

    @torch.no_grad()
    def _prepare(self, rollout: Rollout, inputs: LowLevelInputs) -> _Batch:
        # normalised values [T, E, V] by one pass of the critic, V = 1 or n
        critic_inputs = concat_features(rollout.states, inputs.critic_codes)
        values, before, after = self._run_critic(rollout, critic_inputs)
        next_values = self._next_values(rollout, inputs, values, after)
        # advantages and returns of each agent [T, E, n], in units of reward
        shape = inputs.rewards.shape
        denormalized = self.value_norm.denormalize(values).expand(shape)
        advantages = gae(
            inputs.rewards,
            denormalized,
            next_values.expand(shape),
            inputs.ends.unsqueeze(-1),
            self._config.gamma,
            self._config.gae_lambda,
        )
        returns = advantages + denormalized
        self.value_norm.update(returns, needed_mask(rollout.present))
        chunks = cut_chunks(as_bools(rollout.episode_starts), self._config.sequence_length)
        return self._gather(rollout, inputs, chunks, critic_inputs, values, before, returns, advantages)

    def _gather(
        self,
        rollout: Rollout,
        inputs: LowLevelInputs,
        chunks: Chunks,
        critic_inputs: Tensor,
        values: Tensor,
        critic_memory: Tensor,
        returns: Tensor,
        advantages: Tensor,
    ) -> _Batch:
        """Gather the sequences ``[L, R, …]`` of the rollout ``[T, E, …]``."""
        step, env = torch.from_numpy(chunks.step), torch.from_numpy(chunks.env)
        first = torch.from_numpy(chunks.start)
        valid = torch.from_numpy(chunks.valid).to(rollout.device).unsqueeze(-1)
        mask = (valid & rollout.present[step, env]).to(returns.dtype)  # [L, R, n]
        scaled = standardize(advantages, rollout.present.to(returns.dtype))
        targets = self.value_norm.normalize(returns)
        masks = rollout.action_masks
        return _Batch(
            actor_inputs=concat_features(rollout.observations, inputs.actor_codes)[step, env].flatten(1, 2),
            actor_memory=rollout.memories[first, env].flatten(0, 1),
            action_mask=None if masks is None else masks[step, env].flatten(1, 2),
            actions=rollout.actions[step, env].flatten(1, 2),
            log_probs=rollout.log_probs[step, env].flatten(1, 2),
            advantages=scaled[step, env].flatten(1, 2),
            mask=mask.flatten(1, 2),
            critic_inputs=critic_inputs[step, env],
            critic_memory=critic_memory[first, env],
            values=values[step, env].expand(*step.shape, returns.shape[-1]),
            targets=targets[step, env],
            critic_mask=mask,
        )

    def _run_critic(self, rollout: Rollout, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return values ``[T, E, V]`` and the critic's memory before and after each step ``[T, E, H]``."""
        starts = as_bools(rollout.episode_starts)
        chunks = cut_chunks(starts, rollout.n_steps)
        step, env = torch.from_numpy(chunks.step), torch.from_numpy(chunks.env)
        first = torch.from_numpy(chunks.start)
        # [R, H] memories continue from the last rollout except at episode starts
        carried = (first == 0).to(rollout.device) & ~rollout.episode_starts[0, env]
        memory = torch.where(carried.unsqueeze(-1), self.critic_memory[env], 0.0)
        sequence_values, memories = self.networks.values(inputs[step, env], memory)  # [L, R, V], [L, R, H]
        # scatter the sequences back to [T, E, …]
        valid = torch.from_numpy(chunks.valid)
        columns = env.expand_as(step)[valid]
        values = torch.empty(*rollout.rewards.shape, sequence_values.shape[-1], device=rollout.device)
        after = torch.empty(*rollout.rewards.shape, memories.shape[-1], device=rollout.device)
        values[step[valid], columns] = sequence_values[valid]
        after[step[valid], columns] = memories[valid]
        before = torch.cat([self.critic_memory.unsqueeze(0), after[:-1]])
        before[rollout.episode_starts] = 0.0
        self.critic_memory = torch.where(rollout.dones[-1].unsqueeze(-1), 0.0, after[-1])
        return values, before, after

    def _next_values(self, rollout: Rollout, inputs: LowLevelInputs, values: Tensor, after: Tensor) -> Tensor:
        """Return V after each step, in units of reward ``[T, E, V]``: bootstrapped at ends, 0 at terminations."""
        next_values = torch.cat([values[1:], values[-1:]])
        bootstrap = inputs.ends & ~rollout.terminated
        if bool(bootstrap.any()):
            last = concat_features(rollout.next_states[bootstrap], inputs.critic_codes[bootstrap])
            bootstrapped, _ = self.networks.values(last.unsqueeze(0), after[bootstrap])
            next_values[bootstrap] = bootstrapped[0]
        return self.value_norm.denormalize(next_values).masked_fill(rollout.terminated.unsqueeze(-1), 0.0)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        return {
            "networks": self.networks.state_dict(),
            "value_norm": self.value_norm.state_dict(),
            "actor_optimizer": self.actor_optimizer.state_dict(),
            "critic_optimizer": self.critic_optimizer.state_dict(),
            "actor_memory": self.actor_memory.clone(),
            "critic_memory": self.critic_memory.clone(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.networks.load_state_dict(state["networks"])
        self.value_norm.load_state_dict(state["value_norm"])
        self.actor_optimizer.load_state_dict(state["actor_optimizer"])
        self.critic_optimizer.load_state_dict(state["critic_optimizer"])
        if state["actor_memory"].shape == self.actor_memory.shape:  # else of another number of environments
            self.actor_memory = state["actor_memory"].to(self.actor_memory.device, copy=True)
            self.critic_memory = state["critic_memory"].to(self.critic_memory.device, copy=True)


def minibatches(n_rows: int, parts: int, generator: torch.Generator) -> list[Tensor | None]:
    """Split the rows into random parts; None means all rows in order."""
    if parts == 1:
        return [None]
    return list(torch.randperm(n_rows, generator=generator, device=generator.device).chunk(parts))


def _select_rows(batch: _Batch, rows: Tensor | None, n_agents: int) -> _Batch:
    if rows is None:
        return batch
    agents = (rows.unsqueeze(-1) * n_agents + torch.arange(n_agents, device=rows.device)).flatten()
    chosen: dict[str, Any] = {}
    for field in fields(_Batch):
        index = rows if field.name in _CRITIC_FIELDS else agents
        tensor: Tensor | None = getattr(batch, field.name)
        if tensor is not None:
            tensor = tensor[index] if field.name.endswith("memory") else tensor[:, index]
        chosen[field.name] = tensor
    return _Batch(**chosen)

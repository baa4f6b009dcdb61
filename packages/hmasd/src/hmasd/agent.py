"""The synchronous HMASD agent: coordinator, discoverer and discriminators, updated from one batch at a time."""

import logging
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from apexrl.algorithms.devices import resolve_device
from apexrl.algorithms.losses import masked_mean, needed_mask
from apexrl.envs import MultiAgentExtras, MultiAgentVecEnv
from apexrl.models.base import flat_dim
from hmasd.config import HMASDConfig
from hmasd.learning.coverage import coverage_metrics, coverage_rewards, find_visits
from hmasd.learning.discriminators import DiscriminatorLearner, SkillRewards
from hmasd.learning.high_level import HighLevel, rollout_intervals, token_mask
from hmasd.learning.low_level import LowLevel, LowLevelInputs
from hmasd.learning.optimization import restore_generator
from hmasd.learning.rollout import Rollout, as_bools
from hmasd.learning.skill_clock import Intervals, SkillClock, finished_rewards
from hmasd.networks.blocks import one_hot
from hmasd.networks.coordinator import ContinuationCritic, SkillCoordinator
from hmasd.networks.discoverer import SkillDiscoverer
from hmasd.networks.discriminators import Discriminators

logger = logging.getLogger(__name__)

_LOW_METRICS: Final = {
    "Losses/Discoverer/Total": "total",
    "Losses/Discoverer/Policy": "policy",
    "Losses/Discoverer/Value": "value",
    "Policy/Discoverer/Entropy": "entropy",
    "Policy/Discoverer/KL": "kl",
}
_HIGH_METRICS: Final = {name.replace("Discoverer", "Coordinator"): key for name, key in _LOW_METRICS.items()} | {
    "Losses/Coordinator/Continuation": "continuation"
}


class HMASDAgent:
    """HMASD and its ablations; implements :class:`hmasd.learning.protocols.Agent`.

    Args:
        config: Hyperparameters.
        env: The environments it will act in; only spaces and sizes are read.
    """

    def __init__(self, config: HMASDConfig, env: MultiAgentVecEnv) -> None:
        self.config = config
        self.device = device = resolve_device(config.device)
        self.version = 0
        self.n_agents = env.num_agents
        self.codes = SkillCodes(config, env.num_agents)
        n_observation, n_state = flat_dim(env.observation_space), flat_dim(env.state_space)
        self.rollout = Rollout.for_env(env, config.rollout_steps, config.hidden_size, device)
        sizes = {"n_state": n_state, "n_observation": n_observation, "width": config.hidden_size}
        skills = {"n_team_skills": config.team_skills, "n_agent_skills": config.agent_skills}
        coordinator = SkillCoordinator(
            n_agents=env.num_agents, n_blocks=config.transformer_blocks, **sizes, **skills
        ).to(device)
        networks = SkillDiscoverer(
            n_actor_inputs=n_observation + self.codes.n_actor,
            n_critic_inputs=n_state + self.codes.n_critic,
            n_values=1 if config.critic_sees == "team_skill" else env.num_agents,
            action_space=env.action_space,
            width=config.hidden_size,
        ).to(device)
        self.low = LowLevel(config, networks, env.num_envs, env.num_agents, device)
        self.discriminators = DiscriminatorLearner(
            config, Discriminators(lipschitz=config.discriminator_lipschitz, **sizes, **skills).to(device)
        )
        continuation = ContinuationCritic(
            n_state=n_state,
            n_agents=env.num_agents,
            skill_steps=config.skill_steps,
            width=config.hidden_size,
            **skills,
        ).to(device)
        self.high = HighLevel(config, coordinator, continuation, device)
        self.clock = SkillClock(env.num_envs, config.skill_steps)
        self._carried_rewards = np.zeros(env.num_envs)
        self.skills = torch.zeros(env.num_envs, env.num_agents + 1, dtype=torch.int64, device=device)
        self.generator = torch.Generator(device).manual_seed(config.seed)
        self._uniform = self._samples_uniformly(0)

    def act(
        self,
        observations: Tensor,
        state: Tensor,
        present: Tensor,
        episode_starts: Tensor,
        action_mask: Tensor | None = None,
    ) -> Tensor:
        """Sample skills where they are due, then actions in all environments ``[E, n, ...]``."""
        rollout, step = self.rollout, self.rollout.filled
        rollout.add_observations(observations, state, present, episode_starts, action_mask)
        due = self.clock.due() | as_bools(episode_starts)
        rollout.assigned[step] = torch.from_numpy(due)
        if due.any():
            envs = torch.from_numpy(due).nonzero().squeeze(1)
            inputs = rollout.states[step, envs], rollout.observations[step, envs]
            choice = self.high.choose(*inputs, self.generator, uniform=self._uniform)
            self.skills[envs] = choice.skills
            rollout.skill_log_probs[step, envs] = choice.log_probs
            rollout.skill_values[step, envs] = choice.values
            self.clock.assign(due)
        if step == 0:
            rollout.skill_ages[:] = torch.from_numpy(self.clock.age)
        rollout.skills[step] = self.skills
        return self.low.act(rollout, self.codes.actor(self.skills), self.generator)

    def observe(self, observations: Tensor, rewards: Tensor, dones: Tensor, extras: MultiAgentExtras) -> None:
        """Store the outcome of a step and advance the skill clocks."""
        self.rollout.add_outcome(observations, rewards, dones, extras, self.version)
        self.clock.tick(as_bools(dones))

    def update(self, env_steps: int) -> dict[str, float]:
        """Update both levels and the discriminators, and increment the version; skills in force stay so."""
        rollout, config = self.rollout, self.config
        rollout.check(self.version)
        intervals = rollout_intervals(rollout, config)
        # low-level reward r^i = λ_e·r + λ_D·log q_D + λ_d·log q_d, [T, E, n]
        skill_rewards = self.discriminators.rewards(rollout)
        extrinsic = rollout.rewards * (0.0 if config.ablation == "no_ex_rew" else config.lambda_e)
        visits = find_visits(rollout)
        rewards = (extrinsic + skill_rewards.team).unsqueeze(-1) + skill_rewards.agents
        coverage = config.lambda_coverage * coverage_rewards(rollout, visits) if config.lambda_coverage else None
        if coverage is not None:
            rewards = rewards + coverage
        inputs = LowLevelInputs(
            actor_codes=self.codes.actor(rollout.skills),
            critic_codes=self.codes.critic(rollout.skills),
            rewards=rewards,
            ends=rollout.interval_ends(),
        )
        if config.freeze_skills:
            low = {"replay_error": self.low.audit(rollout, inputs)}
        else:
            low = self.low.update(rollout, inputs, self.generator)
        high = {} if self._uniform else self.high.update(rollout, intervals)
        discriminators = self.discriminators.update(rollout, learn=not config.freeze_skills)
        metrics = self._metrics(intervals, skill_rewards, extrinsic, low, high, discriminators)
        metrics |= coverage_metrics(rollout, visits, config.agent_skills)
        if coverage is not None:
            present = needed_mask(rollout.present)
            metrics["Rewards/LowLevel/Coverage_Mean"] = masked_mean(coverage, present).item()
        rollout.clear()
        self.version += 1
        self._uniform = self._samples_uniformly(env_steps)
        return metrics

    def policy(self, num_envs: int, generator: torch.Generator, *, deterministic: bool) -> "SkillPolicy":
        """Return the current policy for other environments."""
        return SkillPolicy(self, num_envs, generator, deterministic=deterministic)

    def load_skills(self, state: Mapping[str, Any]) -> None:
        """Take the discoverer's actor of another agent's state, and of the other low-level networks those that fit.

        A warning names each part that does not fit and keeps its own weights. Critic and team discriminator see the
        state, which may have another size in another task; the actor needs neither.

        Raises:
            RuntimeError: The actor has other sizes.
        """
        low, discriminators = self.low.networks, self.discriminators.networks
        given, own = state["low"]["networks"], low.state_dict()
        low.load_state_dict(given | _part_that_fits("critic", ("critic.", "to_value."), given, own))
        given, own = state["discriminators"]["discriminators"], discriminators.state_dict()
        team = _part_that_fits("team discriminator", ("team.",), given, own)
        discriminators.load_state_dict(team | _part_that_fits("agent discriminator", ("agent.",), given, own))

    def _samples_uniformly(self, env_steps: int) -> bool:
        return self.config.ablation == "no_high" or env_steps < self.config.warmup_steps

    def _metrics(
        self,
        intervals: Intervals,
        skill_rewards: SkillRewards,
        extrinsic: Tensor,
        low: dict[str, float],
        high: dict[str, float],
        discriminators: dict[str, float],
    ) -> dict[str, float]:
        present = needed_mask(self.rollout.present)
        metrics = {name: low[key] for name, key in _LOW_METRICS.items() if key in low} | {
            "Losses/Discriminator/Team": discriminators["team"],
            "Losses/Discriminator/Individual": discriminators["agent"],
            "Rewards/LowLevel/Extrinsic_Mean": extrinsic.mean().item(),
            "Rewards/LowLevel/TeamDiscriminator_Mean": skill_rewards.team.mean().item(),
            "Rewards/LowLevel/IndividualDiscriminator_Mean": masked_mean(skill_rewards.agents, present).item(),
            "Skills/TeamDiscriminatorAccuracy": discriminators["team_accuracy"],
            "Skills/IndividualDiscriminatorAccuracy": discriminators["agent_accuracy"],
            "Sync/HighLevelSamples": float(intervals.chosen.sum()),
            "Sync/ContinuedSkills": float((~intervals.chosen).sum()),
            "Sync/ReplayLogProbError": max(low["replay_error"], high.get("replay_error", 0.0)),
            "Sync/ReplayLogProbError_Discoverer": low["replay_error"],
        }
        if "replay_error" in high:
            metrics["Sync/ReplayLogProbError_Coordinator"] = high["replay_error"]
        metrics |= {name: high[key] for name, key in _HIGH_METRICS.items() if key in high}
        ended, self._carried_rewards = finished_rewards(intervals, self._carried_rewards, self.config.gamma_per_step)
        if ended.size:
            metrics["Rewards/HighLevel/K_Step_Accumulated_Mean"] = float(ended.mean())
        return metrics | self._usage(intervals)

    def _usage(self, intervals: Intervals) -> dict[str, float]:
        """Return the share of intervals with each team skill, and with each skill of agents that were present."""
        chosen = self.rollout.skills[torch.from_numpy(intervals.start), torch.from_numpy(intervals.env)]
        team = one_hot(chosen[:, 0], self.config.team_skills).mean(dim=0)
        counted = token_mask(self.rollout, intervals)
        codes = one_hot(chosen[:, 1:], self.config.agent_skills)
        agents = codes.mean(dim=(0, 1)) if counted is None else codes[counted[:, 1:]].mean(dim=0)
        usage = {f"Skills/Usage/Team_{index}": share for index, share in enumerate(team.tolist())}
        return usage | {f"Skills/Usage/Individual_{index}": share for index, share in enumerate(agents.tolist())}

    def state_dict(self) -> dict[str, Any]:
        """Return networks, optimisers, normalisers, memories, random stream and version; only between batches.

        Raises:
            RuntimeError: A batch is being collected.
        """
        if self.rollout.filled:
            raise RuntimeError(
                f"{self.rollout.filled} of {self.rollout.n_steps} steps of a batch are collected; save at the barrier"
            )
        return {
            "version": self.version,
            "uniform": self._uniform,
            "generator": self.generator.get_state(),
            "high": self.high.state_dict(),
            "low": self.low.state_dict(),
            "discriminators": self.discriminators.state_dict(),
            "skills": self.skills.clone(),
            "skill_ages": torch.from_numpy(self.clock.age),
            "carried_rewards": torch.from_numpy(self._carried_rewards.copy()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.version = state["version"]
        self._uniform = state["uniform"]
        restore_generator(self.generator, state["generator"])
        self.high.load_state_dict(state["high"])
        self.low.load_state_dict(state["low"])
        self.discriminators.load_state_dict(state["discriminators"])
        if "skills" in state and state["skills"].shape == self.skills.shape:  # else of another number of environments
            self.skills = state["skills"].to(self.device, copy=True)
            self.clock.restore(state["skill_ages"].cpu().numpy())
            self._carried_rewards = state["carried_rewards"].cpu().numpy().copy()
        self.rollout.clear()


def _part_that_fits(
    part: str, prefixes: tuple[str, ...], given: Mapping[str, Tensor], own: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the tensors of a part of the networks: the given ones if all of them fit, else its own."""
    names = [name for name in own if name.startswith(prefixes)]
    fits = all(name in given and given[name].shape == own[name].shape for name in names)
    if not fits:
        logger.warning(
            "the %s of these skills does not fit this run and keeps its own weights; "
            "of critic and team discriminator this is expected if the task has another state",
            part,
        )
    return {name: (given if fits else own)[name] for name in names}


class SkillCodes:
    """One-hot codes of skills for the discoverer's networks.

    Args:
        config: Determines the inputs of actor and critic.
        n_agents: n.
    """

    def __init__(self, config: HMASDConfig, n_agents: int) -> None:
        self._config = config
        self._n_agents = n_agents
        # Without individual skills, the actor is conditioned on the team skill.
        self._follows_team = config.ablation == "no_indi"
        self.n_actor = config.team_skills if self._follows_team else config.agent_skills
        individual = n_agents * config.agent_skills if config.critic_sees == "all_skills" else 0
        self.n_critic = config.team_skills + individual

    def actor(self, skills: Tensor) -> Tensor:
        """Return the code of each agent's skill ``[*batch, n, c]`` from skills ``[*batch, n + 1]``."""
        if not self._follows_team:
            return one_hot(skills[..., 1:], self._config.agent_skills)
        code = one_hot(skills[..., :1], self._config.team_skills)
        return code.expand(*code.shape[:-2], self._n_agents, self.n_actor)

    def critic(self, skills: Tensor) -> Tensor:
        """Return the code of the skills that the critic sees ``[*batch, d]``."""
        team = one_hot(skills[..., 0], self._config.team_skills)
        if self._config.critic_sees == "team_skill":
            return team
        return torch.cat([team, one_hot(skills[..., 1:], self._config.agent_skills).flatten(-2)], dim=-1)


class SkillPolicy:
    """The agent's policy with its own clocks and memories, for evaluation and pictures.

    Args:
        agent: The agent whose networks are used.
        num_envs: Number of environments.
        generator: Random generator of skills and actions.
        deterministic: Take the most probable skills and actions.
    """

    def __init__(self, agent: HMASDAgent, num_envs: int, generator: torch.Generator, *, deterministic: bool) -> None:
        self._agent = agent
        self._generator = generator
        self._deterministic = deterministic
        self._clock = SkillClock(num_envs, agent.config.skill_steps)
        self._memory = torch.zeros(num_envs, agent.n_agents, agent.config.hidden_size, device=agent.device)
        self.skills: Tensor | None = torch.zeros(num_envs, agent.n_agents + 1, dtype=torch.int64, device=agent.device)

    @torch.no_grad()
    def act(
        self, observations: Tensor, state: Tensor, episode_starts: Tensor, action_mask: Tensor | None = None
    ) -> Tensor:
        """Return actions ``[E, n, ...]``; skills are chosen at episode starts and every k steps."""
        assert self.skills is not None
        agent, outside = self._agent, observations.device
        observations, state = observations.to(agent.device), state.to(agent.device)
        legal = None if action_mask is None else action_mask.to(agent.device)
        self._memory[episode_starts] = 0.0
        due = self._clock.due() | as_bools(episode_starts)
        if due.any():
            envs = torch.from_numpy(due).nonzero().squeeze(1)
            self.skills[envs] = agent.high.choose(
                state[envs],
                observations[envs],
                self._generator,
                uniform=agent.config.ablation == "no_high",
                deterministic=self._deterministic and agent.config.ablation != "no_high",
            ).skills
            self._clock.assign(due)
        self._clock.tick(as_bools(torch.zeros_like(episode_starts)))
        codes = agent.codes.actor(self.skills)
        actions, _, self._memory = agent.low.sample(
            observations, codes, self._memory, self._generator, legal, deterministic=self._deterministic
        )
        return actions.to(outside)

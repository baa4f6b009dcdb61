"""What skills look like from outside: how often each is chosen, and how well it is recognised."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hmasd.agent import HMASDAgent
from hmasd.tasks import make_env

Counts = NDArray[np.float64]


class SkillReport(NamedTuple):
    """Counts over whole episodes."""

    team_usage: Counts
    """Share of steps under each team skill ``(n_Z,)``."""
    agent_usage: Counts
    """Share of agents' steps under each individual skill ``(n_z,)``."""
    team_confusion: Counts
    """[true, said] steps ``(n_Z, n_Z)``."""
    agent_confusion: Counts
    """[true, said] agents' steps ``(n_z, n_z)``."""


@torch.no_grad()
def skill_report(agent: HMASDAgent, seed: int, num_envs: int = 32) -> SkillReport:
    """Play one time limit in ``num_envs`` environments and ask the discriminators after every step."""
    config = agent.config
    env = make_env(config, num_envs, seed)
    policy = agent.policy(num_envs, torch.Generator().manual_seed(seed), deterministic=config.eval_deterministic)
    observations, extras = env.reset(seed=seed)
    state, starts = extras["state"], torch.ones(num_envs, dtype=torch.bool)
    team, agents = np.zeros((config.team_skills,) * 2), np.zeros((config.agent_skills,) * 2)
    for _ in range(config.max_episode_steps):
        actions = policy.act(observations, state, starts)
        observations, _, starts, extras = env.step(actions)
        state, skills = extras["state"], policy.skills
        assert skills is not None
        going = ~starts  # where an episode has just begun, what is seen belongs to no skill yet
        said_team, said_agents = agent.learner.discriminators.logits(state, observations, skills[:, 0])
        np.add.at(team, (skills[going, 0].numpy(), said_team[going].argmax(-1).numpy()), 1.0)
        np.add.at(agents, (skills[going, 1:].numpy(), said_agents[going].argmax(-1).numpy()), 1.0)
    return SkillReport(
        team_usage=team.sum(axis=1) / team.sum(),
        agent_usage=agents.sum(axis=1) / agents.sum(),
        team_confusion=team,
        agent_confusion=agents,
    )

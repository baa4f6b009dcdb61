"""Skill statistics of an agent: how often each skill is chosen and how well it is recognised."""

from contextlib import closing
from typing import NamedTuple

import numpy as np
import torch

from apexrl.arrays import Floats
from apexrl.charts import Picture, bar_chart, confusion_matrix
from apexrl.runs.rng import global_streams, streams_from
from hmasd.agent import HMASDAgent
from hmasd.tasks import make_env


class SkillReport(NamedTuple):
    """Counts over whole episodes."""

    team_usage: Floats
    """Share of steps with each team skill ``(n_Z,)``."""
    agent_usage: Floats
    """Share of agent samples with each individual skill ``(n_z,)``."""
    team_confusion: Floats
    """Steps by [true, predicted] team skill ``(n_Z, n_Z)``."""
    agent_confusion: Floats
    """Agent samples by [true, predicted] individual skill ``(n_z, n_z)``."""


@torch.no_grad()
def skill_report(agent: HMASDAgent, seed: int, num_envs: int = 32) -> SkillReport:
    """Play one time limit in ``num_envs`` environments and classify every step by the discriminators."""
    config = agent.config
    policy = agent.policy(
        num_envs, torch.Generator(agent.device).manual_seed(seed), deterministic=config.eval_deterministic
    )
    team, agents = np.zeros((config.team_skills,) * 2), np.zeros((config.agent_skills,) * 2)
    with (
        global_streams(streams_from(seed)),  # PettingZoo modules may use the global streams
        closing(make_env(config, num_envs, seed)) as env,
    ):
        observations, extras = env.reset(seed=seed)
        starts = torch.ones(num_envs, dtype=torch.bool)
        for _ in range(config.max_episode_steps):
            acted = extras["agent_mask"]  # [E, n]
            actions = policy.act(observations, extras["state"], starts, extras.get("action_mask"))
            observations, _, starts, extras = env.step(actions)
            assert policy.skills is not None
            running = ~starts  # [E] where an episode has just begun, no skill has led to the observations
            counted = acted & running.unsqueeze(1)  # [E, n]
            seen = extras["state"].to(agent.device), observations.to(agent.device)
            logits = agent.discriminators.networks.logits(*seen, policy.skills[:, 0])
            skills, (team_found, agents_found) = policy.skills.cpu(), (part.argmax(-1).cpu() for part in logits)
            np.add.at(team, (skills[running, 0].numpy(), team_found[running].numpy()), 1.0)
            np.add.at(agents, (skills[:, 1:][counted].numpy(), agents_found[counted].numpy()), 1.0)
    return SkillReport(
        team_usage=team.sum(axis=1) / team.sum(),
        agent_usage=agents.sum(axis=1) / agents.sum(),
        team_confusion=team,
        agent_confusion=agents,
    )


def skill_charts(report: SkillReport) -> list[Picture]:
    """Return bars of skill usage and confusion matrices of the discriminators."""
    return [
        _usage("team_skill_usage", report.team_usage, title="Team skills chosen", label="Z"),
        _usage("individual_skill_usage", report.agent_usage, title="Individual skills chosen", label="z"),
        _confusion("team_confusion", report.team_confusion, title="Team discriminator"),
        _confusion("individual_confusion", report.agent_confusion, title="Individual discriminator"),
    ]


def _usage(name: str, shares: Floats, *, title: str, label: str) -> Picture:
    bars = {f"{label} {index}": share for index, share in enumerate(shares.tolist())}
    texts = [f"{100 * share:.0f} %" for share in bars.values()]
    return bar_chart(bars, name=name, title=title, texts=texts, y_title="share", height=240)


def _confusion(name: str, counts: Floats, *, title: str) -> Picture:
    skills = [str(index) for index in range(counts.shape[0])]
    return confusion_matrix(
        counts, skills, name=name, title=title, x_title="predicted skill", y_title="true skill", height=320
    )

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hmasd.learning.coverage import coverage_metrics, coverage_rewards, find_visits
from hmasd.learning.rollout import Rollout

draw = np.random.default_rng(0).integers
LOSSES = ("total", "policy", "value", "entropy", "kl", "replay_error")


@pytest.fixture
def rollout():
    """Four steps of two agents that observe a a a b and c b b b, the last b while absent."""
    rollout = Rollout(n_steps=4, num_envs=1, n_agents=2, n_observation=2, n_state=1, action_shape=(), width=1)
    values = {"a": (0.1, 0.2), "b": (0.2, 0.1), "c": (0.1001, 0.5)}
    for agent, names in enumerate(("aaab", "cbbb")):
        for step, name in enumerate(names):
            rollout.next_observations[step, 0, agent] = torch.tensor(values[name])
    rollout.present[:] = True
    rollout.present[3, 0, 1] = False
    rollout.skills[:, 0, 1] = torch.tensor([0, 0, 0, 1])
    rollout.skills[:, 0, 2] = 1
    return rollout


def test_the_reward_is_minus_the_log_of_visits(rollout):
    rewards = coverage_rewards(rollout, find_visits(rollout))[:, 0]
    three, one = -math.log(3.0), 0.0
    assert rewards[:, 0].tolist() == pytest.approx([three] * 4)
    assert rewards[:, 1].tolist() == pytest.approx([one, three, three, 0.0])


def test_entropy_of_visits_and_their_information_about_skills(rollout, monkeypatch):
    metrics = coverage_metrics(rollout, find_visits(rollout), 2)
    p = np.array([3, 3, 1]) / 7
    entropy = -(p * np.log(p)).sum()
    assert metrics["Skills/VisitEntropy"] == pytest.approx(entropy)
    # skill 0: a a a; skill 1: b c b b
    within = 4 / 7 * -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    # in the order of the agents' steps the observations are a c a b a b b; shuffled, skill 0 has c a b, skill 1 a b a b
    shuffled = np.array([1, 0, 0, 1, 1, 1, 0])
    monkeypatch.setattr(
        np.random, "default_rng", lambda _: SimpleNamespace(permutation=lambda _: shuffled, integers=draw)
    )
    by_chance = 3 / 7 * np.log(3) + 4 / 7 * np.log(2)
    metrics = coverage_metrics(rollout, find_visits(rollout), 2)
    assert metrics["Skills/VisitInformation"] == pytest.approx(by_chance - within)
    rollout.skills[:] = 0
    monkeypatch.undo()
    assert coverage_metrics(rollout, find_visits(rollout), 2)["Skills/VisitInformation"] == pytest.approx(0.0)


@pytest.mark.parametrize("n_observations", [20, 500, 10**9])
def test_skills_that_visit_observations_at_random_have_no_information(n_observations):
    """However few visits an observation has; of a billion, hardly any is visited twice."""
    rng = np.random.default_rng(3)
    rollout = Rollout(n_steps=50, num_envs=32, n_agents=2, n_observation=1, n_state=1, action_shape=(), width=1)
    rollout.present[:] = True
    rollout.skills[..., 1:] = torch.from_numpy(rng.integers(0, 4, (50, 32, 2)))
    rollout.next_observations[..., 0] = torch.from_numpy(rng.integers(0, n_observations, (50, 32, 2)))
    information = coverage_metrics(rollout, find_visits(rollout), 4)["Skills/VisitInformation"]
    assert abs(information) < 0.03


def test_the_discoverer_is_rewarded_for_coverage(collected):
    seen = []
    for weight in (0.0, 0.5):
        agent = collected(lambda_coverage=weight, lambda_team=0.0, lambda_agent=0.0, lambda_e=0.0)
        given = []
        agent.low.update = lambda rollout, inputs, generator, given=given: (
            given.append(inputs.rewards) or dict.fromkeys(LOSSES, 0.0)
        )
        expected = weight * coverage_rewards(agent.rollout, find_visits(agent.rollout))
        metrics = agent.update(92)
        assert torch.allclose(given[0], expected)
        seen.append(metrics["Skills/VisitEntropy"])
    assert seen[0] == seen[1] > 2.0

"""Action masks from a PettingZoo task to every algorithm, on a task that refuses illegal actions."""

import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

from apexrl.agent.resume_check import check_resume
from apexrl.algorithms.losses import ReplayMismatchError
from hmasd.__main__ import main
from hmasd.tasks import make_agent, make_env
from hmasd.training.collection import Collector
from hmasd.training.trainer import Trainer, train

N_BUTTONS = 6
ALGORITHMS = ("hmasd", "mappo", "mat")


class MeetingEnv:
    """Two agents are rewarded for pressing the one button that both may press; three of six are legal for each.

    An illegal press raises. Legal presses at random are rewarded in one step of nine.
    """

    possible_agents = ("a", "b")

    def __init__(self, max_cycles=8):
        self.max_cycles, self.steps, self.agents = max_cycles, 0, []
        self.rng = np.random.default_rng()

    def observation_space(self, agent):
        return Dict(observation=Box(0.0, 1.0, (2 * N_BUTTONS,), np.float32), action_mask=MultiBinary(N_BUTTONS))

    def action_space(self, agent):
        return Discrete(N_BUTTONS)

    def _observe(self):
        order = self.rng.permutation(N_BUTTONS)
        self.legal = np.zeros((2, N_BUTTONS), dtype=np.int8)
        self.legal[0, order[:3]] = self.legal[1, order[2:5]] = 1  # order[2] is the one that both may press
        pairs = zip(self.agents, (self.legal, self.legal[::-1]), strict=True)
        return {
            agent: {"observation": own.astype(np.float32).ravel(), "action_mask": own[0].copy()} for agent, own in pairs
        }

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.steps, self.agents = 0, list(self.possible_agents)
        return self._observe(), {agent: {} for agent in self.agents}

    def step(self, actions):
        pressed = [int(actions[agent]) for agent in self.agents]
        for row, button in enumerate(pressed):
            assert self.legal[row, button], f"button {button} is illegal for agent {row}"
        self.steps += 1
        acting = list(self.agents)
        reward = float(pressed[0] == pressed[1])
        over = self.steps == self.max_cycles
        observations = self._observe()
        if over:
            self.agents = []
        no = dict.fromkeys(acting, False)
        return observations, dict.fromkeys(acting, reward), no, dict.fromkeys(acting, over), {a: {} for a in acting}

    def close(self):
        pass


@pytest.fixture
def meeting(monkeypatch):
    """The task ``pettingzoo:meeting``."""
    return register(monkeypatch, MeetingEnv)


def register(monkeypatch, env_class):
    module = ModuleType("meeting")
    module.parallel_env = env_class
    monkeypatch.setitem(sys.modules, "meeting", module)
    return "pettingzoo:meeting"


def gathered(config):
    env = make_env(config, config.num_envs, config.seed)
    agent = make_agent(config, env)
    Collector(env, config.seed).collect(agent, config.rollout_steps)
    return agent


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_only_legal_actions_are_taken_and_the_replay_audit_holds(small, meeting, algorithm):
    agent = gathered(small(task=meeting, algorithm=algorithm, num_minibatches=2))
    rollout = agent.rollout
    assert rollout.action_masks.shape == (23, 4, 2, N_BUTTONS)
    assert (rollout.action_masks.sum(dim=-1) == 3).all()
    assert rollout.action_masks.gather(-1, rollout.actions.unsqueeze(-1)).all()
    # near log(1 / 3), the first policy of three legal actions, and not near log(1 / 6)
    assert rollout.log_probs.mean().item() == pytest.approx(-np.log(3.0), abs=0.1)
    assert agent.update(92)["Sync/ReplayLogProbError"] <= 1e-5


@pytest.mark.parametrize("mask", [[1] * (N_BUTTONS + 1), [1], [], [0] * N_BUTTONS], ids=["7", "1", "0", "none legal"])
@pytest.mark.parametrize("first_step", [0, 3], ids=["from the start", "later"])
def test_masks_of_a_wrong_length_or_without_a_legal_action_are_refused(monkeypatch, tmp_path, capsys, mask, first_step):
    class WrongMaskEnv(MeetingEnv):
        def _observe(self):
            observations = super()._observe()
            if self.agents and self.steps >= first_step:
                observations["b"]["action_mask"] = np.array(mask, np.int8)
            return observations

    task = register(monkeypatch, WrongMaskEnv)
    words = ["num_envs=2", "batch_size=20", "total_steps=20", "hidden_size=8", f"task={task}"]
    assert main(["train", "--folder", str(tmp_path), "--set", *words]) == 2
    message = capsys.readouterr().err
    assert f"agent 'b' has the action mask {mask}. A mask has one entry for each of its 6 actions" in message
    assert "Traceback" not in message


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_audit_finds_a_wrong_mask(small, meeting, algorithm):
    agent = gathered(small(task=meeting, algorithm=algorithm))
    agent.rollout.action_masks[:] = True
    with pytest.raises(ReplayMismatchError):
        agent.update(92)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_masked_run_resumes_bit_by_bit(small, meeting, tmp_path, algorithm):
    config = small(task=meeting, algorithm=algorithm, eval_interval=276, max_episode_steps=8)
    check_resume(lambda folder: Trainer(config, folder), tmp_path, iterations=2)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_agents_learn_the_masked_task(small, meeting, algorithm):
    config = small(
        task=meeting,
        algorithm=algorithm,
        max_episode_steps=8,
        num_envs=16,
        batch_size=16 * 16,
        total_steps=16 * 16 * 20,
        ppo_epochs=8,
        hidden_size=32,
        lr=5e-3,
        lambda_team=0.0,
        lambda_agent=0.0,
        eval_interval=10**6,
        eval_episodes=32,
    )
    result = train(config).last_evaluation
    assert result.returns.mean() > 4.0, "8 steps: 8 / 9 at random among the legal buttons, 8 at best"


def test_a_step_without_a_mask_allows_everything(small):
    agent = gathered(small())
    rollout = agent.rollout
    assert rollout.action_masks is None
    rollout.clear()
    seen = rollout.observations[0], rollout.states[0], rollout.present[0], rollout.episode_starts[0]
    mask = torch.zeros(4, 2, 5, dtype=torch.bool)
    mask[..., 3] = True
    rollout.add_observations(*seen, mask)
    assert torch.equal(rollout.action_mask(0), mask)
    rollout.add_observations(*seen)
    assert rollout.action_mask(0).all(), "absent means absent, not the one before"

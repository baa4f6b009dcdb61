import pytest
import torch

from hmasd.agent import HMASDAgent
from hmasd.config import HMASDConfig
from hmasd.tasks import make_agent, make_env
from hmasd.training.collection import Collector


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def small():
    """A configuration that trains within a second, with episodes that end inside rollouts and inside skills."""

    def make(**changes) -> HMASDConfig:
        values = {
            "task": "alice_and_bob",
            "num_envs": 4,
            "batch_size": 4 * 23,
            "max_episode_steps": 9,
            "skill_steps": 4,
            "hidden_size": 16,
            "ppo_epochs": 2,
            "discriminator_epochs": 2,
            "sequence_length": 5,
            "total_steps": 4 * 23 * 4,
            "eval_interval": 4 * 23 * 2,
            "eval_episodes": 6,
            "checkpoint_interval": 4 * 23,
            "lr": 1e-2,
            "lr_discriminator": 1e-2,
        }
        return HMASDConfig(**(values | changes))

    return make


@pytest.fixture
def collected(small):
    """A learner with one complete, unlearned batch."""

    def make(**changes):
        config = small(**changes)
        env = make_env(config, config.num_envs, config.seed)
        learner = make_agent(config, env)
        Collector(env, config.seed).collect(learner, config.rollout_steps)
        return learner

    return make


@pytest.fixture
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def hmasd_agent(collected) -> HMASDAgent:
    return collected()

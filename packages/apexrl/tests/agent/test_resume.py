"""What the check of resumed runs finds, and environments that cannot be resumed."""

import pytest
import torch
from gymnasium.spaces import Box, Discrete

from apexrl.agent.learner import Learner
from apexrl.agent.multi_agent_runner import MultiAgentRunner
from apexrl.agent.offline_runner import OfflineRunner
from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.agent.resume_check import ResumeCheckError, check_resume
from apexrl.agent.runner import Runner
from apexrl.algorithms.awr import AWRConfig
from apexrl.algorithms.bc import BCConfig
from apexrl.algorithms.mappo import MAPPOConfig
from apexrl.algorithms.ppo import PPOConfig
from apexrl.models import GRUCritic, GRUDiscreteActor
from apexrl.storage.offline import OfflineDataset

FIELDS = {
    "num_steps": 16,
    "minibatch_size": 32,
    "num_epochs": 2,
    "normalize_observations": True,
    "normalize_rewards": True,
    "normalize_values": True,
    "schedule": "adaptive",
}


def ppo(folder, make_env, name="CartPole-v1", **changes):
    cfg = PPOConfig(**(FIELDS | changes))
    return OnPolicyRunner(make_env(name), cfg=cfg, log_dir=folder, log_interval=1, save_interval=2, show_progress=False)


def recurrent_ppo(folder, make_env):
    cfg = PPOConfig(**FIELDS, sequence_length=4)
    networks = {"actor_class": GRUDiscreteActor, "critic_class": GRUCritic}
    return OnPolicyRunner(
        make_env(), cfg=cfg, **networks, log_dir=folder, log_interval=1, save_interval=2, show_progress=False
    )


def mappo(folder, make_env):
    spread = pytest.importorskip("mpe2.simple_spread_v3")
    from apexrl.envs.pettingzoo.wrapper import PettingZooVecEnv

    env = PettingZooVecEnv([lambda: spread.parallel_env(N=2, max_cycles=10)] * 2)
    cfg = MAPPOConfig(**FIELDS)
    return MultiAgentRunner(env, cfg=cfg, log_dir=folder, log_interval=1, save_interval=2, show_progress=False)


def offline(folder, algorithm):
    generator = torch.Generator().manual_seed(0)
    dataset = OfflineDataset.from_trajectory(
        torch.randn(50, 2, generator=generator),
        torch.randint(0, 3, (50,), generator=generator),
        torch.randn(50, generator=generator),
        torch.rand(50, generator=generator) < 0.1,
        gamma=0.9,
    )
    cfg = {"bc": BCConfig, "awr": AWRConfig}[algorithm](minibatch_size=16, normalize_observations=True)
    spaces = Box(-9, 9, (2,)), Discrete(3)
    options = {"cfg": cfg, "log_dir": folder, "save_interval": 2, "show_progress": False}
    return OfflineRunner(dataset, *spaces, algorithm, validation=dataset, **options)


LEARNERS = {
    "ppo": ppo,
    "ppo, continuous": lambda folder, make_env: ppo(folder, make_env, "Pendulum-v1"),
    "ppo, linear schedule": lambda folder, make_env: ppo(folder, make_env, schedule="linear"),
    "ppo, recurrent": recurrent_ppo,
    "mappo": mappo,
    "bc": lambda folder, make_env: offline(folder, "bc"),
    "awr": lambda folder, make_env: offline(folder, "awr"),
}
"""``tests/learners`` kills and resumes each of them, and plants NaN in what it learns from."""


def test_the_check_finds_what_a_state_leaves_out(tmp_path):
    class Forgetful(Learner):
        name, seed, per_iteration = "test.forgetful", 0, 1

        def __init__(self):
            self.total, self.hidden = 0.0, 0.0

        @property
        def config(self):
            return {}

        def update(self):
            self.hidden += 1.0
            self.total += self.hidden
            return {"train/loss": self.total}

        def state_dict(self):
            return {"total": self.total}

        def load_state_dict(self, state):
            self.total = state["total"]

    def make(folder):
        return Runner(Forgetful(), log_dir=folder, save_interval=1, show_progress=False)

    with pytest.raises(ResumeCheckError, match=r"the resumed run differs in state\.total"):
        check_resume(make, tmp_path)
    with pytest.raises(ResumeCheckError, match="left no checkpoint"):
        check_resume(lambda folder: Runner(Forgetful(), log_dir=folder, show_progress=False), tmp_path / "other")


def test_environments_without_state_go_on_with_fresh_episodes_and_say_so(tmp_path, scripted_env, caplog):
    from apexrl.envs.vec_env import StateNotSupportedError

    def without_state():
        env = scripted_env()

        def refuse():
            raise StateNotSupportedError("no state")

        env.state_dict = refuse
        return env

    options = {"cfg": PPOConfig(num_steps=8), "save_dir": tmp_path, "save_interval": 1, "show_progress": False}
    OnPolicyRunner(without_state(), **options).learn(num_iterations=1)
    env = without_state()
    resumed = OnPolicyRunner(env, **options)
    resumed.resume()
    assert "does not resume exactly" in caplog.text
    assert env.resets == 1
    resumed.learn(num_iterations=1)
    assert resumed.iteration == 2
    assert env.resets == 1  # once, not again at the next rollout

"""What a newcomer writes works where its meaning is clear, and is answered in the newcomer's words elsewhere."""

import logging

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from mpe2 import simple_spread_v3

from apexrl import GymVecEnv, MAPPOConfig, MultiAgentRunner, OnPolicyRunner, PPOConfig
from apexrl.envs.vec_env import NotAnEnvError, StepFormatError
from apexrl.models import CNNCritic, CNNDiscreteActor, DictActor, DictCritic
from apexrl.models.factory import NetworkOptionError
from apexrl.runs.errors import UnwritableError

CFG = PPOConfig(num_steps=16, num_epochs=1, minibatch_size=32)


def learn(env, **options):
    runner = OnPolicyRunner(env=env, **{"cfg": CFG, "show_progress": False, "log_interval": 1} | options)
    runner.learn(num_iterations=2)
    return runner


class Pictures(gym.Env):
    """Random observations of a space; actions are ignored."""

    action_space = spaces.Discrete(2)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 1.0, bool(self.np_random.random() < 0.2), False, {}


@pytest.mark.parametrize(
    ("env", "num_envs"),
    [
        ("CartPole-v1", 8),
        (gym.make("CartPole-v1"), 1),
        (gym.make("Pendulum-v1"), 1),
        (gym.make("FrozenLake-v1"), 1),
        ([lambda: gym.make("CartPole-v1")] * 3, 3),
    ],
    ids=["id", "env", "box", "integers", "functions"],
)
def test_what_stands_for_an_environment(env, num_envs):
    runner = learn(env)
    assert runner.total_timesteps == 2 * 16 * num_envs


def test_several_agents_have_a_runner_of_their_own():
    with pytest.raises(NotAnEnvError, match=r"with 3 agents.*MultiAgentRunner"):
        OnPolicyRunner(env=simple_spread_v3.parallel_env(max_cycles=5))
    runner = MultiAgentRunner(
        env=simple_spread_v3.parallel_env(max_cycles=5), cfg=MAPPOConfig(num_steps=16), show_progress=False
    )
    assert runner.learn(num_iterations=1).total_timesteps == 16


def test_columns_of_rewards_and_vectors_in_the_log(scripted_env):
    class Columns(scripted_env):
        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            extras["log"] = {"/robot/height": torch.tensor([1.0, 3.0])}
            return obs, rewards[:, None], dones[:, None], extras

    stats = []
    runner = OnPolicyRunner(env=Columns(), cfg=CFG, show_progress=False)
    runner.add_callback("post_rollout", lambda runner, metrics: stats.append(metrics))
    runner.learn(num_iterations=1)
    plain = []
    runner = OnPolicyRunner(env=scripted_env(), cfg=CFG, show_progress=False)
    runner.add_callback("post_rollout", lambda runner, metrics: plain.append(metrics))
    runner.learn(num_iterations=1)
    assert stats[0]["robot/height"] == 2.0
    assert stats[0]["episode/mean_reward"] == plain[0]["episode/mean_reward"]


def test_time_outs_reward_components_and_log_are_enough(bare_env, caplog):
    stats = []
    with caplog.at_level(logging.WARNING):
        runner = OnPolicyRunner(env=bare_env(), cfg=CFG, show_progress=False)
        runner.add_callback("post_rollout", lambda runner, metrics: stats.append(metrics))
        runner.learn(num_iterations=2)
    warnings = [record for record in caplog.records if "final_observation" in record.message]
    assert len(warnings) == 1  # not one per time-out
    assert {"episode/mean_reward", "reward_components/one", "robot/height"} <= stats[0].keys()


def test_names_of_other_libraries_for_layers():
    runner = learn("CartPole-v1", actor_cfg={"hidden_sizes": [7]}, critic_cfg={"net_arch": [5]})
    assert runner.agent.policy.actor.net[0].out_features == 7
    assert runner.agent.policy.critic.net[0].out_features == 5
    with pytest.raises(NetworkOptionError, match="Perhaps hidden_dims was meant"):
        learn("CartPole-v1", actor_cfg={"hiden_dim": [7]})
    for widths in (64, {"pi": [64], "vf": [64]}):
        with pytest.raises(TypeError, match=r"must be a list of widths, such as \[64, 64\]"):
            learn("CartPole-v1", actor_cfg={"net_arch": widths})


def test_pictures_are_learned_by_convolutions():
    runner = learn(GymVecEnv([lambda: Pictures(spaces.Box(0, 255, (8, 8, 3), np.uint8))] * 2))
    assert isinstance(runner.agent.policy.actor, CNNDiscreteActor)
    assert isinstance(runner.agent.policy.critic, CNNCritic)


def test_dicts_are_learned_by_key_and_predicted_as_the_environment_gives_them():
    space = spaces.Dict({"camera": spaces.Box(0, 255, (8, 8, 3), np.uint8), "speed": spaces.Box(-1, 1, (2,))})
    runner = learn(GymVecEnv([lambda: Pictures(space)] * 2))
    assert isinstance(runner.agent.policy.actor, DictActor)
    assert isinstance(runner.agent.policy.critic, DictCritic)
    observation = space.sample()
    action, _ = runner.predict(observation)
    packed, _ = runner.predict(runner.agent.policy.actor.observation_space.pack(observation))
    assert action == packed


def test_integer_boxes_are_acted_on():
    class Steps(Pictures):
        action_space = spaces.Box(-1, 2, (2,), np.int32)

        def step(self, action):
            assert self.action_space.contains(action)
            return super().step(action)

    assert learn(GymVecEnv([lambda: Steps(spaces.Box(-1, 1, (3,)))] * 2)).iteration == 2


def test_success_is_counted_by_episode():
    runner = OnPolicyRunner(
        env=GymVecEnv.make("apexrl/CueRecall-v0", 8, delay=3), cfg=PPOConfig(num_steps=16), show_progress=False
    )
    stats = []
    runner.add_callback("post_rollout", lambda runner, metrics: stats.append(metrics))
    runner.learn(num_iterations=1)
    assert stats[0]["episode/success_rate"] == stats[0]["episode/mean_reward"]  # the reward is 1 for success
    evaluated = runner.eval(num_episodes=16)
    assert evaluated["eval/success_rate"] == evaluated["eval/mean_reward"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"obs": lambda obs: torch.zeros(2, 5)},
            r"observations as shape \[2, 5\]. They must be a tensor of shape \[2, 3\]",
        ),
        ({"obs": lambda obs: obs[:1]}, r"observations as shape \[1, 3\]"),
        ({"obs": lambda obs: None}, "observations as a NoneType"),
        ({"extras": lambda extras: None}, r"extras as a NoneType. It must be a dict"),
        ({"extras": lambda extras: {"reward_components": {"near": 0.5}}}, r"'near'\] is a float"),
        ({"extras": lambda extras: {"reward_components": {"near": torch.zeros(5)}}}, r"'near'\] is shape \[5\]"),
    ],
)
def test_what_an_environment_returns_wrongly_is_named(scripted_env, change, message):
    class Wrong(scripted_env):
        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            return change.get("obs", lambda it: it)(obs), rewards, dones, change.get("extras", lambda it: it)(extras)

    with pytest.raises(StepFormatError, match=message + r".*Run apexrl\.check_env"):
        learn(Wrong())


def test_a_missing_privileged_observation_is_named(scripted_env):
    class Wrong(scripted_env):
        def _extras(self, obs):
            return {}

    with pytest.raises(StepFormatError, match=r"gave no extras\['privileged_observation'\]"):
        learn(Wrong(privileged=True))


def test_a_device_may_be_a_text_and_components_may_be_arrays(scripted_env):
    class Loose(scripted_env):
        def __init__(self):
            super().__init__()
            self.device = "cpu"

        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            parts = {name: part.numpy() for name, part in extras["reward_components"].items()}
            return obs, rewards, dones, extras | {"reward_components": parts, "log": None}

    runner = learn(Loose())
    assert runner.learner.storage.episodes().components["one"].tolist()[0] == 3.0


@pytest.mark.parametrize(("reward", "obs"), [(np.ones(2), np.zeros(3)), ("much", np.zeros(3)), (1.0, np.zeros(5))])
def test_what_a_gymnasium_environment_returns_wrongly_is_named(reward, obs):
    class Wrong(Pictures):
        def step(self, action):
            return obs, reward, False, False, {}

    with pytest.raises(StepFormatError, match=r"environment 0 \(Wrong\) returned the reward"):
        learn(GymVecEnv([lambda: Wrong(spaces.Box(-1, 1, (3,)))] * 2))


def test_final_observations_of_the_ended_rows_alone_are_named(scripted_env):
    class Wrong(scripted_env):
        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            if dones.any():
                extras["final_observation"] = extras["final_observation"][dones]
            return obs, rewards, dones, extras

    with pytest.raises(StepFormatError, match=r"final observation of shape \[1, 3\]. It must have 2 rows"):
        learn(Wrong())


def test_observations_of_another_shape_are_not_predicted_from():
    runner = OnPolicyRunner(env="CartPole-v1", cfg=CFG, show_progress=False)
    for obs in (np.zeros(3), np.zeros((4, 1)), np.zeros((2, 3, 4))):
        with pytest.raises(ValueError, match=r"it takes one of shape \[4\], or a batch of them"):
            runner.predict(obs)
    team = MultiAgentRunner(
        env=simple_spread_v3.parallel_env(max_cycles=5), cfg=MAPPOConfig(num_steps=16), show_progress=False
    )
    with pytest.raises(ValueError, match=r"it takes one of shape \[agents, 18\]"):
        team.predict(np.zeros(18))


def test_a_file_where_checkpoints_should_go_is_named(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(UnwritableError, match="runs"):
        learn("CartPole-v1", save_dir=tmp_path / "runs", save_interval=1)

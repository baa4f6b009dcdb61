"""The runner's documented usage: every code block, with another environment, fewer steps and other folders."""

import inspect
import json
import logging

import gymnasium as gym
import pytest
import torch
from gymnasium.spaces import Box

from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.envs.gymnasium.wrapper import GymVecEnvContinuous
from apexrl.envs.vec_env import VecEnv
from apexrl.models import MLPActor, MLPCritic


@pytest.fixture
def env():
    return GymVecEnvContinuous([lambda: gym.make("Pendulum-v1", max_episode_steps=40)] * 2)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Run in a folder of its own: the code writes to ./logs and ./checkpoints."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_basic_usage(env, own_folder):
    runner = OnPolicyRunner(
        env=env,
        algorithm="ppo",
        actor_class=MLPActor,
        critic_class=MLPCritic,
        log_dir="./logs",
        save_dir="./checkpoints",
        log_interval=10,
        save_interval=100,
    )

    runner.learn(total_timesteps=1_000)

    stats = runner.eval(num_episodes=4)

    runner.save_checkpoint("final_model.pt")

    assert runner.total_timesteps == 1024  # two whole rollouts of 256 steps × 2 environments
    assert stats["eval/num_episodes"] == 4
    assert (own_folder / "checkpoints" / "final_model.pt").is_file()
    assert list((own_folder / "logs").glob("events.out.tfevents.*"))


def test_configuration(env, caplog, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with caplog.at_level(logging.WARNING):
        runner = OnPolicyRunner(
            env=env,
            algorithm="ppo",
            actor_class=MLPActor,
            critic_class=MLPCritic,
            actor_cfg={"hidden_dims": [256]},
            critic_cfg={"hidden_dims": [256]},
            log_dir="./logs",
            save_dir="./checkpoints",
            device=torch.device("cuda"),
            log_interval=10,
            save_interval=100,
            log_reward_components=True,
        )
    assert "falling back to the CPU" in caplog.text
    for network in (runner.agent.policy.actor.net, runner.agent.policy.critic.net):
        assert [layer.out_features for layer in network if isinstance(layer, torch.nn.Linear)] == [256, 1]


def test_training_loop_is_the_documented_one():
    source = inspect.getsource(OnPolicyRunner.learn)
    order = ["self._collect()", "learner.update()", "learner.adjust(", "self._report(", "self._save("]
    places = [source.index(step) for step in order]
    assert places == sorted(places)
    body = source[source.index("goal, learner = ") :]
    assert len(body.splitlines()) <= 40  # readable in one screen


def test_callbacks(env, capsys):
    threshold = -1e9
    runner = OnPolicyRunner(env=env, cfg=PPOConfig(num_steps=40), show_progress=False)

    def on_iteration_start(runner):
        print(f"开始迭代 {runner.iteration}")

    def on_iteration_end(runner, stats):
        if stats["rollout/mean_reward"] > threshold:
            print("达到奖励阈值！")

    runner.add_callback("pre_iteration", on_iteration_start)
    runner.add_callback("post_iteration", on_iteration_end)
    runner.learn(num_iterations=2)
    assert capsys.readouterr().out.splitlines() == ["开始迭代 0", "达到奖励阈值！", "开始迭代 1", "达到奖励阈值！"]


@pytest.mark.parametrize(
    "event", ["pre_iteration", "post_iteration", "pre_rollout", "post_rollout", "pre_update", "post_update"]
)
def test_available_events(env, event):
    runner, seen = OnPolicyRunner(env=env, cfg=PPOConfig(num_steps=8), show_progress=False), []
    runner.add_callback(event, lambda runner: seen.append(runner.iteration))
    runner.learn(num_iterations=2)
    assert len(seen) == 2


def test_reward_components_and_environment_metrics(scripted_env):
    env = scripted_env(ends=(4, 6))
    step = env.step

    def with_documented_extras(actions):
        obs, rewards, dones, extras = step(actions)
        velocity_reward, energy_penalty, stability_reward = (
            rewards,
            torch.ones_like(rewards),
            2 * torch.ones_like(rewards),
        )
        robot_height = torch.full_like(rewards, 3.0)
        extras |= {
            "reward_components": {
                "velocity": velocity_reward,
                "energy": -energy_penalty,
                "stability": stability_reward,
            },
            "log": {
                "/robot/height_mean": robot_height.mean().item(),
            },
        }
        return obs, rewards, dones, extras

    env.step = with_documented_extras
    runner, seen = OnPolicyRunner(env=env, cfg=PPOConfig(num_steps=6), show_progress=False), []
    runner.add_callback("post_iteration", lambda runner, stats: seen.append(stats))
    runner.learn(num_iterations=1)
    # Two episodes ended, of 4 and of 6 steps: components are summed per episode, then averaged.
    assert seen[0]["reward_components/energy"] == -(4 + 6) / 2
    assert seen[0]["reward_components/stability"] == 2 * (4 + 6) / 2
    assert seen[0]["reward_components/velocity"] == seen[0]["episode/mean_reward"] == (10 + 21) / 2
    assert seen[0]["robot/height_mean"] == 3.0


def test_checkpoints(env, own_folder, fingerprint):
    runner = OnPolicyRunner(env=env, cfg=PPOConfig(num_steps=8), save_dir="./checkpoints", show_progress=False)
    runner.learn(num_iterations=1)
    saved = fingerprint(runner.agent.policy)

    runner.save_checkpoint("model.pt")

    runner.save_checkpoint(f"checkpoint_{runner.iteration}.pt")

    runner.learn(num_iterations=1)
    assert fingerprint(runner.agent.policy) != saved

    runner.load_checkpoint("model.pt")

    assert (fingerprint(runner.agent.policy), runner.iteration) == (saved, 1)
    assert sorted(path.name for path in (own_folder / "checkpoints").glob("*.pt")) == ["checkpoint_1.pt", "model.pt"]


def test_evaluation(env, capsys):
    runner = OnPolicyRunner(env=env, show_progress=False)
    stats = runner.eval(num_episodes=6)

    print(f"平均奖励: {stats['eval/mean_reward']:.2f}")
    print(f"奖励标准差: {stats['eval/std_reward']:.2f}")
    print(f"最小奖励: {stats['eval/min_reward']:.2f}")
    print(f"最大奖励: {stats['eval/max_reward']:.2f}")

    assert len(capsys.readouterr().out.splitlines()) == 4
    assert stats["eval/min_reward"] <= stats["eval/mean_reward"] <= stats["eval/max_reward"]
    assert stats == runner.eval(num_episodes=6)  # deterministic mode, the same seeds


def test_preconfigured_agent(env):
    cfg = PPOConfig(learning_rate=3e-4)
    agent = PPO(
        env=env,
        cfg=cfg,
        actor_class=MLPActor,
        critic_class=MLPCritic,
    )

    runner = OnPolicyRunner(
        agent=agent,
        env=env,
        cfg=cfg,
        log_dir="./logs",
    )

    assert runner.agent is agent
    assert runner.learn(num_iterations=1).is_exact


class Robot(VecEnv):
    """An environment whose extras are exactly the documented ones."""

    def __init__(self, num_envs=4):
        self.num_envs, self.device = num_envs, torch.device("cpu")
        self.observation_space, self.action_space = Box(-10.0, 10.0, (2,)), Box(-1.0, 1.0, (1,))
        self.generator = torch.Generator()

    def reset(self, seed=None):
        if seed is not None:
            self.generator.manual_seed(seed)
        self.x, self.age = torch.rand(self.num_envs, 2, generator=self.generator), torch.zeros(self.num_envs)
        return self.x.clone(), {}

    def step(self, actions):
        velocity = actions.squeeze(-1)
        self.x = self.x + 0.1 * actions
        self.age += 1
        time_outs = self.age >= 12
        dones = time_outs | (self.x[:, 0].abs() > 3)
        velocity_reward, energy_penalty, stability_reward = velocity, velocity.square(), torch.ones_like(velocity)
        extras = {
            "time_outs": time_outs,
            "reward_components": {
                "velocity": velocity_reward,
                "energy": -energy_penalty,
                "stability": stability_reward,
            },
            "log": {
                "/robot/height_mean": self.x[:, 1].mean().item(),
            },
        }
        fresh = torch.rand(self.num_envs, 2, generator=self.generator)
        self.x = torch.where(dones[:, None], fresh, self.x)
        self.age = torch.where(dones, torch.zeros_like(self.age), self.age)
        return self.x.clone(), velocity_reward - energy_penalty + stability_reward, dones, extras


def script():
    """Run the documented basic usage on an environment with the documented extras."""
    env = Robot()
    runner = OnPolicyRunner(
        env=env,
        algorithm="ppo",
        actor_class=MLPActor,
        critic_class=MLPCritic,
        log_dir="./logs",
        save_dir="./checkpoints",
        log_interval=1,
        save_interval=1,
        cfg=PPOConfig(num_steps=16),
        show_progress=False,
    )
    runner.learn(total_timesteps=3 * 64)
    stats = runner.eval(num_episodes=4)
    runner.save_checkpoint("final_model.pt")
    return stats


def test_the_documented_extras_are_enough(own_folder, caplog):
    stats = script()
    assert stats["eval/num_episodes"] == 4
    [line] = [json.loads(line) for line in (own_folder / "logs" / "metrics.jsonl").read_text().splitlines()][-1:]
    assert {f"reward_components/{name}" for name in ("velocity", "energy", "stability")} <= line.keys()
    assert "robot/height_mean" in line
    assert line["reward_components/stability"] == pytest.approx(line["episode/mean_length"])


def test_the_script_twice_in_the_same_folders_mixes_and_erases_nothing(own_folder):
    script()
    files = {path: path.read_bytes() for path in own_folder.rglob("*") if path.suffix in (".pt", ".jsonl")}
    script()
    kept = {path.read_bytes() for path in own_folder.rglob("earlier/1/*")}
    assert {content for path, content in files.items() if path.name != "timings.jsonl"} <= kept
    names = {"checkpoint_1.pt", "checkpoint_2.pt", "checkpoint_3.pt", "final_model.pt"}
    for folder in ("checkpoints", "checkpoints/earlier/1"):
        assert {path.name for path in (own_folder / folder).glob("*.pt")} == names
    steps = [json.loads(line)["step"] for line in (own_folder / "logs" / "metrics.jsonl").read_text().splitlines()]
    assert steps == [64, 128, 192]

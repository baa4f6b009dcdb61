"""2N iterations in one go equal N, a kill, and N more: by the hash of every parameter, statistic and random stream."""

import signal
import subprocess
import sys
import textwrap

import pytest
import torch

from apexrl.agent.multi_agent_runner import MultiAgentRunner
from apexrl.agent.offline_runner import OfflineRunner
from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.mappo import MAPPOConfig
from apexrl.algorithms.ppo import PPOConfig
from apexrl.models import GRUCritic, GRUDiscreteActor

FIELDS = {
    "num_steps": 16,
    "minibatch_size": 32,
    "num_epochs": 2,
    "normalize_observations": True,
    "normalize_values": True,
    "schedule": "adaptive",
}


def ppo(folder, make_env, name="CartPole-v1"):
    cfg = PPOConfig(**FIELDS)
    return OnPolicyRunner(make_env(name), cfg=cfg, log_dir=folder, log_interval=1, save_interval=3, show_progress=False)


def recurrent_ppo(folder, make_env):
    cfg = PPOConfig(**FIELDS, sequence_length=4)
    networks = {"actor_class": GRUDiscreteActor, "critic_class": GRUCritic}
    return OnPolicyRunner(
        make_env(), cfg=cfg, **networks, log_dir=folder, log_interval=1, save_interval=3, show_progress=False
    )


def mappo(folder, make_env):
    spread = pytest.importorskip("mpe2.simple_spread_v3")
    from apexrl.envs.pettingzoo.wrapper import PettingZooVecEnv

    env = PettingZooVecEnv([lambda: spread.parallel_env(N=2, max_cycles=10)] * 2)
    cfg = MAPPOConfig(**FIELDS)
    return MultiAgentRunner(env, cfg=cfg, log_dir=folder, log_interval=1, save_interval=3, show_progress=False)


def differences(one, other, where="state"):
    """Paths at which two states differ."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        return [d for key in one for d in differences(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, list | tuple):
        assert len(one) == len(other), where
        return [d for i, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{where}[{i}]")]
    same = torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
    return [] if same else [where]


@pytest.mark.parametrize("make", [ppo, recurrent_ppo, mappo])
def test_resuming_equals_going_on(make, tmp_path, make_env, fingerprint):
    whole = make(tmp_path / "whole", make_env)
    whole.learn(num_iterations=6)
    make(tmp_path / "parts", make_env).learn(num_iterations=3)
    torch.manual_seed(99)  # a fresh process has another stream
    resumed = make(tmp_path / "parts", make_env)
    assert resumed.resume()
    assert resumed.iteration == 3
    resumed.learn(num_iterations=3)
    assert fingerprint(resumed.agent.policy) == fingerprint(whole.agent.policy)
    # Gymnasium seeds the sampling streams of spaces from the operating system; nobody samples from them here.
    assert [d for d in differences(whole.state_dict(), resumed.state_dict()) if "_space.rngs" not in d] == []
    metrics = [(tmp_path / part / "metrics.jsonl").read_text() for part in ("whole", "parts")]
    assert metrics[0] == metrics[1]


def test_continuous_control_resumes_exactly_too(tmp_path, make_env, fingerprint):
    whole, first = ppo(tmp_path / "a", make_env, "Pendulum-v1"), ppo(tmp_path / "b", make_env, "Pendulum-v1")
    whole.learn(num_iterations=6)
    first.learn(num_iterations=3)
    resumed = ppo(tmp_path / "b", make_env, "Pendulum-v1")
    resumed.load_checkpoint("checkpoint_3.pt")
    resumed.learn(total_timesteps=6 * 16 * 4)
    assert fingerprint(resumed.agent.policy) == fingerprint(whole.agent.policy)


SCRIPT = """
import hashlib, os, signal, sys
import gymnasium as gym
from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.ppo import PPOConfig
from apexrl.envs.gymnasium.wrapper import GymVecEnv

folder, die_at = sys.argv[1], int(sys.argv[2])
env = GymVecEnv([lambda: gym.make("CartPole-v1")] * 4)
cfg = PPOConfig(num_steps=16, minibatch_size=32, num_epochs=2, schedule="linear", normalize_observations=True)
runner = OnPolicyRunner(env, cfg=cfg, save_dir=folder, save_interval=2, show_progress=False)
runner.resume()
if die_at:
    runner.add_callback("post_update", lambda r: r.iteration == die_at and os.kill(os.getpid(), signal.SIGKILL) or None)
runner.learn(total_timesteps=6 * 64)
digest = hashlib.sha256()
for name, values in sorted(runner.agent.policy.state_dict().items()):
    digest.update(values.numpy().tobytes())
print(runner.iteration, digest.hexdigest())
"""


def test_a_killed_process_goes_on_bit_by_bit(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run(folder, die_at):
        command = [sys.executable, str(script), str(tmp_path / folder), str(die_at)]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    whole = run("whole", 0)
    killed = run("parts", 3)  # in the middle of iteration 4: the newest checkpoint is of iteration 2
    resumed = run("parts", 0)
    assert killed.returncode == -signal.SIGKILL
    assert whole.stdout.startswith("6 "), whole.stderr
    assert resumed.stdout == whole.stdout, resumed.stderr


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


def test_offline_training_resumes_exactly(tmp_path, fingerprint):
    from gymnasium.spaces import Box, Discrete

    from apexrl.algorithms.bc import BCConfig
    from apexrl.storage.offline import OfflineDataset

    dataset = OfflineDataset(observations=torch.randn(50, 2), actions=torch.randint(0, 3, (50,)))

    def make(folder):
        cfg = BCConfig(minibatch_size=16, normalize_observations=True)
        return OfflineRunner(
            dataset,
            Box(-9, 9, (2,)),
            Discrete(3),
            cfg=cfg,
            save_dir=tmp_path / folder,
            save_interval=2,
            show_progress=False,
        )

    whole, part = make("whole"), make("part")
    whole.learn(num_iterations=4)
    part.learn(num_iterations=2)
    resumed = make("part")
    assert resumed.resume()
    resumed.learn(total_timesteps=200)
    assert (resumed.iteration, resumed.total_timesteps) == (4, 200)
    assert fingerprint(resumed.agent.policy) == fingerprint(whole.agent.policy)

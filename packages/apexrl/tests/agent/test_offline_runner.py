import json

import pytest
import torch

from apexrl.agent.offline_runner import OfflineRunner
from apexrl.algorithms.awr import AWR, AWRConfig
from apexrl.algorithms.bc import BC, BCConfig
from apexrl.runs.errors import DivergedError
from apexrl.storage.offline import OfflineDataset


@pytest.fixture
def recording(make_env):
    """Balancing by leaning against the pole's fall, as a demonstration."""
    env, rows = make_env(num_envs=1), []
    obs, _ = env.reset(seed=0)
    for _ in range(400):
        action = (obs[:, 2] + obs[:, 3] > 0).long()
        after, reward, done, _ = env.step(action)
        rows.append((obs[0], action[0], reward[0], done[0]))
        obs = after
    obs, actions, rewards, dones = (torch.stack(column) for column in zip(*rows, strict=True))
    return OfflineDataset.from_trajectory(obs, actions, rewards, dones, gamma=0.99)


def test_cloning_a_demonstration_balances_the_pole(recording, make_env, tmp_path):
    train, held_out = recording.split(0.2, seed=0)
    cfg = BCConfig(learning_rate=1e-2, minibatch_size=64)
    played = {"eval_env": make_env(), "eval_interval": 20, "eval_episodes": 4}
    runner = OfflineRunner(train, cfg=cfg, validation=held_out, log_dir=tmp_path, show_progress=False, **played)
    result = runner.learn(num_iterations=20)
    assert (result.iterations, result.total_timesteps) == (20, 20 * 320)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["validation/policy_loss"] < lines[0]["validation/policy_loss"]
    assert lines[-1]["eval/mean_reward"] > 150


def test_callbacks_stop_epochs_and_rollout_events_are_refused(recording, make_env):
    runner = OfflineRunner(recording, algorithm="awr", eval_env=make_env(), show_progress=False)
    assert isinstance(runner.agent, AWR)
    runner.add_callback("post_iteration", lambda r, stats: r.iteration < 2)
    assert runner.learn(num_iterations=10).iterations == 2
    with pytest.raises(ValueError, match="no rollouts"):
        runner.add_callback("post_rollout", print)


def test_the_learning_rate_that_is_logged_is_the_one_that_is_used(recording, tmp_path):
    stats = []
    for rate, reset in ((1e-2, False), (1e-3, False), (1e-3, True)):
        cfg = BCConfig(learning_rate=rate)
        runner = OfflineRunner(recording, cfg=cfg, eval_env="CartPole-v1", save_dir=tmp_path, show_progress=False)
        if stats:
            runner.load_checkpoint("first.pt", reset_learning_rate=reset)
        runner.add_callback("post_update", lambda runner, metrics: stats.append(metrics["train/learning_rate"]))
        runner.learn(num_iterations=1)
        if len(stats) == 1:
            runner.save_checkpoint("first.pt")
    assert stats == [1e-2, 1e-2, 1e-3]


def test_refusals(recording, make_env):
    with pytest.raises(ValueError, match="need spaces"):
        OfflineRunner(recording)
    with pytest.raises(ValueError, match="knows bc, awr"):
        OfflineRunner(recording, algorithm="ppo", eval_env=make_env())
    env = make_env()
    agent = AWR(env.observation_space, env.action_space, AWRConfig())
    with pytest.raises(ValueError, match=r"differs from agent\.cfg"):
        OfflineRunner(recording, agent=agent, cfg=AWRConfig(temperature=9.0))
    from apexrl.agent.evaluation import EvaluationError

    with pytest.raises(EvaluationError, match="pass eval_env="):
        OfflineRunner(recording, agent=agent).eval(1)


def test_numbers_that_are_none_in_a_recording_are_named_and_nothing_is_saved_after_them(make_env, tmp_path):
    obs = torch.randn(40, 4)
    obs[17, 2] = float("inf")
    dataset = OfflineDataset(observations=obs, actions=torch.randint(0, 2, (40,)))
    runner = OfflineRunner(dataset, eval_env=make_env(), save_dir=tmp_path, save_interval=1, show_progress=False)
    with pytest.raises(DivergedError, match="observations of decision 17 of the dataset is NaN or infinite"):
        runner.learn(num_iterations=2)
    assert list(tmp_path.glob("*.pt")) == []


def test_an_algorithm_of_ones_own_is_trained_and_acts(recording, make_env):
    class Cautious(BC):
        name = "cautious"

    runner = OfflineRunner(recording, eval_env=make_env(), algorithm=Cautious, show_progress=False)
    runner.learn(num_iterations=1)
    assert type(runner.agent) is Cautious
    actions, memory = runner.predict(recording.observations[:5].numpy())
    assert (actions.shape, memory) == ((5,), {})
    with pytest.raises(ValueError, match="unknown algorithm 'cql': OfflineRunner knows bc, awr"):
        OfflineRunner(recording, eval_env=make_env(), algorithm="cql")

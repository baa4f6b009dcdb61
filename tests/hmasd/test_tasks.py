import pytest
import torch

from apexrl.runs.errors import ConfigurationError
from apexrl.runs.metrics import MetricLogger
from hmasd.envs.alice_and_bob import AliceAndBobEnv
from hmasd.tasks import make_env
from hmasd.trainer import Trainer, train


def test_a_pettingzoo_task_trains_and_resumes(small, tmp_path):
    config = small(
        task="pettingzoo:mpe2.simple_spread_v3", num_envs=3, batch_size=30, total_steps=60, checkpoint_interval=30
    )
    trainer = train(config, models=tmp_path)
    assert trainer.last_evaluation.lengths.tolist() == [9] * 6
    assert trainer.last_evaluation.returns.max() < 0.0
    resumed = Trainer.resume(tmp_path / "hmasd_sync_enhanced_30.pth")
    with MetricLogger([]) as metrics:
        resumed.run(metrics)
    assert resumed.last_evaluation.returns.tolist() == trainer.last_evaluation.returns.tolist()


def test_environments_that_cannot_be_captured_go_on_with_fresh_episodes(small, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(AliceAndBobEnv, "supports_state", False)
    train(small(), models=tmp_path)
    resumed = Trainer.resume(tmp_path / "hmasd_sync_enhanced_184.pth")
    assert "fresh episodes" in caplog.text
    assert resumed.env_steps == 184
    assert resumed.collector._starts.all()


@pytest.mark.parametrize("algorithm", ["hmasd", "mappo", "mat"])
@pytest.mark.parametrize("task", ["uav_coverage", "uav_relay"])
def test_uav_tasks_train_with_every_algorithm(small, algorithm, task):
    trainer = train(small(task=task, algorithm=algorithm, num_envs=2, batch_size=24, total_steps=24, n_agents=3))
    assert trainer.learner.rollout.n_agents == 3
    assert trainer.last_evaluation is not None


def test_unknown_tasks_and_agent_numbers_are_refused(small):
    for changes, message in (
        ({"task": "alice"}, "there is no task 'alice'"),
        ({"n_agents": 3}, "alice_and_bob has 2 agents"),
        ({"task": "pettingzoo:no.such.module"}, "cannot be imported"),
        ({"task": "pettingzoo:json"}, "has no parallel_env"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            make_env(small(**changes), 2, 0)


def test_networks_depend_on_the_seed_alone(small):
    torch.manual_seed(123)
    first = Trainer(small(seed=1)).learner.state_dict()["low"]["networks"]
    drawn = torch.rand(1)
    torch.manual_seed(123)
    assert torch.equal(drawn, torch.rand(1)), "torch's global stream is left alone"
    second = Trainer(small(seed=1)).learner.state_dict()["low"]["networks"]
    other = Trainer(small(seed=2)).learner.state_dict()["low"]["networks"]
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)

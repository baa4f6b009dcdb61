"""The learner that the run loop trains: devices, and environments that change in number."""

import logging

import pytest
import torch

from apexrl.algorithms.devices import resolve_device
from apexrl.runs.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from apexrl.runs.errors import DivergedError
from hmasd.learning.optimization import restore_generator
from hmasd.training.learner import SyncLearner
from hmasd.training.trainer import FINAL_NAME, SCHEMA, Trainer, train


def elsewhere(method):
    """Call a method while tensors that name no device are made on one whose tensors mix with no other."""

    def call(*args, **kwargs):
        with torch.device("meta"):
            return method(*args, **kwargs)

    return call


@pytest.mark.parametrize(
    "changes",
    [
        {"warmup_steps": 92},
        {"warmup_steps": 92, "critic_sees": "all_skills"},
        {"algorithm": "mappo"},
        {"algorithm": "mat"},
    ],
)
def test_an_agent_makes_every_tensor_on_its_device(small, changes, monkeypatch):
    config = small(num_minibatches=2, **changes)
    expected, learner = SyncLearner(config), SyncLearner(config)
    for name in ("act", "observe", "update"):
        monkeypatch.setattr(learner.agent, name, elsewhere(getattr(learner.agent, name)))
    metrics = []
    for trained in (expected, learner):
        for _ in range(2):
            trained.collect()
            metrics.append(trained.update())
    assert {k: v for k, v in metrics[3].items() if "time/" not in k} == {
        k: v for k, v in metrics[1].items() if "time/" not in k
    }
    policy = learner.agent.policy(4, torch.Generator().manual_seed(0), deterministic=False)
    observations, extras = learner.collector.env.reset(seed=0)
    starts = torch.ones(4, dtype=torch.bool)
    assert elsewhere(policy.act)(observations, extras["state"], starts).device.type == "cpu"


def test_the_check_of_devices_can_fail():
    here = torch.zeros(3)
    with torch.device("meta"):
        made = torch.zeros(3)
    with pytest.raises(RuntimeError):
        _ = here.copy_(made) + made


def test_the_device_is_found_or_the_one_that_was_asked_for(small, caplog):
    assert SyncLearner(small()).agent.device == resolve_device("auto")
    assert SyncLearner(small(device="cpu")).agent.device == torch.device("cpu")
    if not torch.cuda.is_available():
        with caplog.at_level(logging.WARNING):
            assert SyncLearner(small(device="cuda")).agent.device == torch.device("cpu")
        assert "falling back to the CPU" in caplog.text


def test_a_random_stream_of_another_device_restarts(caplog):
    generator = torch.Generator().manual_seed(3)
    kept, state = generator.get_state(), torch.zeros(16, dtype=torch.uint8)  # as many bytes as a GPU's stream has
    restore_generator(generator, state)
    assert "it restarts" in caplog.text
    assert torch.equal(generator.get_state(), kept)
    torch.rand(5, generator=generator)
    restore_generator(generator, kept)
    assert torch.equal(generator.get_state(), kept)


def test_a_run_resumes_with_another_number_of_environments(small, tmp_path, caplog):
    train(small(), models=tmp_path)
    config = small(num_envs=2, batch_size=92, total_steps=552)
    trainer = Trainer.from_checkpoint(tmp_path / FINAL_NAME, config)
    assert "num_envs was 4 and is 2: the run resumes with new episodes" in caplog.text
    trainer.run()
    assert (trainer.env_steps, trainer.agent.version) == (552, 6)
    assert trainer.agent.low.actor_memory.shape[0] == 2


def test_a_checkpoint_without_skills_in_force_draws_new_ones(small, tmp_path):
    """Checkpoints of release 0.2 have neither skills nor a continuation critic."""
    train(small(), models=tmp_path)
    checkpoint = load_checkpoint(tmp_path / FINAL_NAME, SCHEMA)
    agent = checkpoint.state["learner"]
    for name in ("skills", "skill_ages", "carried_rewards"):
        del agent[name]
    for name in ("continuation_critic", "continuation_critic_optimizer"):
        del agent["high"][name]
    save_checkpoint(tmp_path / "old.pth", checkpoint)
    trainer = Trainer.from_checkpoint(tmp_path / "old.pth", small(total_steps=552))
    assert trainer.agent.clock.due().all()
    trainer.run()
    assert trainer.agent.version == 6


@pytest.mark.parametrize("algorithm", ["hmasd", "mappo", "mat"])
@pytest.mark.parametrize("what", ["rewards", "observations"])
def test_nan_stops_training_and_nothing_is_saved_after_it(small, tmp_path, what, algorithm):
    config = small(algorithm=algorithm)
    trainer = Trainer(config, tmp_path)
    env, steps = trainer.learner.collector.env, [0]
    original = env.step

    def step(actions):
        observations, rewards, dones, extras = original(actions)
        steps[0] += 1
        if steps[0] == config.rollout_steps + 3:  # in the second batch
            {"rewards": rewards, "observations": observations}[what][1] = float("nan")
        return observations, rewards, dones, extras

    env.step = step
    failing = 2 if what == "rewards" else 3  # an observation is the input of the step after it
    with pytest.raises(DivergedError, match=f"{what} of environment 1 at step {failing} of the rollout"):
        trainer.run()
    assert trainer.iteration == 1
    with pytest.raises(DivergedError, match="nothing is saved"):
        trainer.save_checkpoint("spoilt.pth")

"""What every learner promises: a killed run resumes bit by bit, and NaN stops with its place and is never saved."""

import itertools
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from packages.apexrl.tests.agent.test_resume import LEARNERS as ENGINE
from packages.litaagent.tests.hrl_xf.online.distillation.test_fitting import parts
from packages.litaagent.tests.hrl_xf.online.test_trainer import METHODS, options
from packages.litaagent.tests.hrl_xf.training.test_learner import PHASES, make_spec

from apexrl.agent.resume_check import check_resume
from apexrl.runs.checkpoints.checkpoint import load_checkpoint
from apexrl.runs.errors import DivergedError
from hmasd.training.trainer import Trainer as SkillTrainer
from litaagent_std.hrl_xf.online import trainer as online_trainer
from litaagent_std.hrl_xf.online.command import online_runner
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.hrl_xf.online.distillation.fitting import StudentLearner, student_runner
from litaagent_std.hrl_xf.training.learner import phase_runner

NAN = float("nan")
SKILLS = {"hmasd": {}, "hmasd, mappo": {"algorithm": "mappo"}, "hmasd, mat": {"algorithm": "mat"}}


@pytest.fixture
def given(make_env, small, made_data, random_networks, monkeypatch):
    return SimpleNamespace(make_env=make_env, small=small, data=made_data, networks=random_networks, patch=monkeypatch)


def spoil_steps(env, at):
    """Make a reward of a step NaN."""
    original, count = env.step, itertools.count(1)

    def step(actions):
        obs, rewards, dones, extras = original(actions)
        if next(count) == at:
            rewards = rewards.clone()  # it may be an expanded view
            rewards[-1] = NAN
        return obs, rewards, dones, extras

    env.step = step


def engine(name, folder, given, spoiled):
    runner = ENGINE[name](folder, given.make_env)
    if spoiled and name in ("bc", "awr"):
        runner.learner.dataset.observations[17] = NAN
    elif spoiled:
        spoil_steps(runner.learner.groups.groups[0].env, at=3 * 16 + 5)  # in the fourth rollout of 16 steps
    return runner


def phase(name, folder, given, spoiled):
    spec = make_spec(name, folder, given.data)
    calls = itertools.count(1)

    def loader(batches, device):
        is_bad = next(calls) >= 7  # each epoch reads rows to learn from, then rows to validate on
        for tensors in spec.loader(batches, device):
            column = next(key for key, values in tensors.items() if values.is_floating_point())
            yield tensors | {column: torch.full_like(tensors[column], NAN)} if is_bad else tensors

    return phase_runner(replace(spec, loader=loader) if spoiled else spec)


def distillation(folder, given, spoiled):
    teacher = given.networks(("l4",)).nets["l4"]
    train, validation, _ = parts(teacher, 100)
    learner = StudentLearner(DistillConfig(teacher="t", dim=4, patience=100), teacher, train, validation)
    if spoiled:
        train.inputs[17] = NAN  # samples that hold NaN from the start are refused earlier
    return student_runner(learner, folder)


def online(name, folder, given, spoiled):
    cfg = options(folder, checkpoint_every=2, **METHODS[name])
    if spoiled:
        play, calls = online_trainer.play_jobs, itertools.count(1)

        def play_jobs(*args, **kwargs):
            rollouts = play(*args, **kwargs)
            if next(calls) == 3:
                rollouts[0].seats[0].days.terms["cash"][1] = NAN
            return rollouts

        given.patch.setattr(online_trainer, "play_jobs", play_jobs)
    return online_runner(online_trainer.Trainer(cfg, cfg.make_executor(), folder))


def skills(name, folder, given, spoiled):
    config = given.small(num_minibatches=2, eval_interval=276, total_steps=368, **SKILLS[name])
    trainer = SkillTrainer(config, folder)
    if spoiled:
        spoil_steps(trainer.learner.collector.env, at=config.rollout_steps + 3)
    return trainer


ROLLOUT = r"rewards of environment \d at step \d+ of the rollout"
RECORDING = "observations of decision 17 of the dataset"
WORLD = r"reward term cash of seat \d on day \d of world \d+"
CASES = {
    **{name: (partial(engine, name), RECORDING if name in ("bc", "awr") else ROLLOUT, 3) for name in ENGINE},
    **{f"phase {name}": (partial(phase, name), r"\w+ of row \d+ of the dataset", 3) for name in PHASES},
    "distillation": (distillation, "inputs of sample 17", 30),
    **{f"online {name}": (partial(online, name), WORLD, 2) for name in METHODS},
    **{name: (partial(skills, name), ROLLOUT, 2) for name in SKILLS},
}
"""By name: how to build its runner, how NaN is reported, and N."""


@pytest.mark.parametrize("name", CASES)
def test_a_killed_run_resumes_bit_by_bit(name, given, tmp_path):
    make, _, iterations = CASES[name]
    # Gymnasium seeds the sampling streams of spaces from the operating system; nobody samples from them here.
    ignored = ("_space.rngs", "state.seconds")
    check_resume(lambda folder: make(folder, given, spoiled=False), tmp_path, iterations, ignored)
    assert not list(tmp_path.rglob("earlier")), "it is the same run"


@pytest.mark.parametrize("name", CASES)
def test_nan_stops_with_its_place_and_the_last_good_checkpoint_stays(name, given, tmp_path):
    make, place, iterations = CASES[name]
    runner = make(tmp_path, given, spoiled=True)
    with pytest.raises(DivergedError, match=place):
        runner.learn(num_iterations=2 * iterations)
    saved = sorted(path for path in tmp_path.rglob("*.pt*") if path.suffix in (".pt", ".pth"))
    with pytest.raises(DivergedError, match="nothing is saved"):
        runner.save_checkpoint("spoilt.pt")
    # Phases write their weights alone as well, beside the checkpoint.
    sound = [load_checkpoint(path) for path in saved if not name.startswith("phase") or ".ckpt" in path.name]
    for checkpoint in sound:
        assert checkpoint.state["iteration"] <= runner.iteration
        assert all(bool(torch.isfinite(values).all()) for values in weights_of(checkpoint.state))
    given.patch.undo()
    again = make(tmp_path, given, spoiled=False)
    assert again.resume() == bool(sound)
    if sound:
        assert 0 < again.iteration <= runner.iteration
        again.learn(num_iterations=1)


def weights_of(state, name=""):
    """All weights and biases of networks in a state."""
    if isinstance(state, dict):
        for key, value in state.items():
            yield from weights_of(value, str(key))
    elif isinstance(state, torch.Tensor) and name.endswith(("weight", "bias")):
        yield state

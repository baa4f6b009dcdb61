import json
import logging
import random
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from apexrl.agent.resume_check import check_resume
from apexrl.configuration import from_mapping, to_mapping
from apexrl.runs.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from apexrl.runs.digest import digest_file
from apexrl.runs.errors import ConfigMismatchError, ConfigurationError, SchemaMismatchError
from apexrl.runs.metrics.jsonl import JsonlSink, read_jsonl
from hmasd.config import HMASDConfig
from hmasd.training.collection import BatchReport
from hmasd.training.evaluation import evaluate
from hmasd.training.learner import RestartState, SyncLearner
from hmasd.training.trainer import FINAL_NAME, SCHEMA, Trainer, stored_config, train

PROMISED = {
    "Sync/PolicyVersion",
    "Losses/Coordinator/Total",
    "Losses/Discoverer/Total",
    "Losses/Discriminator/Team",
    "Losses/Discriminator/Individual",
    "Rewards/HighLevel/K_Step_Accumulated_Mean",
    "Rewards/LowLevel/Extrinsic_Mean",
    "Rewards/LowLevel/TeamDiscriminator_Mean",
    "Rewards/LowLevel/IndividualDiscriminator_Mean",
    "Buffer/SamplesCollected",
    "Skills/Usage/Team_0",
    "Skills/TeamDiscriminatorAccuracy",
    "Skills/IndividualDiscriminatorAccuracy",
    "Losses/Coordinator/Continuation",
    "Sync/ReplayLogProbError",
    "Sync/ReplayLogProbError_Coordinator",
    "Sync/ReplayLogProbError_Discoverer",
    "Eval/ReturnMean",
    "Eval/SuccessRate",
}


def flat(state, prefix=""):
    """All tensors of a nested state, by path."""
    if isinstance(state, dict):
        return {k: v for name, item in state.items() for k, v in flat(item, f"{prefix}/{name}").items()}
    if isinstance(state, list | tuple):
        return {k: v for i, item in enumerate(state) for k, v in flat(item, f"{prefix}/{i}").items()}
    return {prefix: state}


def assert_same(ours, theirs):
    ours, theirs = flat(ours), flat(theirs)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        same = torch.equal(value, theirs[name]) if isinstance(value, torch.Tensor) else value == theirs[name]
        assert same, name


def test_every_promised_metric_is_written(small, tmp_path):
    train(small(), sinks=(JsonlSink(tmp_path / "metrics.jsonl"),))
    rows = read_jsonl(tmp_path / "metrics.jsonl")
    written = {name for row in rows for name in row}
    assert written >= PROMISED
    versions = [row["Sync/PolicyVersion"] for row in rows if "Sync/PolicyVersion" in row]
    assert versions == [1.0, 2.0, 3.0, 4.0]
    assert [row["Buffer/SamplesCollected"] for row in rows] == [4.0, 92.0] * 4, "it restarts with every batch"
    assert [row["step"] for row in rows] == [4, 92, 96, 184, 188, 276, 280, 368]
    timings = (tmp_path / "timings.jsonl").read_text()
    assert "time/steps_per_second" in timings
    assert "time/memory_mb" in timings


def test_log_lines(small, caplog):
    config = small(
        num_envs=32,
        batch_size=1024,
        total_steps=2048,
        eval_interval=4096,
        max_episode_steps=30,
        checkpoint_interval=4096,
    )
    with caplog.at_level(logging.INFO, logger="hmasd.training.learner"):
        train(config)
    assert [record.getMessage() for record in caplog.records] == [
        "同步更新开始 - 收集了 1024 个样本，策略版本: 0",
        "同步更新完成 - 策略版本更新到: 1, 已重置样本计数",
        "训练进度: 1024/2048 (50.0%), 更新次数: 1, Episodes: 32",
        "同步更新开始 - 收集了 1024 个样本，策略版本: 1",
        "同步更新完成 - 策略版本更新到: 2, 已重置样本计数",
        "训练进度: 2048/2048 (100.0%), 更新次数: 2, Episodes: 64",
        "评估: 步数 2048, 平均回报 0.00, 成功率 0.00",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"task": "uav_coverage", "n_agents": 3},
        {"restart_steps": 92},
        {"restart_steps": 184, "warmup_steps": 150},
        {"task": "pettingzoo:drawing"},
        {"discriminator_lipschitz": 2.0},
    ],
    ids=lambda x: str(x),
)
def test_a_killed_run_of_other_tasks_or_settings_resumes_bit_by_bit(small, tmp_path, drawing, changes):
    config = small(num_minibatches=2, eval_interval=276, total_steps=368, **changes)
    check_resume(lambda folder: Trainer(config, folder), tmp_path, iterations=2)
    assert read_jsonl(tmp_path / "parts" / "logs" / "metrics.jsonl")[-1]["step"] == 368
    assert not list(tmp_path.rglob("earlier")), "it is the same run"


def test_a_run_that_stopped_and_resumed_equals_an_uninterrupted_one(small, tmp_path):
    config = small(eval_interval=276)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    uninterrupted = Trainer(config, whole)
    uninterrupted.run()
    first = Trainer(config, parts)
    _stop_after(first, 2)
    assert first.run().stopped_by == "callback"
    assert first.env_steps == 184
    np.random.seed(99)  # another process would be elsewhere in the global streams
    second = Trainer.from_checkpoint(parts / "models" / "hmasd_sync_enhanced_184.pth", config, parts)
    second.run()
    assert_same(uninterrupted.state_dict(), second.state_dict())
    assert (whole / "logs" / "metrics.jsonl").read_bytes() == (parts / "logs" / "metrics.jsonl").read_bytes()
    assert not list(parts.rglob("earlier")), "it is the same run"


class DrawingEnv:
    """A PettingZoo task that draws from the global streams; its second agent leaves after two steps of an episode."""

    possible_agents = ("a", "b")

    def __init__(self, max_cycles):
        self.max_cycles, self.steps, self.agents = max_cycles, 0, []

    def observation_space(self, agent):
        return Box(0.0, 1.0, (3,), np.float32)

    def action_space(self, agent):
        return Discrete(4)

    def _observe(self):
        return {agent: np.random.random(3).astype(np.float32) for agent in self.agents}

    def reset(self, seed=None, options=None):
        self.steps, self.agents = 0, list(self.possible_agents)
        return self._observe(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.steps += 1
        acting, observations = self.agents, self._observe()
        rewards = {agent: random.random() + int(actions[agent] == 1) for agent in acting}
        terminated = {agent: agent == "b" and self.steps == 2 for agent in acting}
        truncated = {agent: self.steps == self.max_cycles for agent in acting}
        self.agents = [agent for agent in acting if not (terminated[agent] or truncated[agent])]
        return observations, rewards, terminated, truncated, {agent: {} for agent in acting}

    def close(self):
        pass


class CountingEnv(DrawingEnv):
    """The same task with a state of its own: the steps of the episode."""

    state_space = Box(0.0, np.inf, (1,), np.float32)

    def state(self):
        return np.array([self.steps], np.float32)


class PointingEnv(DrawingEnv):
    """The same observations, and as many numbers describe an action, which is continuous."""

    def action_space(self, agent):
        return Box(-1.0, 1.0, (4,), np.float32)


@pytest.fixture
def drawing(monkeypatch):
    """The task ``pettingzoo:drawing``; its state is that of all observations."""
    return register(monkeypatch, "drawing", DrawingEnv)


@pytest.fixture
def counting(monkeypatch):
    """The task ``pettingzoo:counting``, with the observations of ``pettingzoo:drawing`` and another state."""
    return register(monkeypatch, "counting", CountingEnv)


def register(monkeypatch, name, env_class):
    module = ModuleType(name)
    module.parallel_env = env_class
    monkeypatch.setitem(sys.modules, name, module)
    return f"pettingzoo:{name}"


def global_draws():
    return random.random(), np.random.random(), torch.rand(1).item()


def seed_globally(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def test_a_run_draws_from_its_seed_and_leaves_the_callers_streams_alone(small, drawing):
    states = []
    # Evaluations draw too, but training does not notice how many there are.
    for callers, seed, interval in ((1, 0, 184), (2, 0, 92), (1, 5, 184)):
        seed_globally(callers)
        expected = global_draws()
        seed_globally(callers)
        trainer = train(small(task=drawing, seed=seed, eval_interval=interval))
        assert global_draws() == expected
        states.append(trainer.state_dict())
    assert_same(states[0], states[1])
    assert not torch.equal(states[0]["collector"]["observations"], states[2]["collector"]["observations"])


def test_agents_that_left_give_no_samples(small, drawing, tmp_path):
    train(small(task=drawing), sinks=(JsonlSink(tmp_path / "metrics.jsonl"),))
    rows = [row for row in read_jsonl(tmp_path / "metrics.jsonl") if "Buffer/AgentSamplesCollected" in row]
    # Episodes of 9 steps, of which the second agent plays two: 23 + 6 samples in the first 23 steps of 4 environments.
    assert rows[0]["Buffer/SamplesCollected"] == 92.0
    assert rows[0]["Buffer/AgentSamplesCollected"] == 4 * (23 + 6)


def first_weight(trainer):
    return next(trainer.agent.high.coordinator.parameters()).clone()


def test_a_run_without_reward_restarts_with_new_networks(small):
    config = small(restart_steps=150, total_steps=92 * 5, ppo_epochs=1, lr=1e-9)
    trainer, seen = Trainer(config), []
    for _ in range(5):
        trainer.learn(num_iterations=1)
        state = trainer.learner.restart_state
        seen.append((state.restarts, state.last_reward_step, trainer.agent.version))
    assert seen == [(0, 0, 1), (1, 184, 2), (1, 184, 3), (2, 368, 4), (2, 368, 5)]
    fresh = Trainer(replace(config, seed=config.seed + 2 * 1_000_003))
    assert torch.allclose(first_weight(trainer), first_weight(fresh), atol=1e-6)
    assert not torch.allclose(first_weight(trainer), first_weight(Trainer(config)), atol=1e-6)


def test_a_restart_draws_from_a_valid_seed(small):
    trainer = train(small(restart_steps=92, seed=2**32 - 1))
    assert trainer.learner.restart_state.restarts == 3


def test_a_restart_keeps_frozen_skills(small, tmp_path):
    train(small(), models=tmp_path / "skills")
    trainer = Trainer(small(freeze_skills=True, restart_steps=92, seed=5))
    trainer.load_skills(tmp_path / "skills" / FINAL_NAME)
    before = trainer.agent
    trainer.run()
    assert trainer.learner.restart_state.restarts > 0
    frozen = [
        (agent.low.networks.state_dict(), agent.discriminators.networks.state_dict())
        for agent in (before, trainer.agent)
    ]
    for first, second in zip(*frozen, strict=True):
        assert all(torch.equal(first[name], second[name]) for name in first)
    coordinators = [agent.high.state_dict()["coordinator"] for agent in (before, trainer.agent)]
    assert any(not torch.equal(coordinators[0][name], coordinators[1][name]) for name in coordinators[0])


def test_a_reward_grants_as_many_steps_again(small):
    learner = SyncLearner(small(restart_steps=150, total_steps=1000))
    seen = []
    for learner.env_steps, reward in ((92, 0.0), (184, 1.0), (276, 0.0), (368, 0.0)):
        learner._report = BatchReport(returns=[0.0, reward])
        learner.adjust(0.5)
        seen.append((learner.restart_state.restarts, learner.restart_state.last_reward_step))
    assert seen == [(0, 0), (0, 184), (0, 184), (1, 368)]


def test_no_restart_at_the_end_of_a_run(small, tmp_path):
    trainer = train(small(restart_steps=184), models=tmp_path)  # due after 184 steps, and after 368, which is the end
    assert trainer.learner.restart_state.restarts == 1
    assert trainer.agent.state_dict()["low"]["actor_optimizer"]["state"], "the networks have learned"
    untrained = Trainer(small(seed=2 * 1_000_003))
    assert not torch.equal(first_weight(trainer), first_weight(untrained))
    again = Trainer.from_checkpoint(tmp_path / FINAL_NAME)
    assert again.learner.restart_state == trainer.learner.restart_state


def test_raising_total_steps_where_a_restart_was_due_continues_the_run(small, tmp_path):
    whole = Trainer(small(restart_steps=184, total_steps=92 * 6), tmp_path / "whole")
    whole.run()
    Trainer(small(restart_steps=184, total_steps=92 * 4), tmp_path / "parts").run()
    longer = Trainer(small(restart_steps=184, total_steps=92 * 6), tmp_path / "parts")
    assert longer.resume()
    longer.run()
    assert whole.learner.restart_state.start_step == 368, "the restart was due where the shorter run ended"
    assert_same(whole.state_dict(), longer.state_dict())


def test_every_start_has_its_whole_warm_up(small, tmp_path):
    config = small(restart_steps=276, warmup_steps=150, total_steps=92 * 6)
    trainer = train(config, sinks=(JsonlSink(tmp_path / "metrics.jsonl"),))
    rows = [row for row in read_jsonl(tmp_path / "metrics.jsonl") if "Sync/PolicyVersion" in row]
    assert ["Losses/Coordinator/Total" in row for row in rows] == [False, False, True, False, False, True]
    assert trainer.learner.restart_state.start_step == 276


def test_checkpoints_without_the_step_of_the_present_start_load(small):
    state = Trainer(small()).state_dict()
    del state["search"]["started"]
    trainer = Trainer(small())
    trainer.load_state_dict(state)
    assert trainer.learner.restart_state == RestartState()


def _stop_after(trainer, updates):
    trainer.add_callback("post_iteration", lambda runner: runner.iteration < updates)


def test_checkpoints_are_named_by_the_marks_they_pass(small, tmp_path):
    train(small(checkpoint_interval=100), models=tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.pth")) == [
        "hmasd_sync_enhanced_100.pth",
        "hmasd_sync_enhanced_200.pth",
        "hmasd_sync_enhanced_300.pth",
        FINAL_NAME,
    ]
    assert Trainer.from_checkpoint(tmp_path / "hmasd_sync_enhanced_100.pth").env_steps == 184


def test_evaluation_is_repeatable_and_leaves_training_alone(small, tmp_path):
    config = small(task="uav_coverage", n_agents=3)  # where returns depend on networks and seeds
    trainer = train(config, models=tmp_path)
    before = flat(trainer.state_dict())
    again = evaluate(trainer.agent, config, trainer.env_steps)
    assert again.returns.tolist() == trainer.last_evaluation.returns.tolist()
    assert len(set(again.returns.tolist())) == config.eval_episodes
    assert_same(before, flat(trainer.state_dict()))
    other = Trainer.from_checkpoint(tmp_path / FINAL_NAME)
    result = evaluate(other.agent, other.config, other.env_steps)
    assert result.returns.tolist() == again.returns.tolist()
    for changed in (
        evaluate(Trainer(config).agent, config, trainer.env_steps),  # untrained
        evaluate(trainer.agent, replace(config, seed=1), trainer.env_steps),
        evaluate(trainer.agent, config, trainer.env_steps + 1),
    ):
        assert not set(changed.returns.tolist()) & set(again.returns.tolist())
    assert len(again.returns) == config.eval_episodes
    assert set(again.lengths.tolist()) == {9}


def test_paths_may_be_words(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Trainer(small(), "run").run()
    final = Trainer.from_checkpoint(f"run/models/{FINAL_NAME}", folder="run")
    assert (final.env_steps, final.folder) == (small().total_steps, Path("run"))
    skills = Trainer(small(freeze_skills=True), "reused")
    skills.load_skills(f"run/models/{FINAL_NAME}")
    taken, trained = skills.agent.low.networks.state_dict(), final.agent.low.networks.state_dict()
    assert all(torch.equal(taken[name], trained[name]) for name in trained)


def test_a_run_resumes_only_with_its_own_configuration(small, tmp_path):
    config = small()
    train(config, models=tmp_path)
    final = tmp_path / FINAL_NAME
    longer = Trainer.from_checkpoint(final, small(total_steps=10_000))
    assert longer.config.total_steps == 10_000
    with pytest.raises(ConfigMismatchError, match=r"gamma: 0.99 → 0.5"):
        Trainer.from_checkpoint(final, small(gamma=0.5))
    with pytest.raises(ConfigMismatchError, match=r"gamma: 0.99 → 0.5"):
        Trainer(small(gamma=0.5), models=tmp_path).resume()


@pytest.mark.parametrize("left", ["nothing", "a damaged file", "an earlier final"])
def test_a_finished_run_gets_its_final_checkpoint(small, tmp_path, caplog, left):
    """Also after a kill between the last checkpoint and the final one; it holds the run's own random streams."""
    config = small(checkpoint_interval=1)
    if left == "an earlier final":
        train(small(checkpoint_interval=1, total_steps=184), models=tmp_path)
        earlier = (tmp_path / FINAL_NAME).read_bytes()
        trainer = Trainer(config, models=tmp_path)
        assert trainer.resume()
        trainer.run()
    else:
        train(config, models=tmp_path)
    final = tmp_path / FINAL_NAME
    expected = load_checkpoint(final)
    if left == "nothing":
        final.unlink()
    else:
        final.write_bytes(earlier if left == "an earlier final" else final.read_bytes()[:-100])
    again = Trainer(config, models=tmp_path)
    assert again.resume()
    assert caplog.text.count(f"skipping the final checkpoint {FINAL_NAME}") == (left == "a damaged file")
    assert again.env_steps >= config.total_steps
    assert not again.is_complete
    again.run()
    assert again.is_complete
    assert_same(flat(load_checkpoint(final).state), flat(expected.state))
    assert_same(flat(load_checkpoint(final).rng), flat(expected.rng))


def test_a_checkpoint_of_ones_own_holds_the_runs_random_streams(small, tmp_path):
    trainer = train(small(), models=tmp_path)
    np.random.rand(3)
    own = load_checkpoint(trainer.save_checkpoint("mine.pth"))
    assert_same(flat(own.rng), flat(load_checkpoint(tmp_path / FINAL_NAME).rng))


def test_a_run_that_goes_back_sets_the_later_final_checkpoint_aside(small, tmp_path):
    train(small(), models=tmp_path)
    trainer = Trainer(small(), models=tmp_path)
    trainer.load_checkpoint(tmp_path / "hmasd_sync_enhanced_184.pth")
    trainer.learn(num_iterations=1)
    assert load_checkpoint(tmp_path / f"{FINAL_NAME}.set-aside").state["env_steps"] == 368
    again = Trainer(small(), models=tmp_path)
    assert again.resume()
    assert again.env_steps == 276, "the run that was gone back to, not the one that was left"


def test_a_run_resumes_with_another_batch_size(small, tmp_path):
    train(small(), models=tmp_path)
    trainer = Trainer(small(batch_size=4 * 10, total_steps=368 + 80), models=tmp_path, sinks=())
    assert trainer.resume()
    assert (trainer.env_steps, trainer.iteration) == (368, 4)
    before = first_weight(trainer)
    trainer.run()
    assert (trainer.env_steps, trainer.agent.version) == (448, 6)
    assert not torch.equal(first_weight(Trainer.from_checkpoint(tmp_path / FINAL_NAME)), before)


def test_all_checkpoints_are_kept_by_default(small, tmp_path):
    train(small(checkpoint_interval=40, total_steps=92 * 8), models=tmp_path / "all")
    assert len(list((tmp_path / "all").glob("hmasd_sync_enhanced_[0-9]*.pth"))) == 8
    train(small(checkpoint_interval=40, total_steps=92 * 8, keep_checkpoints=2), models=tmp_path / "two")
    assert len(list((tmp_path / "two").glob("hmasd_sync_enhanced_[0-9]*.pth"))) == 2


def test_a_checkpoint_of_other_sizes_is_refused(small, tmp_path):
    train(small(hidden_size=8), models=tmp_path)
    path = tmp_path / FINAL_NAME
    checkpoint = load_checkpoint(path, SCHEMA)
    save_checkpoint(path, replace(checkpoint, config=checkpoint.config | {"hidden_size": 16}))  # of another release
    with pytest.raises(SchemaMismatchError, match=r"does not fit this runner.*size mismatch.* … and \d+ more"):
        Trainer.from_checkpoint(path)


@pytest.mark.parametrize("name", ["search", "learner", "collector"])
def test_a_checkpoint_that_lacks_something_is_refused(small, tmp_path, name):
    train(small(), models=tmp_path)
    path = tmp_path / FINAL_NAME
    checkpoint = load_checkpoint(path, SCHEMA)
    state = {key: value for key, value in checkpoint.state.items() if key != name}
    save_checkpoint(path, replace(checkpoint, state=state))
    with pytest.raises(SchemaMismatchError, match=f"does not fit this runner: it has no '{name}'"):
        Trainer.from_checkpoint(path)


def test_a_batch_that_environments_cannot_share_is_refused():
    message = "batch_size=1000 is not a multiple of num_envs=32.*use batch_size=992 or 1024"
    with pytest.raises(ConfigurationError, match=message):
        from_mapping(HMASDConfig, {"batch_size": 1000, "num_envs": 32})


def test_an_ablation_of_a_baseline_is_refused():
    with pytest.raises(ConfigurationError, match="removes a part of HMASD"):
        from_mapping(HMASDConfig, {"algorithm": "mappo", "ablation": "no_team"})


def test_a_configuration_survives_json(small):
    config = small(n_agents=None)
    assert HMASDConfig(**json.loads(json.dumps(to_mapping(config)))) == config


def low_state(trainer):
    return {
        "actor": [p.clone() for p in trainer.agent.low.networks.actor_parameters()],
        "discriminators": [p.clone() for p in trainer.agent.discriminators.networks.parameters()],
    }


def test_skills_of_one_run_are_reused_frozen_on_another_task(small, tmp_path):
    trained = train(small(), models=tmp_path)
    expected = low_state(trained)
    config = small(task="alice_and_bob_crossed", freeze_skills=True, seed=5)
    trainer = Trainer(config)
    before = first_weight(trainer)
    trainer.load_skills(tmp_path / FINAL_NAME)
    assert torch.equal(first_weight(trainer), before), "the coordinator is a new one"
    metrics = []
    trainer.add_callback("post_update", lambda runner, stats: metrics.append(stats))
    trainer.run()
    assert_same(expected, low_state(trainer))
    assert not torch.equal(first_weight(trainer), before), "and learns"
    assert all(stats["Sync/ReplayLogProbError"] <= 1e-5 for stats in metrics)
    assert "Losses/Coordinator/Total" in metrics[0]
    assert "Losses/Discoverer/Total" not in metrics[0]


def skill_networks(trainer):
    networks = trainer.agent.low.networks, trainer.agent.discriminators.networks
    return {name: value.clone() for network in networks for name, value in network.state_dict().items()}


def kept_parts(caplog):
    """Names of the networks that keep their own weights, by the warnings."""
    words = "these skills does not fit this run and keeps its own weights"
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    return [line.removeprefix("the ").partition(" of ")[0] for line in warnings if words in line]


def test_of_a_task_with_another_state_actor_and_individual_discriminator_are_taken(
    small, tmp_path, drawing, counting, caplog
):
    trained = train(small(task=drawing), models=tmp_path)
    trainer = Trainer(small(task=counting, freeze_skills=True, seed=5))
    assert trained.agent.rollout.states.shape[-1] != trainer.agent.rollout.states.shape[-1]
    before = skill_networks(trainer)
    caplog.clear()
    trainer.load_skills(tmp_path / FINAL_NAME)
    assert kept_parts(caplog) == ["critic", "team discriminator"]
    loaded, given = skill_networks(trainer), skill_networks(trained)
    assert {name.partition(".")[0] for name in loaded} >= {"actor", "critic", "team", "agent"}
    for name, value in loaded.items():
        depends_on_state = name.startswith(("critic.", "to_value.", "team."))
        assert torch.equal(value, before[name] if depends_on_state else given[name]), name
    trainer.run()
    assert_same(loaded, skill_networks(trainer))


@pytest.mark.parametrize(("trained", "reused"), [(2.0, 0.0), (0.0, 2.0), (2.0, 2.0)])
def test_discriminators_that_do_not_fit_are_named(small, tmp_path, trained, reused, caplog):
    train(small(discriminator_lipschitz=trained), models=tmp_path)
    trainer = Trainer(small(freeze_skills=True, discriminator_lipschitz=reused, seed=5))
    before = skill_networks(trainer)
    trainer.load_skills(tmp_path / FINAL_NAME)
    changed = {name for name, value in skill_networks(trainer).items() if not torch.equal(value, before[name])}
    is_loaded = any(name.startswith(("team.", "agent.")) for name in changed)
    assert is_loaded == (trained == reused)
    assert kept_parts(caplog) == ([] if is_loaded else ["team discriminator", "agent discriminator"])


def test_skills_are_taken_although_the_critic_has_other_sizes(small, tmp_path, caplog):
    trained = train(small(task="uav_coverage", n_agents=3, critic_sees="all_skills"), models=tmp_path)
    trainer = Trainer(small(task="uav_coverage", n_agents=3, freeze_skills=True))
    trainer.load_skills(tmp_path / FINAL_NAME)
    assert kept_parts(caplog) == ["critic"]
    assert_same(low_state(trained), low_state(trainer))
    trainer.run()


def test_skills_that_do_not_fit_are_refused(small, tmp_path):
    train(small(), models=tmp_path / "hmasd")
    train(small(algorithm="mappo"), models=tmp_path / "mappo")
    skills = tmp_path / "hmasd" / FINAL_NAME
    for changes, why in (
        (
            {"task": "uav_coverage"},
            "11 numbers in an observation and not 73, 5 action outputs and not 3, actions of another kind",
        ),
        ({"n_agent_skills": 5}, "3 skills of an agent and not 5"),
        ({"hidden_size": 8}, "16 hidden units and not 8"),
    ):
        trainer = Trainer(small(freeze_skills=True, **changes))
        before = skill_networks(trainer)
        refusal = rf"of task alice_and_bob, do not fit task {changes.get('task', 'alice_and_bob')}: they have {why}\."
        with pytest.raises(SchemaMismatchError, match=refusal):
            trainer.load_skills(skills)
        assert_same(before, skill_networks(trainer))
    with pytest.raises(SchemaMismatchError, match="is of algorithm 'mappo', this run of 'hmasd'"):
        Trainer(small(freeze_skills=True)).load_skills(tmp_path / "mappo" / FINAL_NAME)
    with pytest.raises(ConfigurationError, match="freeze_skills=True trains the coordinator only"):
        from_mapping(HMASDConfig, {"freeze_skills": True, "algorithm": "mat"})


def test_skills_of_another_kind_of_actions_are_refused(small, drawing, monkeypatch, tmp_path):
    train(small(task=drawing), models=tmp_path)
    trainer = Trainer(small(task=register(monkeypatch, "pointing", PointingEnv), freeze_skills=True))
    before = skill_networks(trainer)
    with pytest.raises(SchemaMismatchError, match=r"pettingzoo:pointing: they have actions of another kind\."):
        trainer.load_skills(tmp_path / FINAL_NAME)
    assert_same(before, skill_networks(trainer))


def test_skills_are_loaded_frozen_or_not_at_all(small, tmp_path):
    train(small(), models=tmp_path)
    trainer = Trainer(small(seed=5))
    before = skill_networks(trainer)
    with pytest.raises(ConfigurationError, match=r"Skills of another run stay frozen\. Set freeze_skills=True"):
        trainer.load_skills(tmp_path / FINAL_NAME)
    assert_same(before, skill_networks(trainer))


def test_skills_are_those_that_the_configuration_names(small, tmp_path):
    train(small(), models=tmp_path)
    final = tmp_path / FINAL_NAME
    Trainer(small(freeze_skills=True, skills_digest=digest_file(final))).load_skills(final)
    with pytest.raises(ConfigurationError, match=r"has the SHA-256 .*, but skills_digest='another'"):
        Trainer(small(freeze_skills=True, skills_digest="another")).load_skills(final)
    with pytest.raises(ConfigurationError, match="skills_digest='another' names the checkpoint of frozen skills"):
        from_mapping(HMASDConfig, {"skills_digest": "another"})


def rewrite(path, **changes):
    """Change the configuration in a checkpoint; None removes an entry."""
    checkpoint = load_checkpoint(path, SCHEMA)
    config = {name: value for name, value in (checkpoint.config | changes).items() if value is not None}
    save_checkpoint(path, replace(checkpoint, config=config))


def test_a_checkpoint_that_does_not_say_where_its_skills_are_from_resumes(small, tmp_path):
    train(small(), models=tmp_path / "skills")
    trainer = Trainer(small(freeze_skills=True, seed=5), models=tmp_path / "run")
    trainer.load_skills(tmp_path / "skills" / FINAL_NAME)
    trainer.run()
    for path in (tmp_path / "run").glob("*.pth"):
        rewrite(path, skills_digest=None)
    assert Trainer.from_checkpoint(tmp_path / "run" / FINAL_NAME).env_steps == 368
    again = Trainer(small(freeze_skills=True, seed=5), models=tmp_path / "run")
    assert again.resume()
    named = Trainer(small(freeze_skills=True, seed=5, skills_digest="a"), models=tmp_path / "run")
    with pytest.raises(ConfigMismatchError, match="skills_digest: None → 'a'"):
        named.resume()


def test_a_baseline_of_a_release_that_accepted_settings_without_effect_resumes(small, tmp_path):
    train(small(algorithm="mappo"), models=tmp_path)
    for path in tmp_path.glob("*.pth"):
        rewrite(path, skill_floor=0.1, warmup_steps=100)
    final = tmp_path / FINAL_NAME
    assert Trainer.from_checkpoint(final).config == small(algorithm="mappo")
    assert Trainer(small(algorithm="mappo"), models=tmp_path).resume()
    with pytest.raises(ConfigurationError, match=r"skill_floor=0\.1: algorithm='mappo' uses none of these"):
        stored_config(final, {"skill_floor": 0.1})

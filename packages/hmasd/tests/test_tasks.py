import importlib
from textwrap import dedent

import pytest
import torch

from apexrl.runs.errors import ConfigurationError
from hmasd.envs.alice_and_bob import AliceAndBobEnv
from hmasd.tasks import make_env
from hmasd.training.trainer import Trainer, train


def test_a_pettingzoo_task_trains_and_resumes(small, tmp_path):
    config = small(
        task="pettingzoo:mpe2.simple_spread_v3", num_envs=3, batch_size=30, total_steps=60, checkpoint_interval=30
    )
    trainer = train(config, models=tmp_path)
    assert trainer.last_evaluation.lengths.tolist() == [9] * 6
    assert trainer.last_evaluation.returns.max() < 0.0
    resumed = Trainer.from_checkpoint(tmp_path / "hmasd_sync_enhanced_30.pth", config)
    resumed.run()
    assert resumed.last_evaluation.returns.tolist() == trainer.last_evaluation.returns.tolist()


MODULE = """
import numpy as np
from gymnasium import spaces


class Walk:
    \"\"\"Two agents walk at random for ever and see their common position as a picture.\"\"\"

    possible_agents = ["left", "right"]
    agents = []

    def __init__(self, actions=None):
        self.actions = actions or spaces.Discrete(3)
        self.rng = np.random.default_rng(0)

    def observation_space(self, agent):
        return spaces.Box(-np.inf, np.inf, (2, 2, 3), np.float32)

    def action_space(self, agent):
        return self.actions

    def observe(self):
        return {agent: np.full((2, 2, 3), self.position, np.float32) for agent in self.agents}

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.agents, self.position = list(self.possible_agents), self.rng.normal()
        return self.observe(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.position += sum(actions.values()) - 2.0 + 0.1 * self.rng.normal()
        no = dict.fromkeys(self.agents, False)
        rewards = dict.fromkeys(self.agents, -abs(self.position))
        return self.observe(), rewards, no, no, {agent: {} for agent in self.agents}

    def close(self):
        pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module into the path and give its task."""
    monkeypatch.syspath_prepend(tmp_path / "path")
    (tmp_path / "path").mkdir()
    count = iter(range(100))

    def write(text):
        name = f"walk_module_{next(count)}"
        (tmp_path / "path" / f"{name}.py").write_text(MODULE + dedent(text))
        importlib.invalidate_caches()
        monkeypatch.delitem(importlib.sys.modules, name, raising=False)
        return f"pettingzoo:{name}"

    return write


@pytest.mark.parametrize(
    "constructor",
    [
        "def parallel_env(): return Walk()",
        "def parallel_env(**kwargs): return Walk(**kwargs)",
        "parallel_env = Walk",
    ],
    ids=["no arguments", "handed on in vain", "a class"],
)
def test_environments_without_max_cycles_end_at_our_time_limit(small, module, constructor):
    """They walk for ever, and their observations are pictures."""
    config = small(task=module(constructor), num_envs=2, batch_size=24, total_steps=24)
    assert train(config).last_evaluation.lengths.tolist() == [9] * 6


@pytest.mark.parametrize(
    "constructor", ["def parallel_env(max_cycles): ...", "def parallel_env(*, size=3, **rest): ..."]
)
def test_max_cycles_reaches_environments_that_take_it(small, module, constructor):
    task = module(
        constructor.replace("...", "CALLS.append(locals().get('max_cycles', locals().get('rest'))); return Walk()")
    )
    loaded = importlib.import_module(task.removeprefix("pettingzoo:"))
    loaded.CALLS = []
    make_env(small(task=task), 2, 0)
    assert loaded.CALLS[-1] in (9, {"max_cycles": 9})


def test_a_type_error_inside_an_environment_is_not_mistaken_for_a_missing_argument(small, module):
    with pytest.raises(TypeError, match="unsupported operand"):
        make_env(small(task=module("def parallel_env(**kwargs): return 1 + '1'")), 2, 0)


@pytest.mark.parametrize("algorithm", ["hmasd", "mappo", "mat"])
def test_resume_within_episodes_that_only_our_time_limit_ends_is_exact(small, module, tmp_path, algorithm):
    changes = {"num_envs": 3, "batch_size": 30, "total_steps": 90, "checkpoint_interval": 30}
    config = small(task=module("parallel_env = Walk"), algorithm=algorithm, **changes)
    trainer = train(config, models=tmp_path)
    resumed = Trainer.from_checkpoint(tmp_path / "hmasd_sync_enhanced_30.pth", config)
    assert resumed.learner.collector.env._steps.tolist() == [1, 1, 1], "ten steps, of which nine made an episode"
    resumed.run()
    ours, theirs = trainer.learner.collector.state_dict(), resumed.learner.collector.state_dict()
    for name in ("observations", "state", "returns", "lengths"):
        assert torch.equal(ours[name], theirs[name]), name
    assert resumed.last_evaluation.returns.tolist() == trainer.last_evaluation.returns.tolist()


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        ("raise OSError('no screen')", {}, "importing the module raised OSError: no screen"),
        ("raise SystemExit(3)", {}, "importing the module raised SystemExit: 3"),
        ("import no_such_package", {}, r"No module named 'no_such_package'.*PYTHONPATH=\."),
        ("parallel_env = 3", {}, r"has no parallel_env\(\)"),
        ("def parallel_env(size, max_cycles): ...", {}, r"parallel_env\(\) needs size"),
        ("parallel_env = lambda: Walk(spaces.MultiDiscrete([2, 2]))", {}, "Agents need Discrete action spaces"),
        ("parallel_env = Walk", {"n_agents": 3}, "n_agents=3: pettingzoo:walk_module_0 has 2 agents"),
        (
            """
            class Short(Walk):
                def observe(self):
                    return {agent: np.zeros((2, 3), np.float32) for agent in self.agents}
            parallel_env = Short
            """,
            {},
            r"agent 'left' is given an observation of shape \(2, 3\) instead of \(2, 2, 3\)",
        ),
        (
            "from pettingzoo import AECEnv\nparallel_env = type('Turns', (AECEnv,), {})",
            {},
            r"whose agents act in turn \(AEC\).*parallel_env\(\) returns: convert it with pettingzoo.utils.aec_to",
        ),
        ("import gymnasium\nparallel_env = lambda: gymnasium.make('CartPole-v1')", {}, "has no possible_agents"),
        ("parallel_env = lambda: None", {}, "an object of NoneType, which has no possible_agents"),
        (
            "shared = Walk()\nparallel_env = lambda: shared",
            {},
            r"same Walk object.*parallel_env\(\) returns: make a new",
        ),
    ],
    ids=[
        *("raises", "exits", "dependency", "no function", "needs more", "actions", "n_agents", "liar"),
        *("agents in turn", "one agent", "nothing", "one object"),
    ],
)
def test_modules_that_cannot_be_used_are_refused_with_the_cause(small, module, text, changes, message):
    with pytest.raises(ConfigurationError, match=message):
        make_env(small(task=module(text), **changes), 2, 0)


def test_the_right_number_of_agents_may_be_given(small, module):
    assert make_env(small(task=module("parallel_env = Walk"), n_agents=2), 2, 0).num_agents == 2


def test_environments_that_cannot_be_captured_resume_with_new_episodes(small, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(AliceAndBobEnv, "supports_state", False)
    train(small(), models=tmp_path)
    resumed = Trainer.from_checkpoint(tmp_path / "hmasd_sync_enhanced_184.pth")
    assert "resumes with new episodes" in caplog.text
    assert resumed.env_steps == 184
    assert resumed.learner.collector._starts.all()
    resumed.agent.clock.assign(resumed.agent.clock.due())  # skills of the old episodes have steps left
    observed = resumed.learner.collector
    observed.collect(resumed.agent, 1)
    assert resumed.agent.rollout.assigned[0].all(), "new episodes have new skills"
    assert (resumed.agent.rollout.skill_ages == 0).all()


@pytest.mark.parametrize("algorithm", ["hmasd", "mappo", "mat"])
@pytest.mark.parametrize("task", ["uav_coverage", "uav_relay"])
def test_uav_tasks_train_with_every_algorithm(small, algorithm, task):
    trainer = train(small(task=task, algorithm=algorithm, num_envs=2, batch_size=24, total_steps=24, n_agents=3))
    assert trainer.agent.rollout.n_agents == 3
    assert trainer.last_evaluation is not None


def test_unknown_tasks_and_agent_numbers_are_refused(small):
    for changes, message in (
        ({"task": "alice"}, "there is no task 'alice'"),
        ({"n_agents": 3}, "alice_and_bob has 2 agents"),
        ({"task": "pettingzoo:no.such.module"}, r"cannot be imported.*PYTHONPATH=\."),
        ({"task": "pettingzoo:.foo"}, "'.foo' is not the full name of a module"),
        ({"task": "pettingzoo:"}, "'' is not the full name of a module"),
        ({"task": "pettingzoo:json"}, "has no parallel_env"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            make_env(small(**changes), 2, 0)


def test_networks_depend_on_the_seed_alone(small):
    torch.manual_seed(123)
    first = Trainer(small(seed=1)).agent.state_dict()["low"]["networks"]
    drawn = torch.rand(1)
    torch.manual_seed(123)
    assert torch.equal(drawn, torch.rand(1)), "torch's global stream is left alone"
    second = Trainer(small(seed=1)).agent.state_dict()["low"]["networks"]
    other = Trainer(small(seed=2)).agent.state_dict()["low"]["networks"]
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from mpe2 import simple_spread_v3

from apexrl.envs import GymVecEnv, PettingZooVecEnv
from apexrl.envs.checker.check import CheckReport, EnvCheckError, check_env


def findings(env, **options):
    report = check_env(env, raise_on_error=False, **{"num_steps": 60} | options)
    return {problem.check for problem in report.errors}


@pytest.mark.parametrize(
    "make",
    [
        lambda: GymVecEnv([partial(gym.make, "CartPole-v1")] * 3),
        lambda: GymVecEnv([partial(gym.make, "Pendulum-v1", max_episode_steps=20)] * 2),
        lambda: GymVecEnv.from_vector_env(
            gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
        ),
        lambda: PettingZooVecEnv([partial(simple_spread_v3.parallel_env, max_cycles=8)] * 2),
    ],
    ids=["sync", "continuous", "native", "multi_agent"],
)
def test_correct_envs_pass(make):
    report = check_env(make(), num_steps=40)
    assert report.problems == ()
    assert str(report) == "No problems found."


def test_a_correct_tensor_env_passes(walk_env):
    assert check_env(walk_env(), num_steps=60).is_ok


def test_an_action_mask_and_a_privileged_observation_pass(counter):
    space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    env = GymVecEnv([counter(limit=3)] * 2, privileged_observation_space=space)
    # The counter ignores its actions; everything else about it is right.
    assert findings(env) == {"ignored_actions"}


def test_errors_raise_with_the_whole_report(walk_env):
    class Broken(walk_env):
        def move(self, actions):
            super().move(torch.ones_like(actions))

    with pytest.raises(EnvCheckError, match="never reach the dynamics") as caught:
        check_env(Broken(), num_steps=30)
    assert isinstance(caught.value.report, CheckReport)
    assert not caught.value.report.is_ok


def test_aliasing_is_found(walk_env):
    class Broken(walk_env):
        buffer = torch.zeros(4, 2)

        def observe(self):
            self.buffer.copy_(super().observe())
            return self.buffer

    assert "aliasing" in findings(Broken())


def test_aliasing_of_rewards_is_found(walk_env):
    class Broken(walk_env):
        buffer = torch.zeros(4)

        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            return obs, self.buffer.copy_(rewards), dones, extras

    assert findings(Broken()) == {"aliasing"}


def test_an_env_that_reads_what_it_returned_is_found(walk_env):
    class Broken(walk_env):
        def observe(self):
            self.shown = super().observe()
            return self.shown

        def move(self, actions):
            self.position = self.shown[:, 0].clone()
            super().move(actions)

    assert findings(Broken()) == {"aliasing"}


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda o, r, d, e: (o[:, :1], r, d, e), "shapes"),
        (lambda o, r, d, e: (o.double(), r, d, e), "dtypes"),
        (lambda o, r, d, e: (o.numpy(), r, d, e), "types"),
        (lambda o, r, d, e: (o, r, d, e | {"reward_components": {"x": torch.zeros(3)}}), "shapes"),
        (lambda o, r, d, e: (o, r[:2], d, e), "shapes"),
        (lambda o, r, d, e: (o, r.long(), d, e), "dtypes"),
        (lambda o, r, d, e: (o, r, d.numpy(), e), "types"),
        (lambda o, r, d, e: (o, r, d, e | {"time_outs": d[:2]}), "shapes"),
        (lambda o, r, d, e: (o, r, d, e | {"log": {"x": "high"}}), "types"),
        (lambda o, r, d, e: (o, r, d, e | {"action_mask": torch.zeros(4, 3, dtype=torch.bool)}), "action_mask"),
        (lambda o, r, d, e: (o, r, d, e | {"action_mask": torch.ones(4, 2, dtype=torch.bool)}), "shapes"),
        (lambda o, r, d, e: (o * float("nan"), r, d, e), "values"),
        (lambda o, r, d, e: (o, r / 0, d, e), "values"),
    ],
)
def test_wrong_forms_are_found(walk_env, change, check):
    class Broken(walk_env):
        def step(self, actions):
            return change(*super().step(actions))

    assert check in findings(Broken(), num_steps=5)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda o, r, d, e: (o, r.double(), d, e), "dtypes"),
        (lambda o, r, d, e: (o, r.unsqueeze(1), d, e), "shapes"),
        (lambda o, r, d, e: (o, r, d.float(), e), "dtypes"),
    ],
)
def test_what_is_understood_although_it_is_unusual_is_a_warning(walk_env, change, check):
    class Unusual(walk_env):
        def step(self, actions):
            return change(*super().step(actions))

    report = check_env(Unusual(), num_steps=30)
    assert [(problem.severity, problem.check) for problem in report.problems] == [("warning", check)]


def test_time_outs_reward_components_and_log_are_enough(walk_env):
    class Bare(walk_env):
        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            return (
                obs,
                rewards,
                dones,
                {
                    "time_outs": extras["time_outs"],
                    "reward_components": {"position": rewards.clone()},
                    "log": {"/walk/position_mean": self.position.clone()},
                },
            )

    report = check_env(Bare(), num_steps=60)
    assert [(problem.severity, problem.check) for problem in report.problems] == [("warning", "final_observation")]


def test_episodes_that_only_terminate_need_no_extras(walk_env):
    class Endless(walk_env):
        def step(self, actions):
            self.steps[:] = 0  # never cut off
            obs, rewards, dones, _ = super().step(actions)
            return obs, rewards, dones, {}

        def move(self, actions):
            super().move(actions)
            self.position = self.position + 0.4

    assert check_env(Endless(), num_steps=60).problems == ()


def test_a_missing_privileged_observation_is_found(walk_env):
    env = walk_env()
    env.privileged_observation_space = spaces.Box(-1, 1, (3,), np.float32)
    assert findings(env) == {"types"}


def test_missing_attributes_are_found(walk_env):
    env = walk_env()
    env.num_envs, env.device = 0, "cpu"
    del env.action_space
    assert findings(env) == {"attributes"}


def test_ignored_actions_are_found(walk_env):
    class Broken(walk_env):
        def move(self, actions):
            super().move(torch.ones_like(actions))

    assert findings(Broken()) == {"ignored_actions"}


def test_ignored_actions_of_one_row_are_found(walk_env):
    class Broken(walk_env):
        def move(self, actions):
            actions = actions.clone()
            actions[2] = 1
            super().move(actions)

    assert findings(Broken()) == {"ignored_actions"}


def test_actions_that_reach_other_rows_are_found(walk_env):
    class Broken(walk_env):
        def move(self, actions):
            super().move(actions.roll(1))

    assert "crosstalk" in findings(Broken())


def test_constant_observations_are_found(walk_env):
    class Broken(walk_env):
        def observe(self):
            return torch.zeros(4, 2)

    assert "constant_observations" in findings(Broken())


def test_constant_observations_of_one_row_are_found(walk_env):
    class Broken(walk_env):
        def observe(self):
            obs = super().observe()
            obs[1] = 0
            return obs

    report = check_env(Broken(), raise_on_error=False, num_steps=30)
    assert any("environments [1] never changed" in problem.message for problem in report.errors)


def test_a_global_state_of_zeros_is_found():
    fns = [partial(simple_spread_v3.parallel_env, max_cycles=8)] * 2
    env = PettingZooVecEnv(fns, state_fn=lambda env: np.zeros(3))
    assert findings(env, num_steps=20) == {"constant_states"}


def test_multi_agent_actions_that_never_arrive_are_found():
    class Deaf(PettingZooVecEnv):
        def step(self, actions):
            return super().step(torch.zeros_like(actions))

    fns = [partial(simple_spread_v3.parallel_env, max_cycles=8)] * 2
    assert findings(Deaf(fns), num_steps=20) == {"ignored_actions"}


def test_a_final_observation_taken_after_the_reset_is_found(walk_env):
    class Broken(walk_env):
        def step(self, actions):
            obs, rewards, dones, extras = super().step(actions)
            return obs, rewards, dones, extras | {"final_observation": obs.clone()}

    assert findings(Broken()) == {"final_observation"}


@pytest.mark.parametrize("name", ["terminated", "time_outs"])
def test_flags_that_disagree_are_found(walk_env, name):
    class Broken(walk_env):
        def step(self, actions):
            *rest, extras = super().step(actions)
            return *rest, extras | {name: torch.zeros(4, dtype=torch.bool)}

    # Only time-outs happen with these actions, so a lost termination needs another limit.
    class Ending(Broken):
        def move(self, actions):
            super().move(actions)
            self.position = self.position + 0.4

    assert "endings" in findings(Ending() if name == "terminated" else Broken())


def test_an_ignored_seed_is_found(walk_env):
    class Broken(walk_env):
        def reset(self, seed=None):
            return super().reset(seed=1)

    assert findings(Broken()) == {"seeding"}


def test_unseeded_noise_is_found(walk_env):
    class Broken(walk_env):
        def move(self, actions):
            super().move(actions)
            self.position = self.position + torch.rand(4)

    assert "seeding" in findings(Broken())


def test_an_incomplete_state_is_found(walk_env):
    class Broken(walk_env):
        def state_dict(self):
            return {"position": self.position.clone(), "steps": self.steps.clone()}

        def load_state_dict(self, state):
            self.position, self.steps = state["position"].clone(), state["steps"].clone()

    class Complete(Broken):
        def state_dict(self):
            return super().state_dict() | {"generator": self.generator.get_state()}

        def load_state_dict(self, state):
            super().load_state_dict(state)
            self.generator.set_state(state["generator"])

    assert findings(Broken()) == {"state"}
    assert findings(Complete()) == set()


def test_doubtful_things_are_only_warnings(walk_env):
    class Doubtful(walk_env):
        def start(self, rows):
            super().start(rows)
            self.position[rows] = self.position[0]

    env = Doubtful()
    env.observation_space = spaces.Box(-0.01, 0.01, (2,), np.float32)
    report = check_env(env, num_steps=10)
    assert report.is_ok
    assert {problem.check for problem in report.problems} == {"values", "endings", "seeding"}
    assert "warning: values" in str(report)


def test_what_stands_for_an_environment_is_checked():
    for env in ("CartPole-v1", gym.make("CartPole-v1"), partial(gym.make, "CartPole-v1")):
        assert str(check_env(env, num_steps=40)) == "No problems found."


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"reset": lambda self: None}, "reset() takes no seed"),
        ({"reset": lambda self, seed=None: torch.zeros(3)}, "with a dict of extras, got a Tensor."),
        (
            {"step": lambda self, actions: (*(torch.zeros(3),) * 4, {})},
            "time limits in extras['time_outs'], got (Tensor, Tensor, Tensor, Tensor, dict).",
        ),
        ({"step": lambda self, actions: (*(torch.zeros(3),) * 3, None)}, "got (Tensor, Tensor, Tensor, NoneType)."),
    ],
)
def test_forms_of_reset_and_step_are_checked_first(walk_env, methods, message):
    report = check_env(type("Broken", (walk_env,), methods)(), raise_on_error=False)
    assert [problem.check for problem in report.errors] == ["types"]
    assert message in str(report)


def test_a_device_may_be_a_text(walk_env):
    class Loose(walk_env):
        def __init__(self):
            super().__init__()
            self.device = "cpu"

    assert check_env(Loose(), num_steps=60).is_ok


@pytest.mark.parametrize("make", [list, lambda envs: envs[0]], ids=["list", "one"])
def test_parallel_environments_of_pettingzoo_are_checked_as_they_are(make):
    envs = [simple_spread_v3.parallel_env(max_cycles=8) for _ in range(2)]
    assert check_env(make(envs), num_steps=20).is_ok

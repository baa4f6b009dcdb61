from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from mpe2 import simple_speaker_listener_v4, simple_spread_v3, simple_tag_v3
from pettingzoo import ParallelEnv

from apexrl.envs import PettingZooVecEnv
from apexrl.envs.checker.check import check_env
from apexrl.envs.pettingzoo.spaces import ObservationMismatchError
from apexrl.envs.vec_env import NotAnEnvError, SharedEnvError, StepFormatError, UnsupportedSpacesError
from apexrl.runs.errors import SchemaMismatchError


class Leaving(ParallelEnv):
    """Three agents with lives of different length; the last is cut off, the others die."""

    def __init__(self, lives=None, actions=None):
        self.possible_agents = ["a", "b", "c"]
        self.lives = lives or {"a": 2, "b": 4, "c": 6}
        self.actions = actions or {}
        self.seen = []

    def observation_space(self, agent):
        return spaces.Box(-1, 99, (2 if agent == "a" else 3,), np.float32)

    def action_space(self, agent):
        return self.actions.get(agent, spaces.Discrete(4))

    def _observations(self, names):
        return {n: np.full(self.observation_space(n).shape, self.clock + 1, np.float32) for n in names}

    def reset(self, seed=None, options=None):
        self.agents, self.clock = self.possible_agents[:], 0
        return self._observations(self.agents), {n: {} for n in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.seen.append(actions)
        self.clock += 1
        acting = self.agents
        over = {n: self.clock >= self.lives[n] for n in acting}
        self.agents = [n for n in acting if not over[n]]
        return (
            self._observations(acting),
            {n: float(self.clock) for n in acting},
            {n: over[n] and n != "c" for n in acting},
            {n: over[n] and n == "c" for n in acting},
            {n: {} for n in acting},
        )


def test_agents_that_leave_early_are_masked_and_keep_their_last_observation():
    env = PettingZooVecEnv([Leaving])
    assert env.agent_names == ["a", "b", "c"]
    obs, extras = env.reset(seed=0)
    assert obs.tolist() == [[[1, 1, 0], [1, 1, 1], [1, 1, 1]]]  # shorter observations are padded
    assert extras["agent_mask"].all()
    alive = {1: [1, 1, 1], 2: [0, 1, 1], 3: [0, 1, 1], 4: [0, 0, 1], 5: [0, 0, 1], 6: [1, 1, 1]}
    acting = torch.ones(3, dtype=torch.bool)
    for step in range(1, 7):
        obs, rewards, dones, extras = env.step(torch.zeros(1, 3, dtype=torch.long))
        assert extras["agent_mask"][0].tolist() == [bool(x) for x in alive[step]]
        assert rewards[0].tolist() == [float(step) * bool(x) for x in acting]
        assert (obs[0][~extras["agent_mask"][0]] == 0).all()
        assert extras["agent_terminated"][0].tolist() == [step == 2, step == 4, False]
        assert extras["agent_truncated"][0].tolist() == [False, False, step == 6]
        for agent, life in enumerate((2, 4, 6)):
            if step == life:
                assert extras["final_observation"][0, agent, 0] == step + 1
        assert dones.tolist() == [step == 6]
        acting = extras["agent_mask"][0]
    assert extras["truncated"].tolist() == extras["time_outs"].tolist() == [True]
    assert extras["terminated"].tolist() == [False]
    assert extras["final_agent_mask"].tolist() == [[False, False, True]]
    assert obs[0, :, 0].tolist() == [1, 1, 1]  # the next episode has begun


def test_an_episode_that_ends_by_itself_is_terminated():
    env = PettingZooVecEnv([partial(Leaving, lives={"a": 2, "b": 2, "c": 1})])
    env.reset(seed=0)
    *_, dones, extras = env.step(torch.zeros(1, 3, dtype=torch.long))
    assert not dones.any()
    assert extras["agent_truncated"].tolist() == [[False, False, True]]
    *_, dones, extras = env.step(torch.zeros(1, 3, dtype=torch.long))
    assert dones.all()
    assert extras["terminated"].tolist() == [True]
    assert extras["truncated"].tolist() == [False]


def test_actions_reach_their_agents_and_only_those_present():
    env = PettingZooVecEnv([Leaving] * 2)
    env.reset(seed=0)
    for _ in range(3):
        env.step(torch.tensor([[0, 1, 2], [3, 2, 1]]))
    assert env.envs[0].seen[0] == {"a": 0, "b": 1, "c": 2}
    assert env.envs[1].seen[0] == {"a": 3, "b": 2, "c": 1}
    assert env.envs[1].seen[2] == {"b": 2, "c": 1}


def test_smaller_action_spaces_are_masked():
    env = PettingZooVecEnv([partial(Leaving, actions={"b": spaces.Discrete(2)})])
    assert env.action_space == spaces.Discrete(4)
    _, extras = env.reset(seed=0)
    assert extras["action_mask"][0].tolist() == [[True] * 4, [True, True, False, False], [True] * 4]


def test_action_masks_of_agents_are_passed_on():
    class Masked(Leaving):
        def reset(self, seed=None, options=None):
            obs, _ = super().reset()
            return obs, {n: {"action_mask": np.array([1, 0, 0, 1], np.int8)} for n in obs}

        def step(self, actions):
            *rest, infos = super().step(actions)
            return *rest, {n: {"action_mask": np.array([0, 1, 0, 0])} for n in infos}

    env = PettingZooVecEnv([Masked])
    _, extras = env.reset(seed=0)
    assert extras["action_mask"][0, 0].tolist() == [True, False, False, True]
    for _ in range(2):
        *_, extras = env.step(torch.zeros(1, 3, dtype=torch.long))
    assert extras["action_mask"][0].tolist() == [[True] * 4, *[[False, True, False, False]] * 2]


def test_observations_with_a_mask_inside_are_understood():
    class Classic(Leaving):
        def observation_space(self, agent):
            return spaces.Dict({"observation": super().observation_space("b"), "action_mask": spaces.MultiBinary(4)})

        def _observations(self, names):
            mask = np.array([0, 0, 1, 1], np.int8)
            return {n: {"observation": np.ones(3, np.float32), "action_mask": mask} for n in names}

    env = PettingZooVecEnv([Classic])
    obs, extras = env.reset(seed=0)
    assert obs.shape == (1, 3, 3)
    assert extras["action_mask"].tolist() == [[[False, False, True, True]] * 3]


def test_continuous_actions_are_cut_and_clipped():
    boxes = {"a": spaces.Box(-1, 1, (1,)), "b": spaces.Box(0, 2, (2,)), "c": spaces.Box(-3, 1, (2,))}
    env = PettingZooVecEnv([partial(Leaving, actions=boxes)])
    np.testing.assert_array_equal(env.action_space.low, [-3, -3])
    np.testing.assert_array_equal(env.action_space.high, [2, 2])
    env.reset(seed=0)
    env.step(torch.tensor([[[9.0, 9.0], [-1.0, 1.5], [0.5, 0.5]]]))
    seen = {name: action.tolist() for name, action in env.envs[0].seen[0].items()}
    assert seen == {"a": [1.0], "b": [0.0, 1.5], "c": [0.5, 0.5]}
    with pytest.raises(ValueError, match="NaN or infinite"):
        env.step(torch.full((1, 3, 2), float("nan")))


def test_wrong_actions_and_spaces_are_refused():
    env = PettingZooVecEnv([Leaving])
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"integers of shape \[1, 3\]"):
        env.step(torch.zeros(1, 2, dtype=torch.long))
    with pytest.raises(ValueError, match="integers"):
        env.step(torch.zeros(1, 3))
    with pytest.raises(TypeError, match="all of one kind"):
        PettingZooVecEnv([partial(Leaving, actions={"a": spaces.Box(-1, 1, (1,))})])
    with pytest.raises(ValueError, match="env_fns is empty"):
        PettingZooVecEnv([])


def test_an_agent_that_ends_without_an_observation_is_an_error():
    class Rude(Leaving):
        def step(self, actions):
            observations, *rest = super().step(actions)
            return {n: observations[n] for n in self.agents}, *rest

    env = PettingZooVecEnv([Rude])
    env.reset(seed=0)
    env.step(torch.zeros(1, 3, dtype=torch.long))
    with pytest.raises(ValueError, match=r"\['a'\] of environment 0 ended without"):
        env.step(torch.zeros(1, 3, dtype=torch.long))


def test_the_state_is_the_envs_own_or_all_observations_or_a_function():
    spread = PettingZooVecEnv([simple_spread_v3.parallel_env])
    _, extras = spread.reset(seed=0)
    np.testing.assert_array_equal(extras["state"][0], spread.envs[0].state())
    assert (extras["state"] != 0).any()
    joined = PettingZooVecEnv([Leaving])
    obs, extras = joined.reset(seed=0)
    assert torch.equal(extras["state"], obs.reshape(1, -1))
    own = PettingZooVecEnv([Leaving], state_fn=lambda env: np.array([env.clock, 7.0]))
    own.reset(seed=0)
    for _ in range(6):
        *_, extras = own.step(torch.zeros(1, 3, dtype=torch.long))
    assert extras["final_state"].tolist() == [[6.0, 7.0]]
    assert extras["state"].tolist() == [[0.0, 7.0]]


@pytest.mark.parametrize("module", [simple_spread_v3, simple_tag_v3, simple_speaker_listener_v4])
def test_mpe_tasks_run_with_seeds_and_time_limits(module):
    env, twin = (PettingZooVecEnv([partial(module.parallel_env, max_cycles=5)] * 3) for _ in range(2))
    obs, extras = env.reset(seed=4)
    assert torch.equal(obs, twin.reset(seed=4)[0])
    assert not torch.equal(obs, twin.reset(seed=5)[0])
    assert not torch.equal(obs[0], obs[1])
    single = module.parallel_env(max_cycles=5)
    first, _ = single.reset(seed=4)
    name = env.agent_names[0]
    np.testing.assert_array_equal(obs[0, 0, : len(first[name])], first[name])
    for _ in range(5):
        obs, rewards, dones, extras = env.step(torch.ones(3, env.num_agents, dtype=torch.long))
        last, gains, *_ = single.step(dict.fromkeys(env.agent_names, 1))
        assert rewards[0, 0].item() == pytest.approx(gains[name], rel=1e-6)
    assert dones.all()
    assert extras["truncated"].all()
    np.testing.assert_array_equal(extras["final_observation"][0, 0, : len(last[name])], last[name])
    assert not torch.equal(extras["final_state"], extras["state"])


def test_agent_ids_tell_roles_apart():
    env = PettingZooVecEnv([simple_tag_v3.parallel_env], agent_ids=True)
    obs, _ = env.reset(seed=0)
    assert torch.equal(obs[0, :, -4:], torch.eye(4))


def test_a_time_limit_cuts_off_who_is_still_there_with_the_true_last_observation():
    env = PettingZooVecEnv([partial(Leaving, lives={"a": 2, "b": 9, "c": 9})], max_steps=3)
    env.reset(seed=0)
    for episode in range(2):  # the count begins again after a limit
        for step in range(1, 4):
            obs, _, dones, extras = env.step(torch.zeros(1, 3, dtype=torch.long))
            assert dones.tolist() == [step == 3], episode
            assert extras["agent_terminated"].tolist() == [[step == 2, False, False]]
            assert extras["agent_truncated"].tolist() == [[False, step == 3, step == 3]]
        assert extras["truncated"].tolist() == extras["time_outs"].tolist() == [True]
        assert extras["terminated"].tolist() == [False]
        assert extras["final_observation"][0, :, 0].tolist() == [0, 4, 4]
        assert extras["final_state"][0].tolist() == [0] * 3 + [4] * 6
        assert extras["final_agent_mask"].tolist() == [[False, True, True]]
        assert obs[0, :, 0].tolist() == [1, 1, 1], "the next episode has begun"


def test_an_episode_that_ends_by_itself_at_the_time_limit_keeps_its_own_end():
    env = PettingZooVecEnv([partial(Leaving, lives={"a": 2, "b": 2, "c": 1})], max_steps=2)
    env.reset(seed=0)
    env.step(torch.zeros(1, 3, dtype=torch.long))
    *_, extras = env.step(torch.zeros(1, 3, dtype=torch.long))
    assert extras["terminated"].tolist() == [True]
    assert extras["truncated"].tolist() == [False]


def test_reset_begins_the_time_limit_again():
    env = PettingZooVecEnv([partial(Leaving, lives={"a": 9, "b": 9, "c": 9})], max_steps=3)
    env.reset(seed=0)
    env.step(torch.zeros(1, 3, dtype=torch.long))
    env.reset(seed=0)
    ends = [env.step(torch.zeros(1, 3, dtype=torch.long))[2].item() for _ in range(3)]
    assert ends == [False, False, True]
    with pytest.raises(ValueError, match="max_steps=0 must be at least 1"):
        PettingZooVecEnv([Leaving], max_steps=0)


def test_a_time_limit_keeps_the_contract_and_is_part_of_the_state():
    # 7 divides no number of steps that the checker makes, so counters that are not restored would show
    env = PettingZooVecEnv([partial(simple_spread_v3.parallel_env, max_cycles=1000)] * 2, max_steps=7)
    assert check_env(env, num_steps=40).problems == ()
    state = env.state_dict()
    del state["steps"]
    with pytest.raises(SchemaMismatchError, match="time limit of 7 steps"):
        env.load_state_dict(state)
    PettingZooVecEnv([partial(simple_spread_v3.parallel_env, max_cycles=1000)] * 2).load_state_dict(state)


class Images(Leaving):
    """Pictures as observations and as the state."""

    state_space = spaces.Box(0, 255, (2, 5))

    def observation_space(self, agent):
        return spaces.Box(0, 255, (7, 7, 3), np.uint8)

    def _observations(self, names):
        return {n: np.arange(147, dtype=np.uint8).reshape(7, 7, 3) for n in names}

    def state(self):
        return np.arange(10.0).reshape(2, 5)


def test_pictures_are_flattened_on_demand():
    shaped, flat = PettingZooVecEnv([Images]), PettingZooVecEnv([Images], flat=True)
    obs, extras = shaped.reset(seed=0)
    assert obs.shape == (1, 3, 7, 7, 3)
    assert extras["state"].shape == (1, 2, 5)
    vectors, central = flat.reset(seed=0)
    assert torch.equal(vectors, obs.flatten(2))
    assert torch.equal(central["state"], extras["state"].flatten(1))
    assert flat.observation_space.shape == (147,)
    assert flat.state_space.shape == (10,)


class Liar(Leaving):
    """Declares more than it gives."""

    def __init__(self, declared, given):
        super().__init__()
        self.declared, self.given = declared, given

    def observation_space(self, agent):
        return self.declared.get(agent, spaces.Box(-1, 99, (1,), np.float32))

    def _observations(self, names):
        return {n: self.given.get(n, np.ones(1, np.float32)) for n in names}


@pytest.mark.parametrize(
    ("space", "given", "message"),
    [
        (spaces.Box(-1, 1, (4,)), np.ones(3), r"shape \(3,\) instead of \(4,\)"),
        (spaces.Box(-1, 1, (2, 2)), np.ones(4), r"shape \(4,\) instead of \(2, 2\)"),
        (spaces.Discrete(3), 3, "observation 3,"),
        (spaces.MultiBinary(3), np.ones(2), r"shape \(2,\)"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Box(-1, 1, (2,))]), (1, np.ones(3)), r"shape \(3,\)"),
        (spaces.Tuple([spaces.Discrete(2)]), (1, 1), "not a tuple of 1"),
        (spaces.Dict(x=spaces.Discrete(2), y=spaces.Discrete(2)), {"x": 1}, "keys \\['x', 'y'\\]"),
    ],
    ids=["short", "flat", "outside", "bits", "part", "long", "keys"],
)
def test_observations_against_the_declared_space_are_refused(space, given, message):
    with pytest.raises(ObservationMismatchError, match=message) as caught:
        PettingZooVecEnv([partial(Liar, {"b": space}, {"b": given})])
    assert "'b'" in str(caught.value)


def test_a_single_number_is_not_spread_over_a_longer_observation():
    every = dict.fromkeys("abc", spaces.Box(-1, 1, (4,)))
    with pytest.raises(ObservationMismatchError, match=r"shape \(1,\) instead of \(4,\)"):
        PettingZooVecEnv([partial(Liar, every, {})])


def test_observations_of_no_fixed_length_are_refused():
    with pytest.raises(UnsupportedSpacesError, match="fixed number of entries"):
        PettingZooVecEnv([partial(Liar, {"b": spaces.Sequence(spaces.Discrete(2))}, {"b": (1,)})])


def test_one_environment_is_refused_as_several():
    env = Leaving()
    with pytest.raises(SharedEnvError, match=r"environments 1 and 2 are the same Leaving object.*Make a new"):
        PettingZooVecEnv([Leaving, lambda: env, lambda: env])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (simple_spread_v3.env, r"environment 0 is an object of \w+, whose agents act in turn \(AEC\).*aec_to_parallel"),
        (
            lambda: gym.make("CartPole-v1"),
            r"environment 0 is an object of \w+, which has no possible_agents.*GymVecEnv",
        ),
        (lambda: None, "environment 0 is an object of NoneType, which has no possible_agents, reset, step"),
    ],
    ids=["aec", "gymnasium", "none"],
)
def test_what_is_no_parallel_environment_is_named(make, words):
    with pytest.raises(NotAnEnvError, match=words):
        PettingZooVecEnv([make])


def _with_rewards(change):
    def returned(observations, rewards, *rest):
        return observations, change(rewards), *rest

    return returned


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda *parts: parts[:4], r"\(Odd\): step\(\) returned \(dict, dict, dict, dict\).*5 dicts by agent"),
        (lambda *parts: None, r"returned a NoneType.*observations, rewards, terminations, truncations, infos"),
        (_with_rewards(lambda rewards: 1.0), r"returned \(dict, float, dict, dict, dict\)"),
        (_with_rewards(lambda rewards: {**rewards, "b": np.ones(2)}), r"the reward array\(\[1., 1.\]\) for agent 'b'"),
        (_with_rewards(lambda rewards: {**rewards, "b": "much"}), "the reward 'much' for agent 'b'"),
        (_with_rewards(lambda rewards: {"a": 1.0, "b": 1.0}), r"returned no reward for agent 'c'.*0.0 stands for"),
    ],
    ids=["four", "none", "one-reward", "array", "text", "missing"],
)
def test_steps_without_a_clear_meaning_are_refused(returned, words):
    class Odd(Leaving):
        def step(self, actions):
            return returned(*super().step(actions))

    env = PettingZooVecEnv([Leaving, Odd])
    env.reset(seed=0)
    with pytest.raises(StepFormatError, match=f"environment 1 .*{words}"):
        env.step(torch.zeros(2, 3, dtype=torch.long))


def test_a_reset_without_infos_is_refused():
    class Old(Leaving):
        def reset(self, seed=None, options=None):
            return super().reset()[0]

    with pytest.raises(
        StepFormatError, match=r"\(Old\): reset\(\) returned a dict.*2 dicts by agent: observations, infos"
    ):
        PettingZooVecEnv([Old])

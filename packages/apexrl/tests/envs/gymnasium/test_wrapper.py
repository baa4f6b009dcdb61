import copy
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from apexrl.envs import GymVecEnv, GymVecEnvContinuous
from apexrl.envs.gymnasium.wrapper import LeanSyncVectorEnv, autoreset_mode_of
from apexrl.envs.vec_env import SharedEnvError, StepFormatError, UnsupportedSpacesError


def cartpoles(n=3, **options):
    return [partial(gym.make, "CartPole-v1", **options)] * n


def pendulums(n=3, **options):
    return [partial(gym.make, "Pendulum-v1", **options)] * n


def assert_same(a, b):
    """Equality of nested dicts of arrays, objects included."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, np.ndarray) and a.dtype == object:
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif a is not None:
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("name", ["cartpole", "pendulum", "infos", "multi_discrete"])
def test_the_lean_env_gives_exactly_what_gymnasium_gives(name, counter):
    fns = {
        "cartpole": cartpoles(),
        "pendulum": pendulums(max_episode_steps=15),
        "infos": [counter(limit=3), counter(limit=5)],
        "multi_discrete": [counter(limit=3, action_space=spaces.MultiDiscrete([2, 3]))] * 2,
    }[name]
    lean, theirs = LeanSyncVectorEnv(fns), SyncVectorEnv(fns, autoreset_mode=AutoresetMode.SAME_STEP)
    assert_same(list(lean.reset(seed=7))[1], list(theirs.reset(seed=7))[1])
    theirs.action_space.seed(0)
    for _ in range(120):
        actions = theirs.action_space.sample()
        for ours, reference in zip(lean.step(actions), theirs.step(actions), strict=True):
            assert_same(ours, reference)


def test_what_was_returned_never_changes():
    env = GymVecEnv(cartpoles())
    obs, _ = env.reset(seed=0)
    kept, copies = [obs], [obs.clone()]
    for _ in range(60):
        obs, rewards, dones, extras = env.step(torch.ones(3, dtype=torch.long))
        values = [obs, rewards, dones, *(v for v in extras.values() if isinstance(v, torch.Tensor))]
        kept += values
        copies += [value.clone() for value in values]
    assert all(torch.equal(a, b) for a, b in zip(kept, copies, strict=True))
    assert len({tensor.data_ptr() for tensor in kept if tensor.shape == (3, 4)}) > 60


def test_stored_and_next_observations_differ():
    env = GymVecEnv(pendulums())
    stored, _ = env.reset(seed=0)
    following, *_ = env.step(torch.zeros(3, 1))
    assert not torch.equal(stored, following)


@pytest.mark.parametrize("terminates", [True, False])
def test_final_observations_are_the_true_last_ones(counter, terminates):
    env = GymVecEnv([counter(limit=3, terminates=terminates), counter(limit=4, terminates=terminates)])
    env.reset(seed=0)
    for step in range(1, 13):
        obs, _, dones, extras = env.step(torch.zeros(2, dtype=torch.long))
        assert dones.tolist() == [step % 3 == 0, step % 4 == 0]
        assert torch.equal(extras["truncated" if not terminates else "terminated"], dones)
        assert not extras["terminated" if not terminates else "truncated"].any()
        assert torch.equal(extras["time_outs"], extras["truncated"])
        for row, limit in enumerate((3, 4)):
            if dones[row]:
                assert extras["final_observation"][row, 1] == limit
                assert obs[row, 1] == 0
                assert extras["final_observation"][row, 0] != obs[row, 0]
        if not dones.any():
            assert "final_observation" not in extras


def test_a_time_limit_is_no_termination_and_keeps_the_last_state():
    env = GymVecEnv(pendulums(1, max_episode_steps=5))
    single = gym.make("Pendulum-v1", max_episode_steps=5)
    env.reset(seed=3)
    single.reset(seed=3)
    for _ in range(5):
        obs, _, dones, extras = env.step(torch.full((1, 1), 0.7))
        last, _, _, truncated, _ = single.step(np.array([0.7], np.float32))
    assert truncated
    assert dones.tolist() == extras["time_outs"].tolist() == [True]
    assert extras["terminated"].tolist() == [False]
    assert torch.equal(extras["final_observation"][0], torch.from_numpy(last))
    assert not torch.equal(extras["final_observation"], obs)


def test_types_shapes_and_device():
    env = GymVecEnv(cartpoles(), device="meta")
    obs, _ = env.reset(seed=0)
    result = env.step(torch.zeros(3, dtype=torch.long))
    assert [t.device.type for t in (obs, *result[:3], result[3]["truncated"])] == ["meta"] * 5
    env = GymVecEnv(cartpoles())
    obs, _ = env.reset(seed=0)
    _, rewards, dones, _ = env.step(torch.zeros(3, dtype=torch.long))
    assert (obs.dtype, rewards.dtype, dones.dtype) == (torch.float32, torch.float32, torch.bool)
    assert obs.shape == (3, 4)


def test_seeds_are_passed_through():
    a, b, c = (GymVecEnv(cartpoles()).reset(seed=seed)[0] for seed in (5, 5, 6))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(a[1:], c[:2])  # env i is seeded with seed + i
    assert torch.equal(a[0], torch.from_numpy(gym.make("CartPole-v1").reset(seed=5)[0]))


def test_infos_become_extras_also_in_the_last_step(counter):
    space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    env = GymVecEnv([counter(limit=2), counter(limit=3)], privileged_observation_space=space)
    obs, extras = env.reset(seed=0)
    assert extras["action_mask"].tolist() == [[True, True, True]] * 2
    torch.testing.assert_close(extras["privileged_observation"][:, :2], obs)
    for step in range(1, 7):
        obs, _, dones, extras = env.step(torch.zeros(2, dtype=torch.long))
        own = [(step - 1) % 2 + 1, (step - 1) % 3 + 1]
        assert extras["reward_components"]["total"].tolist() == own
        assert extras["reward_components"]["step"].tolist() == [1.0, 1.0]
        assert extras["log"] == {"steps": sum(own) / 2}
        assert extras["action_mask"][:, 1].tolist() == [bool(o % 2 == 0) for o in obs[:, 1]]
        torch.testing.assert_close(extras["privileged_observation"][:, :2], obs)
        if dones.any():
            final, private = extras["final_observation"], extras["final_privileged_observation"]
            torch.testing.assert_close(private[dones][:, :2], final[dones])


def test_a_promised_privileged_observation_must_come():
    space = spaces.Box(-1, 1, (3,), np.float32)
    env = GymVecEnv(cartpoles(), privileged_observation_space=space)
    with pytest.raises(ValueError, match="gave no info"):
        env.reset(seed=0)


def test_discrete_actions_count_from_zero(counter):
    env = GymVecEnv([counter(action_space=spaces.Discrete(3, start=5))] * 2)
    assert env.action_space == spaces.Discrete(3)
    env.reset(seed=0)
    env.step(torch.tensor([0, 2]))
    assert [single.received[0] for single in env.vector_env.envs] == [5, 7]


def test_multi_discrete_and_binary_actions_arrive(counter):
    env = GymVecEnv([counter(action_space=spaces.MultiDiscrete([[2, 3], [4, 5]]))] * 2)
    assert env.action_space.shape == (4,)
    env.reset(seed=0)
    env.step(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    np.testing.assert_array_equal(env.vector_env.envs[1].received[0], [[1, 2], [3, 4]])
    env = GymVecEnv([counter(action_space=spaces.MultiBinary(2))])
    env.reset(seed=0)
    env.step(torch.tensor([[0, 1]]))
    np.testing.assert_array_equal(env.vector_env.envs[0].received[0], [0, 1])


def test_integer_boxes_are_choices(counter):
    env = GymVecEnv([counter(action_space=spaces.Box(-1, 2, (2,), np.int32))] * 2)
    assert env.action_space == spaces.MultiDiscrete([4, 4])
    env.reset(seed=0)
    env.step(torch.tensor([[0, 3], [1, 2]]))
    received = [single.received[0] for single in env.vector_env.envs]
    np.testing.assert_array_equal(received, [[-1, 2], [0, 1]])
    assert received[0].dtype == np.int32
    with pytest.raises(UnsupportedSpacesError, match="Declare a Box of floats and round"):
        GymVecEnv([counter(action_space=spaces.Box(0, 10_000, (1,), np.int64))])


def test_the_former_name_for_box_actions_is_the_same_class():
    assert GymVecEnvContinuous is GymVecEnv
    assert GymVecEnv(pendulums()).action_space == spaces.Box(-2.0, 2.0, (1,))


@pytest.mark.parametrize("wrapped", [False, True])
def test_one_environment_in_several_rows_is_refused(wrapped):
    single = gym.make("CartPole-v1")
    make = (lambda: gym.wrappers.RecordEpisodeStatistics(single)) if wrapped else (lambda: single)
    with pytest.raises(SharedEnvError, match="environments 0 and 1 are the same CartPoleEnv object"):
        GymVecEnv([make] * 4)


def test_environments_stand_for_their_functions():
    envs = [gym.make("CartPole-v1") for _ in range(2)]
    assert torch.equal(GymVecEnv(envs).reset(seed=0)[0], GymVecEnv(cartpoles(2)).reset(seed=0)[0])


def test_a_batch_from_an_id():
    env = GymVecEnv.make("Pendulum-v1", num_envs=3, action_mode="scale", max_episode_steps=2)
    assert (env.num_envs, env.action_space.high.tolist()) == (3, [1.0])
    env.reset(seed=0)
    env.step(torch.zeros(3, 1))
    assert env.step(torch.zeros(3, 1))[2].all()


def test_continuous_actions_are_clipped_or_scaled_to_the_bounds(counter):
    space = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32))
    actions = torch.tensor([[-5.0, 0.5], [0.5, 99.0]])
    for mode, expected in (("clip", [[-2.0, 0.5], [0.5, 10.0]]), ("scale", [[-2.0, 7.5], [1.0, 10.0]])):
        env = GymVecEnv([counter(action_space=space)] * 2, action_mode=mode)
        env.reset(seed=0)
        before = actions.clone()
        env.step(actions)
        assert torch.equal(actions, before)
        received = [single.received[0] for single in env.vector_env.envs]
        np.testing.assert_array_equal(received, expected)
        bounds = (space.low, space.high) if mode == "clip" else ([-1, -1], [1, 1])
        np.testing.assert_array_equal((env.action_space.low, env.action_space.high), bounds)


def test_action_boxes_of_other_shapes_are_offered_as_vectors(counter):
    env = GymVecEnv([counter(action_space=spaces.Box(-1, 1, (2, 2), np.float64))])
    assert env.action_space.shape == (4,)
    env.reset(seed=0)
    env.step(torch.tensor([[0.1, 0.2, 0.3, 5.0]]))
    received = env.vector_env.envs[0].received[0]
    assert received.dtype == np.float64
    np.testing.assert_allclose(received, [[0.1, 0.2], [0.3, 1.0]], rtol=1e-6)


def test_wrong_actions_and_spaces_are_refused(counter):
    with pytest.raises(TypeError, match=r"Write GymVecEnv\(\[lambda"):
        GymVecEnv(gym.make("CartPole-v1"))
    with pytest.raises(UnsupportedSpacesError, match="must be Discrete, MultiDiscrete, MultiBinary or a Box"):
        GymVecEnv([counter(action_space=spaces.Dict({"a": spaces.Discrete(2)}))])
    with pytest.raises(UnsupportedSpacesError, match="fixed number of entries"):
        GymVecEnv([counter(observation_space=spaces.Sequence(spaces.Discrete(2)))])
    with pytest.raises(ValueError, match="Leave action_mode out"):
        GymVecEnv(cartpoles(), action_mode="scale")
    with pytest.raises(ValueError, match="finite bounds"):
        GymVecEnv([counter(action_space=spaces.Box(-np.inf, np.inf, (1,)))], action_mode="scale")
    with pytest.raises(ValueError, match="'clip' or 'scale'"):
        GymVecEnv(pendulums(), action_mode="wrap")
    with pytest.raises(ValueError, match="env_fns is empty"):
        GymVecEnv([])
    with pytest.raises(ValueError, match="'sync' or 'async'"):
        GymVecEnv(cartpoles(), backend="threads")
    discrete, continuous = GymVecEnv(cartpoles()), GymVecEnv(pendulums())
    discrete.reset(seed=0)
    continuous.reset(seed=0)
    with pytest.raises(ValueError, match="must be integers"):
        discrete.step(torch.zeros(3))
    with pytest.raises(ValueError, match="Expected actions for 3 envs"):
        discrete.step(torch.zeros(2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"must be floats of shape \[num_envs, 1\]"):
        continuous.step(torch.zeros(3))
    with pytest.raises(ValueError, match=r"envs \[1\] are NaN"):
        continuous.step(torch.tensor([[0.0], [float("nan")], [0.0]]))
    continuous.step(torch.full((3, 1), 1e30))  # large, but finite


def test_other_observations_are_flattened_and_bytes_stay_bytes():
    class Odd(gym.Env):
        observation_space = spaces.Dict({"n": spaces.Discrete(3), "x": spaces.Box(0, 1, (2,), np.float64)})
        action_space = spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return {"n": 2, "x": np.array([0.25, 0.5])}, {}

        def step(self, action):
            return {"n": 1, "x": np.array([0.0, 1.0])}, 0.0, action == 1, False, {}

    env = GymVecEnv([Odd] * 2)
    assert env.observation_space.shape == (5,)
    assert env.reset(seed=0)[0].tolist() == [[0, 0, 1, 0.25, 0.5]] * 2
    obs, _, _, extras = env.step(torch.tensor([0, 1]))
    assert obs.tolist() == [[0, 1, 0, 0, 1], [0, 0, 1, 0.25, 0.5]]
    assert extras["final_observation"][1].tolist() == [0, 1, 0, 0, 1]

    class Image(Odd):
        observation_space = spaces.Box(0, 255, (2, 2, 1), np.uint8)

        def reset(self, *, seed=None, options=None):
            return np.full((2, 2, 1), 7, np.uint8), {}

    env = GymVecEnv([Image])
    assert env.reset(seed=0)[0].dtype == torch.uint8
    assert env.observation_space.dtype == np.uint8


def test_the_parts_of_a_dict_come_back_and_pictures_are_scaled():
    space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (2, 2, 1), np.uint8),
            "gear": spaces.Discrete(3),
            "nested": spaces.Dict({"speed": spaces.Box(-1, 1, (2,), np.float64)}),
        }
    )

    class Car(gym.Env):
        observation_space, action_space = space, spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            camera = np.array([[[0], [51]], [[102], [255]]], np.uint8)
            return {"camera": camera, "gear": 1, "nested": {"speed": np.array([0.5, -0.5])}}, {}

        def step(self, action):
            return self.reset()[0], 0.0, True, False, {}

    env = GymVecEnv([Car] * 2)
    assert env.observation_space.shape == (9,)
    assert list(env.observation_space.parts) == ["camera", "gear", "nested.speed"]
    obs, _ = env.reset()
    parts = env.observation_space.split(obs)
    torch.testing.assert_close(parts["camera"][1, :, :, 0], torch.tensor([[0.0, 0.2], [0.4, 1.0]]))
    assert parts["gear"].tolist() == [[0, 1, 0]] * 2
    assert parts["nested.speed"].tolist() == [[0.5, -0.5]] * 2
    assert env.observation_space.contains(obs[0].numpy())
    final = env.step(torch.tensor([0, 1]))[3]["final_observation"]
    assert torch.equal(final, obs)


def test_success_comes_with_the_last_step_only():
    class Goal(gym.Env):
        observation_space, action_space = spaces.Box(0, 9, (1,)), spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            self.steps = 0
            return np.zeros(1, np.float32), {"is_success": True}

        def step(self, action):
            self.steps += 1
            info = {"is_success": bool(action)} if action < 2 else {}
            return np.full(1, self.steps, np.float32), 0.0, self.steps == 2, False, info

    env = GymVecEnv([Goal] * 2)
    env.reset(seed=0)
    assert "success" not in env.step(torch.tensor([1, 0]))[3]
    assert env.step(torch.tensor([1, 0]))[3]["success"].tolist() == [1.0, 0.0]
    env.step(torch.tensor([1, 0]))
    success = env.step(torch.tensor([1, 2]))[3]["success"]
    assert success[0] == 1.0
    assert success[1].isnan()


@pytest.mark.parametrize("value", [np.array([1.0, 3.0]), torch.tensor(2.0), 2])
def test_what_an_env_logs_may_be_an_array(counter, value):
    class Logging(gym.Wrapper):
        def step(self, action):
            *rest, info = super().step(action)
            return *rest, info | {"log": {"height": value}}

    env = GymVecEnv([lambda: Logging(counter(limit=3)())] * 2)
    env.reset(seed=0)
    for _ in range(3):
        assert env.step(torch.zeros(2, dtype=torch.long))[3]["log"] == {"height": 2.0}


def test_what_is_no_number_is_named(counter):
    class Logging(gym.Wrapper):
        def step(self, action):
            *rest, info = super().step(action)
            return *rest, info | {"log": {"height": "tall"}}

    env = GymVecEnv([lambda: Logging(counter(limit=3)())] * 2)
    env.reset(seed=0)
    with pytest.raises(StepFormatError, match=r"'height'.*tall"):
        env.step(torch.zeros(2, dtype=torch.long))


def test_async_gives_what_sync_gives(counter, roll):
    fns = [counter(limit=3), counter(limit=4)]
    sync, parallel = GymVecEnv(fns), GymVecEnv(fns, backend="async")
    assert isinstance(parallel.vector_env, AsyncVectorEnv)
    assert torch.equal(sync.reset(seed=1)[0], parallel.reset(seed=1)[0])
    assert all(torch.equal(a, b) for a, b in zip(roll(sync, 20, 0), roll(parallel, 20, 0), strict=True))
    parallel.close()


def test_a_copy_is_independent_and_workers_refuse_to_be_copied(roll):
    env = GymVecEnv(cartpoles())
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    first = roll(twin, 40, 0)
    assert all(torch.equal(a, b) for a, b in zip(first, roll(env, 40, 0), strict=True))
    parallel = GymVecEnv(cartpoles(1), backend="async")
    parallel.reset(seed=0)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(parallel)
    parallel.step(torch.zeros(1, dtype=torch.long))  # the original is unharmed
    parallel.close()


def test_an_env_that_never_resets_itself_is_reset_in_the_same_step(counter, roll):
    fns = [counter(limit=3), counter(limit=4)]
    sync = GymVecEnv(fns)
    manual = GymVecEnv.from_vector_env(SyncVectorEnv(fns, autoreset_mode=AutoresetMode.DISABLED))
    assert torch.equal(sync.reset(seed=1)[0], manual.reset(seed=1)[0])
    assert all(torch.equal(a, b) for a, b in zip(roll(sync, 20, 0), roll(manual, 20, 0), strict=True))
    space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    envs = SyncVectorEnv(fns, autoreset_mode=AutoresetMode.DISABLED)
    env = GymVecEnv.from_vector_env(envs, privileged_observation_space=space)
    env.reset(seed=0)
    for _ in range(12):
        obs, _, dones, extras = env.step(torch.zeros(2, dtype=torch.long))
        torch.testing.assert_close(extras["privileged_observation"][:, :2], obs)
        assert (extras["action_mask"][:, 1] == (obs[:, 1] % 2 == 0)).all()
        if dones.any():
            private = extras["final_privileged_observation"]
            torch.testing.assert_close(private[dones][:, :2], extras["final_observation"][dones])


def test_reset_steps_of_a_next_step_env_are_masked(counter):
    fns = [counter(limit=3), counter(limit=5)]
    env = GymVecEnv.from_vector_env(SyncVectorEnv(fns, autoreset_mode=AutoresetMode.NEXT_STEP))
    env.reset(seed=0)
    previous = torch.zeros(2, dtype=torch.bool)
    for _ in range(20):
        obs, rewards, dones, extras = env.step(torch.zeros(2, dtype=torch.long))
        assert torch.equal(extras["ignore"], previous)
        assert (rewards[extras["ignore"]] == 0).all()
        assert (obs[extras["ignore"], 1] == 0).all()  # the first observation of the episode
        assert (rewards[~extras["ignore"]] == 0.5 + obs[~extras["ignore"], 1]).all()
        if dones.any():
            assert torch.equal(extras["final_observation"][dones], obs[dones])
        previous = dones


def test_a_native_batch_is_wrapped_and_masked():
    native = gym.make_vec("CartPole-v1", num_envs=4, vectorization_mode="vector_entry_point")
    assert autoreset_mode_of(native) is AutoresetMode.NEXT_STEP
    env = GymVecEnv.from_vector_env(native)
    env.reset(seed=0)
    seen = 0
    for _ in range(40):
        _, rewards, _, extras = env.step(torch.ones(4, dtype=torch.long))
        seen += int(extras["ignore"].sum())
        assert torch.equal(rewards == 0, extras["ignore"])
    assert seen > 4


def test_an_env_that_hides_its_autoreset_mode_is_refused():
    native = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    native.metadata = {}
    with pytest.raises(ValueError, match="autoreset_mode"):
        GymVecEnv.from_vector_env(native)


def test_buffers_of_a_native_env_are_copied():
    class Reusing(gym.vector.VectorEnv):
        def __init__(self):
            self.num_envs, self.metadata = 2, {"autoreset_mode": AutoresetMode.SAME_STEP}
            self.single_observation_space = spaces.Box(-1, 99, (1,), np.float32)
            self.observation_space = spaces.Box(-1, 99, (2, 1), np.float32)
            self.single_action_space, self.action_space = spaces.Discrete(2), spaces.MultiDiscrete([2, 2])
            self.buffer, self.flags = np.zeros((2, 1), np.float32), np.zeros(2, np.bool_)
            self.rewards = np.zeros(2, np.float32)

        def reset(self, *, seed=None, options=None):
            return self.buffer, {}

        def step(self, actions):
            self.buffer += 1
            self.rewards += 1
            self.flags[:] = False
            return self.buffer, self.rewards, self.flags, self.flags, {}

    env = GymVecEnv.from_vector_env(Reusing())
    first, _ = env.reset()
    second, rewards, dones, extras = env.step(torch.zeros(2, dtype=torch.long))
    env.step(torch.zeros(2, dtype=torch.long))
    env.vector_env.flags[:] = True
    assert first.tolist() == [[0.0], [0.0]]
    assert second.tolist() == [[1.0], [1.0]]
    assert rewards.tolist() == [1.0, 1.0]
    assert not (dones | extras["terminated"] | extras["truncated"]).any()

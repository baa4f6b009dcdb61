import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from apexrl.envs import FrameStack, GymVecEnv, check_env
from apexrl.spaces import PackedBox


def counts(obs):
    """The step counters in a stack of `CounterEnv` observations (start, steps)."""
    return obs[:, 1::2].long().tolist()


def test_the_oldest_comes_first_and_episodes_do_not_mix(counter):
    env = FrameStack(GymVecEnv([counter(limit=3), counter(limit=4)]), num_frames=3)
    assert env.observation_space.shape == (6,)
    obs, _ = env.reset(seed=0)
    assert counts(obs) == [[0, 0, 0]] * 2
    expected = [
        ([[0, 0, 1], [0, 0, 1]], None),
        ([[0, 1, 2], [0, 1, 2]], None),
        ([[0, 0, 0], [1, 2, 3]], [1, 2, 3]),  # the first environment starts anew
        ([[0, 0, 1], [0, 0, 0]], [2, 3, 4]),
    ]
    for stack, final in expected:
        obs, _, dones, extras = env.step(torch.zeros(2, dtype=torch.long))
        assert counts(obs) == stack
        if final is not None:
            assert counts(extras["final_observation"][dones]) == [final]


def test_next_step_resets_start_anew_one_step_later(counter):
    batch = SyncVectorEnv([counter(limit=2)], autoreset_mode=AutoresetMode.NEXT_STEP)
    env = FrameStack(GymVecEnv.from_vector_env(batch), num_frames=2)
    env.reset(seed=0)
    seen = [counts(env.step(torch.zeros(1, dtype=torch.long))[0])[0] for _ in range(4)]
    assert seen == [[0, 1], [1, 2], [0, 0], [0, 1]]


@pytest.mark.parametrize(("shape", "stacked"), [((6, 5, 3), (6, 5, 12)), ((3, 6, 5), (12, 6, 5)), ((6, 5), (6, 20))])
def test_pictures_are_stacked_along_their_channels(shape, stacked):
    class Film(gym.Env):
        observation_space, action_space = spaces.Box(0, 255, shape, np.uint8), spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            self.frame = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
            return self.frame, {}

        def step(self, action):
            self.frame = self.frame + np.uint8(1)
            return self.frame, 0.0, False, False, {}

    env = FrameStack(GymVecEnv([Film] * 2), num_frames=4)
    obs, _ = env.reset(seed=0)
    for _ in range(5):
        obs, *_ = env.step(torch.zeros(2, dtype=torch.long))
    assert obs.dtype == torch.uint8
    assert env.observation_space.shape == obs.shape[1:] == stacked
    frames = [torch.from_numpy(np.arange(np.prod(shape), dtype=np.uint8).reshape(shape) + n) for n in (2, 3, 4, 5)]
    axis = 0 if shape == (3, 6, 5) else -1
    assert torch.equal(obs[1], torch.cat(frames, axis))


def test_parts_of_a_dict_are_stacked_by_themselves():
    class Car(gym.Env):
        observation_space = spaces.Dict(
            {"camera": spaces.Box(0, 255, (2, 2, 1), np.uint8), "x": spaces.Box(-9, 9, (2,))}
        )
        action_space = spaces.Discrete(2)

        def _obs(self):
            return {"camera": np.full((2, 2, 1), 51 * self.n, np.uint8), "x": np.array([self.n, -self.n], np.float32)}

        def reset(self, *, seed=None, options=None):
            self.n = 0
            return self._obs(), {}

        def step(self, action):
            self.n += 1
            return self._obs(), 0.0, False, False, {}

    env = FrameStack(GymVecEnv([Car]), num_frames=2)
    assert isinstance(env.observation_space, PackedBox)
    env.reset(seed=0)
    env.step(torch.zeros(1, dtype=torch.long))
    obs, *_ = env.step(torch.zeros(1, dtype=torch.long))
    parts = env.observation_space.split(obs)
    assert parts["x"].tolist() == [[1, -1, 2, -2]]
    torch.testing.assert_close(parts["camera"][0, 1, 1], torch.tensor([0.2, 0.4]))


def test_the_contract_holds_state_included():
    report = check_env(FrameStack(GymVecEnv.make("CartPole-v1", 3), 4), num_steps=60)
    assert report.problems == ()


def test_one_frame_is_the_environment_itself(roll):
    plain, stacked = GymVecEnv.make("CartPole-v1", 2), FrameStack(GymVecEnv.make("CartPole-v1", 2), 1)
    assert torch.equal(plain.reset(seed=1)[0], stacked.reset(seed=1)[0])
    assert all(torch.equal(a, b) for a, b in zip(roll(plain, 40, 0), roll(stacked, 40, 0), strict=True))


def test_no_frames_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        FrameStack(GymVecEnv.make("CartPole-v1", 1), 0)

import numpy as np
import pytest
import torch

from hmasd.envs.alice_and_bob import AGENT, GOAL, GOALS, INSIDE, KEY, KEYS, LATCHED, SIDE, WALL, AliceAndBobEnv

UP, DOWN, LEFT, RIGHT, STAY = range(5)


def place(env, *cells):
    """Put the agents of every board on the given cells."""
    env._cells[:] = cells


def stay(env):
    return env.step(torch.full((env.num_envs, 2), STAY))


def test_starts_are_distinct_inside_cells_and_all_pairs_occur():
    env = AliceAndBobEnv(20_000)
    env.reset(seed=1)
    cells = env.cells
    assert set(np.unique(cells)) == set(INSIDE.tolist())
    assert (cells[:, 0] != cells[:, 1]).all()
    # 64 · 63 ordered pairs; 20,000 draws meet about 99.3 % of them
    assert len(np.unique(cells[:, 0] * 100 + cells[:, 1])) > 0.98 * 64 * 63


def test_moves_are_blocked_by_the_wall_and_agents_pass_through_each_other():
    env = AliceAndBobEnv(1)
    env.reset(seed=0)
    place(env, KEYS[0], KEYS[0] + 1)
    env.step(torch.tensor([[UP, LEFT]]))
    assert env.cells.tolist() == [[KEYS[0], KEYS[0]]]
    env.step(torch.tensor([[RIGHT, DOWN]]))
    assert env.cells.tolist() == [[KEYS[0] + 1, KEYS[0] + SIDE]]


@pytest.mark.parametrize("swap", [False, True])
def test_a_goal_latches_only_with_its_own_key_and_success_pays_one_and_ends(swap):
    env = AliceAndBobEnv(1)
    env.reset(seed=0)

    def pair(key, goal):
        return (goal, key) if swap else (key, goal)

    place(env, *pair(KEYS[0], GOALS[1]))
    _, rewards, dones, _ = stay(env)
    assert not env.latched.any()
    assert rewards.sum() == 0
    place(env, *pair(KEYS[0], GOALS[0]))
    _, rewards, dones, _ = stay(env)
    assert env.latched.tolist() == [[True, False]]
    assert rewards.sum() == 0
    assert not dones
    place(env, *pair(KEYS[1], GOALS[1]))
    _, rewards, dones, extras = stay(env)
    assert rewards.tolist() == [[1.0, 1.0]]
    assert dones
    assert extras["terminated"]
    assert not extras["truncated"]
    assert not env.latched.any(), "the board was reset in the same step"


def test_one_agent_alone_cannot_latch():
    env = AliceAndBobEnv(1)
    env.reset(seed=0)
    place(env, GOALS[0], INSIDE[20])
    stay(env)
    assert not env.latched.any()


def test_the_time_limit_truncates_and_gives_the_true_final_observation():
    env = AliceAndBobEnv(1, max_steps=3)
    env.reset(seed=0)
    place(env, INSIDE[0], INSIDE[1])
    stay(env)
    stay(env)
    observations, _, dones, extras = stay(env)
    assert dones
    assert extras["truncated"]
    assert not extras["terminated"]
    assert extras["final_observation"][0, 0, 9:].tolist() == [-1.0, -1.0]
    assert not torch.equal(extras["final_state"], extras["state"])
    assert observations.shape == (1, 2, 11)


def test_observation_and_state_show_the_board():
    env = AliceAndBobEnv(1)
    env.reset(seed=0)
    place(env, KEYS[1], GOALS[1])
    observations, _, _, extras = stay(env)
    state = extras["state"][0]
    assert state[KEYS[1]] == AGENT[0]
    assert state[GOALS[1]] == AGENT[1]
    assert state[KEYS[0]] == np.float32(KEY)
    assert state[GOALS[0]] == np.float32(GOAL)
    assert (state == WALL).sum() == 36
    # Bob in the bottom right corner: wall on the right and below, himself in the middle
    window = observations[0, 1, :9].reshape(3, 3)
    assert window[:, 2].eq(WALL).all()
    assert window[2].eq(WALL).all()
    assert window[1, 1] == AGENT[1]
    assert observations[0, 1, 9:].tolist() == [1.0, 1.0]
    place(env, INSIDE[30], INSIDE[31])
    _, _, _, extras = stay(env)
    assert extras["state"][0, GOALS[1]] == np.float32(LATCHED)


def test_spaces_contain_what_is_returned_and_nothing_returned_changes_later():
    env = AliceAndBobEnv(4)
    observations, extras = env.reset(seed=3)
    kept = observations.clone(), extras["state"].clone()
    for _ in range(5):
        env.step(torch.randint(0, 5, (4, 2)))
    assert torch.equal(kept[0], observations)
    assert torch.equal(kept[1], extras["state"])
    assert env.observation_space.contains(observations[0, 0].numpy())
    assert env.state_space.contains(extras["state"][0].numpy())


def test_a_captured_state_resumes_identically():
    env, other = AliceAndBobEnv(8, max_steps=4), AliceAndBobEnv(8, max_steps=4)
    env.reset(seed=5)
    generator = torch.Generator().manual_seed(0)
    actions = [torch.randint(0, 5, (8, 2), generator=generator) for _ in range(20)]
    for action in actions[:7]:
        env.step(action)
    other.load_state_dict(env.state_dict())
    for action in actions[7:]:
        ours, theirs = env.step(action), other.step(action)
        assert torch.equal(ours[0], theirs[0])
        assert torch.equal(ours[3]["state"], theirs[3]["state"])


def test_a_state_of_another_batch_size_is_refused():
    with pytest.raises(ValueError, match="4 boards and this batch has 8"):
        AliceAndBobEnv(8).load_state_dict(AliceAndBobEnv(4).state_dict())


def test_a_random_policy_seldom_wins():
    env = AliceAndBobEnv(4096)
    env.reset(seed=0)
    generator = torch.Generator().manual_seed(1)
    wins = episodes = 0
    for _ in range(1000):
        _, _, dones, extras = env.step(torch.randint(0, 5, (4096, 2), generator=generator))
        wins, episodes = wins + int(extras["terminated"].sum()), episodes + int(dones.sum())
    assert (wins, episodes) == (4, 40_960), "docs/hmasd/tasks.md states these numbers"

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import parallel_api_test, parallel_seed_test

from apexrl.runs.errors import ConfigurationError
from hmasd.envs.pettingzoo import uav_coverage, uav_relay
from hmasd.envs.uav.env import UAVEnv
from hmasd.envs.uav.radio import (
    RadioConfig,
    air_to_ground_gain,
    associate,
    free_space_gain,
    hop_matrix,
    hops_to_station,
    sinr,
)
from hmasd.envs.uav.world import UAVConfig, UAVWorlds

RADIO = RadioConfig()


def decibels(ratio):
    return 10 * math.log10(ratio)


def test_free_space_loss_at_100_m_and_2_4_ghz_is_80_decibels():
    assert decibels(free_space_gain(np.array(100.0), 2.4e9)) == pytest.approx(-80.05, abs=0.01)


def test_a_user_below_has_line_of_sight_and_a_far_user_has_not():
    uavs = np.array([[[0.0, 0.0, 100.0]]])
    users = np.array([[[0.0, 0.0], [5000.0, 0.0]]])
    gain = air_to_ground_gain(uavs, users, RADIO)[0, 0]
    assert decibels(gain[0]) == pytest.approx(-80.05 - RADIO.loss_los_db, abs=0.05)
    distance = math.hypot(5000.0, 100.0)
    excess = decibels(free_space_gain(np.array(distance), 2.4e9)) - decibels(gain[1])
    assert 15.0 < excess <= RADIO.loss_nlos_db


def test_interference_adds_up_in_the_denominator():
    gain = np.array([[[1e-8], [2e-8], [3e-8]]])
    power, noise = 100.0, 10 ** (-10.4)
    expected = [power * 1e-8 / (power * 5e-8 + noise), power * 2e-8 / (power * 4e-8 + noise)]
    assert sinr(gain, RADIO)[0, :2, 0] == pytest.approx(expected)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 12), st.integers(1, 12), st.booleans())
def test_association_serves_each_user_once_and_no_uav_beyond_its_capacity(seed, n_uavs, n_users, capacity, ties):
    ratio = np.random.default_rng(seed).exponential(1.0, (3, n_uavs, n_users))
    if ties:
        ratio = np.ceil(ratio * 2) / 2  # so coarse that several users receive a UAV equally well
    served = associate(ratio, 0.5, capacity)
    assert (served.sum(axis=1) <= 1).all()
    assert (served.sum(axis=2) <= capacity).all()
    assert (ratio[served] >= 0.5).all()
    # whoever is left out although it receives its best UAV well enough was beaten by `capacity` better users
    asking = (ratio.argmax(axis=1)[:, None] == np.arange(n_uavs)[:, None]) & (ratio >= 0.5)
    for world, uav in np.ndindex(3, n_uavs):
        left = asking[world, uav] & ~served[world, uav]
        if left.any():
            assert served[world, uav].sum() == capacity
            assert ratio[world, uav][left].max() <= ratio[world, uav][served[world, uav]].min()


def test_users_in_one_corner_do_not_overload_their_uav():
    worlds = UAVWorlds.empty(1, UAVConfig(n_uavs=1, n_users=12, capacity=10))
    worlds.uavs[:] = [100.0, 100.0, 100.0]
    assert worlds.links().served.sum() == 10, "all twelve stand at the origin and receive it equally well"


def test_a_far_uav_reaches_the_station_only_over_a_relay():
    station, relay, far = [0.0, 0.0, 25.0], [250.0, 0.0, 50.0], [500.0, 0.0, 50.0]
    assert hops_to_station(hop_matrix(np.array([[station, far]]), RADIO)).tolist() == [[0]]
    assert hops_to_station(hop_matrix(np.array([[station, far, relay]]), RADIO)).tolist() == [[2, 1]]


def test_users_of_an_unconnected_uav_are_not_served_in_the_relay_scenario():
    worlds = UAVWorlds.empty(1, UAVConfig(scenario="relay", n_uavs=2, n_users=4))
    worlds.users[:] = [900.0, 500.0]
    worlds.uavs[:] = [[900.0, 500.0, 50.0], [900.0, 900.0, 50.0]]
    alone = worlds.links()
    assert not alone.served.any()
    worlds.config = UAVConfig(scenario="coverage", n_uavs=2, n_users=4)
    assert worlds.links().served.any(), "the same position serves when no backhaul is asked for"


@pytest.mark.parametrize("name", [field.name for field in fields(RadioConfig)])
def test_every_constant_of_the_radio_has_an_effect(name):
    def links(radio):
        worlds = UAVWorlds.empty(64, UAVConfig(scenario="relay"))
        worlds.reset(np.arange(64), np.random.default_rng(0))
        worlds.radio = radio
        return np.concatenate([part.ravel() for part in worlds.links()])

    changed = replace(RADIO, **{name: 1.5 * getattr(RADIO, name) + 1.0})
    assert not np.array_equal(links(changed), links(RADIO))


def test_rewards_follow_the_formulas():
    worlds = UAVWorlds.empty(1, UAVConfig(scenario="coverage"))
    parts = {"coverage": np.array([0.5]), "quality": np.array([0.2]), "height": np.array([1.0])}
    assert worlds.reward(parts)[0] == pytest.approx(0.7 * 0.5 + 0.3 * 0.2 - 0.1)
    relay = UAVWorlds.empty(1, UAVConfig(scenario="relay"))
    parts = {
        name: np.array([value])
        for name, value in zip(
            ("coverage", "quality", "connectivity", "throughput", "hops"), (0.5, 0.4, 0.8, 0.3, 0.2), strict=True
        )
    }
    assert relay.reward(parts)[0] == pytest.approx(0.2 + 0.08 + 0.16 + 0.06 - 0.02)


@pytest.mark.parametrize("make", [uav_coverage, uav_relay])
def test_pettingzoo_api(make):
    parallel_api_test(make(max_steps=20), num_cycles=60)
    parallel_seed_test(lambda: make(max_steps=20))


@pytest.mark.parametrize("scenario", ["coverage", "relay"])
def test_the_batched_form_plays_the_same_world_as_pettingzoo(scenario):
    config = UAVConfig(scenario=scenario, max_steps=6)
    batch = UAVEnv(1, config=config)
    single = {"coverage": uav_coverage, "relay": uav_relay}[scenario](max_steps=6)
    observations, _ = batch.reset(seed=4)
    named, _ = single.reset(seed=4)
    generator = torch.Generator().manual_seed(0)
    for step in range(6):
        stacked = np.stack([named[agent] for agent in single.possible_agents])
        assert np.array_equal(observations[0].numpy(), stacked)
        actions = torch.rand(1, 5, 3, generator=generator) * 2 - 1
        observations, rewards, dones, extras = batch.step(actions)
        named, rewarded, _, truncated, _ = single.step(
            {agent: actions[0, i].numpy() for i, agent in enumerate(single.possible_agents)}
        )
        assert rewards[0, 0].item() == pytest.approx(rewarded["uav_0"], abs=1e-6)
        assert bool(dones) == truncated["uav_0"] == (step == 5)
    assert np.array_equal(extras["final_state"][0].numpy(), single.state())


@pytest.mark.parametrize("scenario", ["coverage", "relay"])
def test_observations_stay_in_their_space_and_uavs_move(scenario):
    env = UAVEnv(4, config=UAVConfig(scenario=scenario, max_steps=30))
    observations, extras = env.reset(seed=0)
    before = env.worlds.uavs.copy()
    for _ in range(35):
        observations, _, _, extras = env.step(torch.rand(4, 5, 3) * 4 - 2)
        assert all(env.observation_space.contains(row) for row in observations.flatten(0, 1).numpy())
        assert all(env.state_space.contains(row) for row in extras["state"].numpy())
    assert np.abs(env.worlds.uavs - before).max() > 30.0
    assert (env.worlds.uavs[..., 2] >= 50.0).all()
    assert (env.worlds.uavs[..., 2] <= 150.0).all()


def test_a_step_without_an_action_or_after_the_end_says_so():
    env = uav_coverage(n_uavs=2, max_steps=1)
    with pytest.raises(ValueError, match=r"the episode is over: call reset\(\)"):
        env.step({})
    env.reset(seed=0)
    with pytest.raises(ValueError, match="no action for uav_1"):
        env.step({"uav_0": env.action_space("uav_0").sample()})


def test_a_captured_state_resumes_identically():
    config = UAVConfig(scenario="relay", max_steps=5)
    env, other = UAVEnv(3, config=config), UAVEnv(3, config=config)
    env.reset(seed=5)
    actions = [torch.rand(3, 5, 3) * 2 - 1 for _ in range(12)]
    for action in actions[:4]:
        env.step(action)
    other.load_state_dict(env.state_dict())
    for action in actions[4:]:
        assert torch.equal(env.step(action)[0], other.step(action)[0])


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"n_uavs": 0}, "n_uavs: got 0; it should be greater than or equal to 1"),
        ({"n_users": 0}, "n_users: got 0"),
        ({"side": 0}, "side: got 0; it should be greater than 0"),
        ({"side": math.inf}, "side: got inf"),
        ({"max_steps": 0}, "max_steps: got 0"),
        ({"hotspots": -1}, "hotspots: got -1"),
        ({"map_cells": 0}, "map_cells: got 0"),
        ({"min_height": 150.0}, "min_height=150.0 must be below max_height=150.0"),
    ],
)
def test_worlds_that_cannot_be_are_refused(rules, words):
    with pytest.raises(ConfigurationError, match=words):
        UAVConfig(**rules)


def test_a_batch_of_no_worlds_is_refused():
    with pytest.raises(ValueError, match="num_envs=0 must be at least 1"):
        UAVEnv(0)


@given(
    scenario=st.sampled_from(["coverage", "relay"]),
    counts=st.tuples(*[st.integers(1, 3)] * 5),
    hotspots=st.integers(0, 2),
    low=st.floats(0.0, 50.0),
)
@settings(max_examples=25, deadline=None)
def test_every_world_that_is_accepted_can_be_played(scenario, counts, hotspots, low):
    names = ("n_uavs", "n_users", "capacity", "map_cells", "max_steps")
    rules = dict(zip(names, counts, strict=True)) | {"hotspots": hotspots, "min_height": low, "max_height": low + 1.0}
    env = UAVEnv(2, config=UAVConfig(scenario=scenario, **rules))
    env.reset(seed=0)
    for _ in range(4):
        observations, rewards, _, extras = env.step(torch.ones(2, env.num_agents, 3))
        assert observations.isfinite().all()
        assert rewards.isfinite().all()
        assert extras["state"].isfinite().all()

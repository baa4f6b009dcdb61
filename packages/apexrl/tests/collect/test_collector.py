from functools import partial

import gymnasium as gym
import psutil
import pytest
import torch

from apexrl.algorithms.actor_critic import PolicySnapshot
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.collect.collector import ExecutorGroups
from apexrl.collect.env_group import InlineGroups, consecutive_ranges
from apexrl.envs.gymnasium.wrapper import GymVecEnv
from apexrl.execution import make_executor
from apexrl.models import GRUCritic, GRUDiscreteActor
from apexrl.storage.rollout import MixedVersionsError, RolloutStorage

MAKE_CARTPOLE = partial(gym.make, "CartPole-v1")
MAKE_GROUPS = [partial(GymVecEnv, [MAKE_CARTPOLE] * 2)] * 3


def batches(groups, agent, rollouts=2):
    """Copies of everything stored in several rollouts, with an update's worth of change in between."""
    storage, seen = RolloutStorage(16, groups.num_envs), []
    with torch.no_grad():
        for version in range(rollouts):
            storage.fill(version, groups.collect(PolicySnapshot(version, agent.policy), storage.num_steps, 8))
            seen.append({name: values.clone() for name, values in (storage.steps | storage.borders).items()})
            for parameter in agent.policy.parameters():
                parameter.mul_(1.01)
    return seen


def make_agent(recurrent=False):
    networks = {"actor_class": GRUDiscreteActor, "critic_class": GRUCritic} if recurrent else {}
    return PPO(MAKE_GROUPS[0](), PPOConfig(num_steps=16), **networks)


def assert_same(first, second):
    for one, other in zip(first, second, strict=True):
        assert one.keys() == other.keys()
        for name, values in one.items():
            assert torch.equal(values, other[name]), name


def inline(seed=5, recurrent=False, rollouts=2):
    return batches(InlineGroups([make() for make in MAKE_GROUPS], seed), make_agent(recurrent), rollouts)


@pytest.mark.parametrize(("engine", "workers"), [("inline", 1), ("processes", 2), ("ray", 2)])
def test_every_engine_gives_identical_batches(engine, workers):
    if engine == "ray":
        pytest.importorskip("ray")
    with make_executor(engine, workers=workers) as executor:
        for recurrent in (True,) if engine == "ray" else (False, True):  # Ray takes long to start its workers
            groups = ExecutorGroups(executor, MAKE_GROUPS, [2] * 3, seed=5)
            assert_same(inline(recurrent=recurrent), batches(groups, make_agent(recurrent)))
            groups.close()


def test_groups_differ_from_each_other_and_from_other_seeds():
    first, second = (inline(seed, rollouts=1)[0]["observations"] for seed in (5, 6))
    assert len({tuple(first[0, env].tolist()) for env in range(6)}) == 6
    assert not torch.equal(first, second)


def test_a_stale_group_is_noticed(make_env):
    agent = PPO(make_env(), PPOConfig(num_steps=4))
    groups = InlineGroups([make_env()], seed=0)
    storage = RolloutStorage(4, 4)
    fresh = groups.collect

    def stale(snapshot, num_steps, sequence_length):
        return fresh(PolicySnapshot(snapshot.version - 1, snapshot.policy), num_steps, sequence_length)

    groups.collect = stale
    with pytest.raises(MixedVersionsError, match="version 1, but this rollout belongs to version 2"):
        storage.fill(2, groups.collect(PolicySnapshot(2, agent.policy), storage.num_steps, 1))


def test_a_killed_worker_does_not_change_the_batch():
    undisturbed = inline()
    before = set(psutil.Process().children())
    with make_executor("processes", workers=2) as executor:
        groups = ExecutorGroups(executor, MAKE_GROUPS, [2] * 3, seed=5)
        seen = batches(groups, agent := make_agent(), 1)
        victim = (set(psutil.Process().children()) - before).pop()
        victim.kill()
        victim.wait(10)
        storage = RolloutStorage(16, 6)
        with torch.no_grad():
            storage.fill(1, groups.collect(PolicySnapshot(1, agent.policy), storage.num_steps, 8))
        seen.append(dict(storage.steps | storage.borders))
        assert_same(undisturbed, seen)


def test_ranges_follow_each_other():
    assert consecutive_ranges([2, 3, 1]) == [range(2), range(2, 5), range(5, 6)]

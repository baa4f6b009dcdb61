"""Worlds in lockstep are the worlds that our agent plays alone."""

import pytest

from litaagent_std.hrl_xf.online.lockstep import Lockstep
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.policy.layers import LayerSet
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec

HEURISTIC = AgentSpec("litaagent_std.agents.hrl.LitaAgentHRL", {"l2": "heuristic"})
PLANS = [
    WorldPlan(seed=training_seed(9, world), days=(5 + world,), levels=levels, seats=1 + world % 2)
    for world, levels in enumerate((2, 3, 4, 2, 3))
]


@pytest.fixture(scope="module")
def alone():
    """Scores of our seats, the shipped agent playing."""
    scores = []
    for plan in PLANS:
        training_world = draw_world(plan)
        world = FastWorld(training_world.with_ours(HEURISTIC), defaults="native")
        world.run()
        every = list(world.scores().values())
        scores.append([every[seat] for seat in training_world.seats])
    return scores


def scores_of(worlds):
    return [[world.score(seat.seat) for seat in world.ours] for world in worlds]


def test_worlds_in_lockstep_are_those_of_the_heuristic_agent(alone):
    lockstep = Lockstep(lambda seats: LayerSet())
    worlds = lockstep.add([draw_world(plan) for plan in PLANS])
    lockstep.run()
    assert scores_of(worlds) == alone
    assert not any(world.errors for world in worlds)


def test_worlds_may_join_later(alone):
    lockstep = Lockstep(lambda seats: LayerSet())
    worlds = lockstep.add([draw_world(plan) for plan in PLANS[:2]])
    for _ in range(5):
        lockstep.decide(lockstep.waiting)
    worlds += lockstep.add([draw_world(plan) for plan in PLANS[2:]])
    lockstep.run()
    assert scores_of(worlds) == alone

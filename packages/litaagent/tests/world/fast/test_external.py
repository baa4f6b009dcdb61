"""External seats: a world whose decisions are made outside is the same as one whose agents make them."""

import pytest

from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.fast.external import external_seat
from litaagent_std.world.reproducible.streams import active
from litaagent_std.world.scml.trace import Trace, first_difference
from litaagent_std.world.setup import AgentSpec, official_setup


def drive(world, driven_agents):
    """Runs a world with driven_agents' strategy in every external seat."""
    kinds = []
    outside = active()
    play = world.play()
    decision = next(play, None)
    while decision is not None:
        assert active() is outside
        kinds.append(decision.kind)
        if decision.kind == "first_proposals":
            reply = driven_agents.first_offers(decision.partners, decision.awi)
        else:
            reply = driven_agents.responses(decision.offers, decision.states, decision.awi)
        try:
            decision = play.send(reply)
        except StopIteration:
            decision = None
    return kinds


@pytest.mark.parametrize("seats", [(0,), (1, 5)])
def test_an_external_seat_plays_as_an_agent_does(driven_agents, seats):
    setup = official_setup(3, n_days=6, n_levels=2)
    inside, outside = Trace(), Trace()
    agent = AgentSpec("driven_agents.ExampleAgent")
    FastWorld(setup.with_agents(dict.fromkeys(seats, agent)), [inside]).run()
    world = FastWorld(setup.with_agents({seat: external_seat(seat) for seat in seats}), [outside])
    kinds = drive(world, driven_agents)
    assert set(kinds) == {"first_proposals", "counter_all"}
    # the only difference is the name of the class in the first event
    assert inside.fingerprints[1:] == outside.fingerprints[1:]
    assert first_difference(inside, outside) == 0


def test_a_world_with_external_seats_cannot_run_by_itself():
    world = FastWorld(official_setup(3, n_days=4, n_levels=2).with_agents({0: external_seat(0)}))
    with pytest.raises(RuntimeError, match=r"has to decide .*play\(\)"):
        world.run()


def test_a_reply_must_be_a_mapping():
    world = FastWorld(official_setup(3, n_days=4, n_levels=2).with_agents({0: external_seat(0)}))
    play = world.play()
    next(play)
    with pytest.raises(TypeError, match="must map partners"):
        play.send(None)


def test_closing_an_unfinished_world_restores_the_stream():
    outside = active()
    play = FastWorld(official_setup(3, n_days=4, n_levels=2).with_agents({0: external_seat(0)})).play()
    next(play)
    play.close()
    assert active() is outside

import importlib.util
import sys
from pathlib import Path

import pytest

from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.fast.external import external_seat
from litaagent_std.world.reproducible.streams import active
from litaagent_std.world.scml.trace import Trace, first_difference
from litaagent_std.world.setup import AgentSpec, official_setup


@pytest.fixture(scope="module")
def driven():
    """The module beside this file, importable by name so that a seat can name its agent."""
    if "driven_agents" not in sys.modules:
        path = Path(__file__).with_name("driven_agents.py")
        spec = importlib.util.spec_from_file_location("driven_agents", path)
        sys.modules["driven_agents"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["driven_agents"])
    return sys.modules["driven_agents"]


def drive(world, driven):
    """Plays a world with driven_agents' strategy in every seat that asks."""
    kinds = []
    outside = active()
    play = world.play()
    decision = next(play, None)
    while decision is not None:
        assert active() is outside
        kinds.append(decision.kind)
        if decision.kind == "first_proposals":
            reply = driven.first_offers(decision.partners, decision.awi)
        else:
            reply = driven.answers(decision.offers, decision.states, decision.awi)
        try:
            decision = play.send(reply)
        except StopIteration:
            decision = None
    return kinds


@pytest.mark.parametrize("seats", [(0,), (1, 5)])
def test_driving_from_outside_is_playing_inside(driven, seats):
    setup = official_setup(3, n_days=6, n_levels=2)
    inside, outside = Trace(), Trace()
    agent = AgentSpec("driven_agents.ExampleAgent")
    FastWorld(setup.with_agents(dict.fromkeys(seats, agent)), [inside]).run()
    world = FastWorld(setup.with_agents({seat: external_seat(seat) for seat in seats}), [outside])
    kinds = drive(world, driven)
    assert set(kinds) == {"first_proposals", "counter_all"}
    # the only difference is the name of the class in the first event
    assert inside.prints[1:] == outside.prints[1:]
    assert first_difference(inside, outside) == 0


def test_a_driven_world_cannot_run_by_itself():
    world = FastWorld(official_setup(3, n_days=4, n_levels=2).with_agents({0: external_seat(0)}))
    with pytest.raises(RuntimeError, match=r"has to decide .*play\(\)"):
        world.run()


def test_a_reply_must_be_a_mapping():
    world = FastWorld(official_setup(3, n_days=4, n_levels=2).with_agents({0: external_seat(0)}))
    play = world.play()
    next(play)
    with pytest.raises(TypeError, match="must map partners"):
        play.send(None)


def test_an_abandoned_world_gives_the_streams_back():
    outside = active()
    play = FastWorld(official_setup(3, n_days=4, n_levels=2).with_agents({0: external_seat(0)})).play()
    next(play)
    play.close()
    assert active() is outside

"""Events reach who listens, in order, whole or in parts."""

import pytest

from litaagent_std.world.events import NOTHING, EventHub, NegotiationRef, WorldObserver
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import official_setup


class Hears(WorldObserver):
    def __init__(self, name, heard):
        self.name, self.heard = name, heard

    def on_offer(self, negotiation, round_, agent, offer):
        self.heard.append((self.name, negotiation.index, round_, agent, offer))


def test_nobody_listens_costs_nothing():
    hub = EventHub([WorldObserver(), object()])
    assert all(getattr(hub, name) is None for name in EventHub.__slots__)


def test_listeners_are_told_in_order():
    heard = []
    hub = EventHub([Hears("first", heard), Hears("second", heard)])
    assert hub.response is None
    hub.offer(NegotiationRef(0, 4, "a", "b", "a", "b", 1), 2, "a", (1, 0, 10))
    assert heard == [("first", 4, 2, "a", (1, 0, 10)), ("second", 4, 2, "a", (1, 0, 10))]


class HearsTurns(WorldObserver):
    """Puts turns together from responses and offers, and hears them whole."""

    def __init__(self):
        self.seats, self.parts, self.turns, self.decided = {}, [], [], set()

    def on_world_start(self, event):
        self.seats = {name: seat for seat, name in enumerate(event.agents)}

    def on_response(self, negotiation, round_, agent, response):
        self.parts.append((negotiation.index, round_, self.seats[agent], response, NOTHING, NOTHING, NOTHING))

    def on_offer(self, negotiation, round_, agent, offer):
        who = (negotiation.index, round_, self.seats[agent])
        answered = bool(self.parts) and len(self.parts) > len(self.turns) and self.parts[-1][:3] == who
        response = self.parts.pop()[3] if answered else NOTHING
        self.parts.append((*who, response, *offer))

    def on_turn(self, turn):
        self.turns.append(turn)
        assert len(self.turns) == len(self.parts)

    def on_decision(self, seat):
        self.decided.add(seat)


@pytest.mark.parametrize(("engine", "options"), [("fast", {}), ("fast", {"defaults": "native"}), ("scml", {})])
def test_a_turn_is_its_response_and_its_offer(engine, options):
    setup = official_setup(3, n_days=5, n_levels=2)
    heard = HearsTurns()
    run_world(setup, engine=engine, observers=[heard], **options)
    assert heard.turns == heard.parts
    assert len(heard.turns) > 500
    synchronous = {seat for seat, agent in enumerate(setup.agents) if "SyncRandom" in agent.path}
    assert synchronous
    assert heard.decided == synchronous

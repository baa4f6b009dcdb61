"""Events reach the observers in order, as turns and as responses and offers."""

import pytest

from litaagent_std.world.events import ENDED, NOTHING, STATUSES, EventHub, NegotiationRef, WorldObserver
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import official_setup


class OfferRecorder(WorldObserver):
    def __init__(self, name, events):
        self.name, self.events = name, events

    def on_offer(self, negotiation, round_, agent, offer):
        self.events.append((self.name, negotiation.index, round_, agent, offer))


def test_unobserved_events_cost_nothing():
    hub = EventHub([WorldObserver(), object()])
    assert all(getattr(hub, name) is None for name in EventHub.__slots__)


def test_observers_are_notified_in_order():
    events = []
    hub = EventHub([OfferRecorder("first", events), OfferRecorder("second", events)])
    assert hub.response is None
    hub.offer(NegotiationRef(0, 4, "a", "b", "a", "b", 1), 2, "a", (1, 0, 10))
    assert events == [("first", 4, 2, "a", (1, 0, 10)), ("second", 4, 2, "a", (1, 0, 10))]


class TurnRecorder(WorldObserver):
    """Assembles turns from responses and offers, and records whole turns beside them."""

    def __init__(self):
        self.seats, self.parts, self.turns, self.decided, self.ends, self.rows = {}, [], [], set(), [], []

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

    def on_negotiation_end(self, event):
        ref = event.negotiation
        caller, buyer, seller = (self.seats[name] for name in (ref.caller, ref.buyer, ref.seller))
        code = ENDED + STATUSES.index(event.status)
        self.ends.append((ref.index, event.round, caller, code, buyer, seller, ref.product))

    def on_end(self, end):
        self.rows.append(end)
        assert len(self.rows) == len(self.ends)


@pytest.mark.parametrize(("engine", "options"), [("fast", {}), ("fast", {"defaults": "native"}), ("scml", {})])
def test_rows_say_what_the_other_events_say(engine, options):
    setup = official_setup(3, n_days=5, n_levels=2)
    events = TurnRecorder()
    run_world(setup, engine=engine, observers=[events], **options)
    assert events.turns == events.parts
    assert events.rows == events.ends
    assert {row[3] - ENDED for row in events.rows} >= {0, 2}, "there must be agreements and negotiations without one"
    assert len(events.turns) > 500
    synchronous = {seat for seat, agent in enumerate(setup.agents) if "SyncRandom" in agent.path}
    assert synchronous
    assert events.decided == synchronous

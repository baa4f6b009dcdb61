from litaagent_std.market.world.events import EventHub, NegotiationRef, WorldObserver


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

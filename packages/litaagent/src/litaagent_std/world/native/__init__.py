"""The league's three default agents, played by the engine itself instead of by agent objects.

With ``defaults="native"`` the seats of `GreedyStdAgent`, `RandomStdAgent` and `SyncRandomStdAgent` get a *native
agent*: the same decision rules on plain integers, with the same draws in the same order from the seat's random
streams. The world is the same, event by event; it only costs a fraction of the time.

Modules:
    registry: Which agents have a native version, and :func:`make_native_agent`.
    agent: What all native agents share.
    greedy, random, sync_random: The three agents (sync_prices: prices of the third).
    negotiation: A negotiation between two native agents.
    draws: Draws that consume a generator exactly as Python's and numpy's functions do.
"""

"""The league's three default agents, played by the engine itself instead of by agent objects.

With ``defaults="native"`` the seats of `GreedyStdAgent`, `RandomStdAgent` and `SyncRandomStdAgent` get a *mind*: the
same decision rules on plain integers, drawing the same numbers in the same order from the seat's streams. A world told
with native minds is the same world, event by event; it only costs a fraction of the time.
"""

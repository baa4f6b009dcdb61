"""The world of the SCML Standard league: one interface, two engines.

Importing this package makes the global random generators dispatch to the running world's streams
(:mod:`.streams`). It happens here, before any agent is imported, because ``from random import choice`` in an
agent's module binds a function for good.
"""

from litaagent_std.world.reproducible import streams

streams.install()

"""The world of the SCML Standard league: one interface, two engines.

    from litaagent_std.world.run import run_world
    from litaagent_std.world.setup import official_setup

    outcome = run_world(official_setup(seed=3, n_days=50))

Modules and packages:
    setup: A world as plain data, and the official draw.
    run: :func:`run_world`, on either engine.
    events: What observers receive.
    rules: The league's rules as pure functions.
    fast: The engine that hosts unmodified agents.
    native: The league's default agents, played by the engine itself.
    scml: The same worlds through scml's own classes, and the verifier that compares both engines.
    reproducible: Random streams, hashing, virtual clock, isolation of worlds.
    isolated: Agents in processes of their own, with limits and without network.

Importing this package makes the global random generators dispatch to the running world's streams
(:mod:`.reproducible.streams`). It must happen before any agent is imported, because ``from random import choice`` in
an agent's module binds the function permanently.
"""

from litaagent_std.world.reproducible import streams

streams.install()

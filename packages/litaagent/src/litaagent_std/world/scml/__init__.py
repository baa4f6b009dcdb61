"""The same worlds through scml's own classes, and the verifier that compares both engines.

Modules:
    engine: scml's world with random streams, virtual time and events: the reference.
    seats: scml's adapter and mechanism, with streams and events.
    trace: Fingerprints of a world's events.
    verify: The command that compares both engines (``make verify-world``).
    published: The published Standard agents of scml-agents.
    tournament_world: The fast engine as a world of negmas' tournaments.
"""

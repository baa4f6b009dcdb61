"""Agents that bring a world down."""

import os
import time

from scml.std.agents.rand import RandomStdAgent

DAYS = 5
"""Days of the tests' worlds; the world in which competitors are tried before the start has more."""


class Dies(RandomStdAgent):
    """Ends the process, though not when it is tried."""

    def before_step(self):
        if self.awi.n_steps == DAYS:
            os._exit(3)


class Hangs(RandomStdAgent):
    """Never comes back, though not when it is tried."""

    def before_step(self):
        if self.awi.n_steps == DAYS:
            time.sleep(3600)


class WritesToDescriptors(RandomStdAgent):
    """Writes past Python's streams."""

    def before_step(self):
        os.write(1, b"to stdout")
        os.write(2, b"to stderr")


class RaisesAtBirth(RandomStdAgent):
    """Cannot be constructed."""

    def __init__(self, *args, **kwargs):
        raise ValueError("never born")


class AlwaysRaises(RandomStdAgent):
    """Raises in every call."""

    def before_step(self):
        raise RuntimeError("always")

    def propose(self, *args, **kwargs):
        raise RuntimeError("always")

    def respond(self, *args, **kwargs):
        raise RuntimeError("always")

"""Agents that bring a world down."""

import os
import time

from scml.std.agents.rand import RandomStdAgent


class Dies(RandomStdAgent):
    """Ends the process."""

    def before_step(self):
        os._exit(3)


class Hangs(RandomStdAgent):
    """Never comes back."""

    def before_step(self):
        time.sleep(3600)


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

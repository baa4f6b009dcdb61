"""Agents that tell what happens to them."""

import random

import numpy as np
from scml.std.agent import StdAgent
from scml.std.agents.rand import RandomStdAgent

LUCK: dict[str, list[tuple[float, float]]] = {}
CLOCK: list[tuple[int, float, float]] = []


class TellsItsLuck(StdAgent):
    """Notes a draw from each global generator every day, and draws nothing else."""

    def propose(self, negotiator_id, state):
        return None

    def before_step(self):
        super().before_step()
        LUCK.setdefault(self.id[:2], []).append((random.random(), np.random.rand()))


class DrawsMuch(RandomStdAgent):
    """Draws many numbers, so that sharing a stream with it would show."""

    def before_step(self):
        super().before_step()
        [random.random() for _ in range(17)]
        np.random.rand(23)


class TellsTheTime(RandomStdAgent):
    """Notes round, time and relative time of the states it sees."""

    def propose(self, negotiator_id, state):
        CLOCK.append((state.step, state.time, state.relative_time))
        return super().propose(negotiator_id, state)

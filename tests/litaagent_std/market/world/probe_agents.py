"""Agents that tell what happens to them."""

import random

import numpy as np
from scml.std.agent import StdAgent
from scml.std.agents.rand import RandomStdAgent

LUCK: dict[str, list[tuple[float, float]]] = {}
CLOCK: list[tuple[int, float, float]] = []
VIEWS: list[dict] = []


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


class Watches(RandomStdAgent):
    """Notes what the interface says at the end of every day."""

    def step(self):
        super().step()
        awi = self.awi
        VIEWS.append(
            {
                "day": awi.current_step,
                "prices": [float(price) for price in awi.trading_prices],
                "catalog": [int(price) for price in awi.catalog_prices],
                "suppliers": list(awi.my_suppliers),
                "consumers": list(awi.my_consumers),
                "all": [list(names) for names in awi.all_suppliers],
                "lines": awi.profile.n_lines,
                "cost": awi.profile.cost,
            }
        )

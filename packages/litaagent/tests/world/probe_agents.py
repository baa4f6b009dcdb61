"""Agents that record what happens to them."""

import random

import numpy as np
from negmas import ResponseType
from scml.std.agent import StdAgent
from scml.std.agents.rand import RandomStdAgent

DRAWS: dict[str, list[tuple[float, float]]] = {}
CLOCK: list[tuple[int, float, float]] = []
VIEWS: list[dict] = []


class RecordsDraws(StdAgent):
    """Records one draw from each global generator every day, and draws nothing else."""

    def propose(self, negotiator_id, state):
        return None

    def before_step(self):
        super().before_step()
        DRAWS.setdefault(self.id[:2], []).append((random.random(), np.random.rand()))


class DrawsMuch(RandomStdAgent):
    """Draws many numbers, so that sharing a stream with it would show."""

    def before_step(self):
        super().before_step()
        [random.random() for _ in range(17)]
        np.random.rand(23)


class RecordsTime(RandomStdAgent):
    """Records round, time and relative time of the states it sees."""

    def propose(self, negotiator_id, state):
        CLOCK.append((state.step, state.time, state.relative_time))
        return super().propose(negotiator_id, state)


class RecordsInterface(RandomStdAgent):
    """Records what the interface shows at the end of every day."""

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


class Steady(StdAgent):
    """Plays by rule alone: it draws nothing, iterates over no set and looks at no clock."""

    def propose(self, negotiator_id, state):
        quantity, day, price = self.get_nmi(negotiator_id).outcome_space.issues
        selling = negotiator_id in self.awi.my_consumers
        concession = min(state.step, price.max_value - price.min_value)
        unit_price = price.max_value - concession if selling else price.min_value + concession
        wanted = 1 + (3 * self.awi.current_step + len(negotiator_id) + state.step) % 7
        delivery = min(day.max_value, day.min_value + state.step % 3)
        return min(wanted, quantity.max_value), delivery, unit_price

    def respond(self, negotiator_id, state, source=None):
        if state.step < 2 + self.awi.current_step % 3:
            return ResponseType.REJECT_OFFER
        return ResponseType.ACCEPT_OFFER


class MakesNegotiators(RandomStdAgent):
    """Makes its negotiators itself."""

    def make_negotiator(self, *args, **kwargs):
        return super().make_negotiator(*args, **kwargs)


class CreatesNegotiators(RandomStdAgent):
    """Creates its negotiators itself."""

    def create_negotiator(self, *args, **kwargs):
        return super().create_negotiator(*args, **kwargs)


class ChoosesNegotiations(RandomStdAgent):
    """Decides which negotiations it joins."""

    def before_join(self, *args, **kwargs):
        return True

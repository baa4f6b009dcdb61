"""The privileged teacher: our agent with the true types and the exact acceptance rules of its partners.

It reads what no agent of the league can see, the classes and the needs of the other factories, from the fast engine
with native default agents. It exists to measure what perfect knowledge of partners is worth, and to label the states
that a student reaches (DAgger: Ross, Gordon and Bagnell, 2011): with a student the student plays, and the teacher's
decisions in the same threads are the agent's recorded reasons (``lita collect --reasons``). A dataset takes them as the
labels of L3 (``--decisions reasons``). Nothing of it is part of the policy, of the agents or of an export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.policy.arrays import Bools, Floats, Ints
from litaagent_std.policy.brain import Brain, Decision, Side
from litaagent_std.policy.columns import SELL
from litaagent_std.policy.l3.heuristic import ARCHETYPES, Acceptance
from litaagent_std.policy.observation import Calendar, Observation, Offer, ThreadObservation
from litaagent_std.tournament.competitors.registry import BUILT_IN
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.fast.seats import Seat

__all__ = ["ExactAcceptance", "TeacherAgent", "TeacherBrain", "TrueTypes"]

_TYPES: Final = {
    BUILT_IN["RandomStd"]: "random",
    BUILT_IN["GreedyStd"]: "greedy",
    BUILT_IN["SyncRandomStd"]: "sharing",
}
"""Types of the default agents by class path; every other agent is able."""
_LEAST, _MOST = 0.002, 0.97
"""Probabilities of what the rules exclude, and of what they allow: another partner may come first."""


def type_of(agent: object) -> int:
    """Return the type of an agent as an index of `ARCHETYPES`."""
    path = f"{type(agent).__module__}.{type(agent).__qualname__}"
    return ARCHETYPES.index(_TYPES.get(path, "able"))


class TrueTypes:
    """A belief that knows the types (`l3.heuristic.Belief`).

    Args:
        types: Type of each partner as an index of `ARCHETYPES`, ``[P]``.
    """

    by_replies = False

    def __init__(self, types: Sequence[int]) -> None:
        self._weights = np.eye(len(ARCHETYPES))[np.asarray(types, np.int64)]  # [P, 4]

    def weights(self, partner: Ints) -> Floats:
        """Return 1 for the type of each partner, ``[R, 4]``."""
        return np.asarray(self._weights[partner])

    def observe_replies(self, partner: Ints, likelihood: Floats, *, accepted: bool) -> None:
        """Do nothing: there is nothing to learn."""

    def observe_offers(self, partner: Ints, large: Bools) -> None:
        """Do nothing."""


class ExactAcceptance(Acceptance):
    """The probability that partners accept, by the rules of those that are native agents, for one factory.

    The others are judged by the archetype of their type.

    Args:
        side: The side whose model it replaces.
        obs: The observation of the first day.
        me: Id of the factory.
        partners: Seats of the side's partners, in the order of the observation.
    """

    def __init__(self, side: Side, obs: Observation, me: str, partners: Sequence[Seat]) -> None:
        leads, agenda = obs.horizon + 1, obs.sell_agenda if side.selling else obs.buy_agenda
        most = max(obs.n_lines, 0 if agenda is None else agenda.quantity_min)
        types = [type_of(seat.agent) for seat in partners] + [0] * (side.width - len(partners))
        super().__init__(TrueTypes(types), 1, side.width, leads, most, selling=side.selling)
        self._me, self._seats, self._horizon = me, partners, obs.horizon
        # by partner and lead, as of the present round: the most units, the worst price, and the chance within both
        self._most, self._worst = (np.zeros((side.width, leads), np.int64) for _ in range(2))
        self._chance = np.zeros((side.width, leads))
        self._known, self._answered = np.zeros(side.width, np.bool_), np.ones(side.width, np.bool_)

    def start_round(self, partners: Sequence[int], threads: Sequence[ThreadObservation], last_day: int) -> None:
        """Read what partners would accept in reply to this round's proposals.

        Args:
            partners: Index of the partner of each thread.
            threads: The threads of the side.
            last_day: The last day of the world.
        """
        for partner, thread in zip(partners, threads, strict=True):
            # Whoever opens hears the answer in the same round; the other one in the next, if there is one.
            step = thread.round + (not thread.opens)
            self._answered[partner] = step < thread.n_rounds
            native = self._seats[partner].native
            link = None if native is None else native.links.get(self._me)
            self._known[partner] = link is not None and self._answered[partner]
            if native is None or link is None or not self._answered[partner]:
                continue
            for lead in range(min(self._horizon, last_day - thread.day) + 1):
                most, worst, chance = native.limits(link, step, thread.day + lead)
                self._most[partner, lead], self._worst[partner, lead] = most, worst
                self._chance[partner, lead] = chance

    def probabilities(
        self, partner: Ints, weights: Floats, table: Floats, lead: Ints, quantity: Ints, price: Ints
    ) -> Floats:
        """Return the probability that partners accept offers, ``[R]``; see `Acceptance`."""
        guessed = super().probabilities(partner, weights, table, lead, quantity, price)
        worst = self._worst[partner, lead]
        within = (quantity <= self._most[partner, lead]) & (price <= worst if self._selling else price >= worst)
        chance = np.minimum(_MOST, self._chance[partner, lead])
        exact = np.where(self._known[partner], np.where(within, chance, _LEAST), guessed)
        return np.asarray(np.where(self._answered[partner], exact, _LEAST))


class TeacherBrain(Brain):
    """A brain with exact acceptance.

    Args:
        *args: Passed on.
        student: The brain that plays; the teacher only says, and logs, what it would have done. Default: it plays.
        **kwargs: Passed on.

    Attributes:
        seats: All seats of the world by id, set before the first day.
        me: Id of the factory.
    """

    seats: Mapping[str, Seat]
    me: str

    def __init__(self, *args: Any, student: Brain | None = None, **kwargs: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*args, **kwargs)
        self._student = student
        self._exact: list[ExactAcceptance] = []

    def start_day(self, obs: Observation) -> None:
        """Start a day; on the first one, replace the models of partners."""
        super().start_day(obs)
        assert self._batch is not None  # made above
        if not self._exact:
            for side in self._batch.sides:
                group = obs.consumers if side.side == SELL else obs.suppliers
                partners = [self.seats[partner.name] for partner in group]
                side.acceptance = exact = ExactAcceptance(side, obs, self.me, partners)
                self._exact.append(exact)
        if self._student is not None:
            self._student.start_day(obs)

    def respond(
        self, threads: Sequence[ThreadObservation], acted: Mapping[str, Decision] | None = None
    ) -> dict[str, Decision]:
        """Decide on all offers of a round; with a student, its decisions are returned and remembered."""
        for selling, exact in enumerate(self._exact):
            own = [thread for thread in threads if thread.buying != bool(selling)]
            partners = [self._index[selling][thread.partner] for thread in own]
            exact.start_round(partners, own, self.obs.n_days - 1)
        if self._student is None or not threads:
            return super().respond(threads, acted)
        decisions = self._student.respond(threads)
        super().respond(threads, decisions)
        return decisions

    def contract(self, partner: str, *, buying: bool, offer: Offer) -> None:
        """Update beliefs after an agreement."""
        super().contract(partner, buying=buying, offer=offer)
        if self._student is not None:
            self._student.contract(partner, buying=buying, offer=offer)

    def thread_failed(self, partner: str) -> None:
        """Update beliefs after a thread without agreement."""
        super().thread_failed(partner)
        if self._student is not None:
            self._student.thread_failed(partner)

    def end_day(self, calendar: Calendar) -> None:
        """Remember the commitments with which the day goes into settlement."""
        super().end_day(calendar)
        if self._student is not None:
            self._student.end_day(calendar)


class TeacherAgent(LitaAgentHRL):
    """Our agent with the heuristic L2 and a privileged brain, for the fast engine alone.

    Args:
        *args: Passed to scml.
        student: Settings of the `LitaAgentHRL` that plays while the teacher labels, such as its weights; default: the
            teacher plays.
        **kwargs: Settings of the teacher, and what is passed to scml.
    """

    brain: TeacherBrain

    def __init__(self, *args: Any, student: Mapping[str, Any] | None = None, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **{"l2": "heuristic", **kwargs})
        own: Brain = self.brain
        played = None if student is None else LitaAgentHRL(**student).brain
        self.brain = TeacherBrain(own.all_parameters, own.layers, keep_log=own.keep_log, student=played)

    def before_step(self) -> None:
        """Start the day; on the first one, find the other factories.

        Raises:
            TypeError: If the world is not one of the fast engine.
        """
        if self.awi.current_step == 0:
            world = self.awi._world  # no agent of the league may do this
            if not isinstance(world, FastWorld):
                raise TypeError(f"the teacher plays in worlds of the fast engine only, not in a {type(world).__name__}")
            self.brain.seats, self.brain.me = {seat.id: seat for seat in world.seats}, self.id
        super().before_step()

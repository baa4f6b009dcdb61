"""A seat of ours in a world: the heuristic agent under a policy's steering, and a diary of what came of it.

A seat asks at two time scales. The first time that it has to decide on a day it asks for the day's numbers (L2); every
time it has to decide it asks for numbers for each thread (L3, L4). `PolicySteeredAgent` asks a pilot, such as trained
weights; in training the world stops at each question and waits for an answer (`litaagent_std.hrl_xf.online.envs.driven`).

This module, `acting`, `steering` and `views` are all that trained weights need to play. They import numpy, the policy
and the agent's shell alone, because `lita export` copies them into a submission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.agents.online.steering import SteeredCoordination, SteeredDecisions, SteeredGoals, Steering
from litaagent_std.agents.online.views import day_view, round_views
from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.observation import Calendar, Observation, Offer, ThreadObservation, observe_calendar
from litaagent_std.policy.parameters import Level, Parameters, level_name

__all__ = [
    "Call",
    "DayEntry",
    "DecisionRequest",
    "EpisodeLog",
    "PolicySteeredAgent",
    "RoundEntry",
    "SteeredSeat",
    "SteeringPolicy",
    "apply_action",
]

Call = Literal["first_proposals", "counter_all"]
"""What the world wants of an agent when it has to decide."""


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """What a seat wants numbers for.

    Attributes:
        kind: ``day`` (L2) or ``round`` (L3 and L4).
        day: The day.
        place: The seat's place in the chain.
        view: The day's view [d], or the views of the threads [n, t].
        state: What the central critic sees [s]; the day's view itself for a day.
        partners: The threads' partners, in the order of the views; empty for a day.
    """

    kind: Literal["day", "round"]
    day: int
    place: Level
    view: Floats32
    state: Floats32
    partners: tuple[str, ...] = ()


def apply_action(steering: Steering, question: DecisionRequest, answer: Floats32) -> None:
    """Put the answer to a question in force."""
    if question.kind == "day":
        steering.day = answer
        return
    rows = dict(zip(question.partners, answer, strict=True))
    steering.threads = {name: row[:-1] for name, row in rows.items()}
    steering.weights = {name: float(row[-1]) for name, row in rows.items()}


class SteeringPolicy(Protocol):
    """Answers questions."""

    def answer(self, question: DecisionRequest) -> Floats32:
        """Return the day's numbers [n_day], or each thread's, L3's before L4's [n, n_thread + n_weight]."""


@dataclass(slots=True)
class DayEntry:
    """A day in the diary.

    Attributes:
        obs: The morning.
        evening: Commitments with which the day went into settlement.
        asked: Whether there was anything to decide.
    """

    obs: Observation
    evening: Calendar | None = None
    asked: bool = False


@dataclass(slots=True)
class RoundEntry:
    """How a thread ended: agreement or None, with the goals that it is measured by."""

    buying: bool
    deal: Offer | None
    goal_quantity: float
    goal_price: float


@dataclass(slots=True)
class EpisodeLog:
    """What a seat lived through: its days in order, and how the threads of each day ended, by (day, partner)."""

    days: list[DayEntry] = field(default_factory=list)
    threads: dict[tuple[int, str], RoundEntry] = field(default_factory=dict)


class SteeredSeat(LitaAgentHRL):
    """The heuristic agent under steering; who answers its questions is up to its subclasses.

    Args:
        *args: Passed to scml.
        rounds: Whether rounds are steered too; else days alone.
        parameters: The heuristic's numbers.
        **kwargs: Passed on.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - scml's
        rounds: bool = True,
        parameters: Parameters | Mapping[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401 - scml's
    ) -> None:
        if parameters is not None and not isinstance(parameters, Parameters):
            parameters = Parameters.from_mapping(parameters)
        self.steering = Steering()
        self._goal_layer = SteeredGoals(self.steering, parameters)
        kwargs |= {"goal_layer": self._goal_layer}
        if rounds:
            kwargs |= {
                "decision_layer": SteeredDecisions(self.steering),
                "coordination_layer": SteeredCoordination(self.steering),
            }
        super().__init__(*args, parameters=parameters, **kwargs)
        self.diary = EpisodeLog()
        self._rounds = rounds
        self._day_view: Floats32 | None = None

    def before_step(self) -> None:
        """Take the morning's observation; its numbers are asked for when there is something to decide."""
        super().before_step()
        assert self._today is not None
        self.diary.days.append(DayEntry(self._today))
        self._day_view = None

    def step(self) -> None:
        """Write down with which commitments the day goes into settlement."""
        super().step()
        if self.diary.days:
            self.diary.days[-1].evening = observe_calendar(self.awi)

    def first_proposals(self) -> dict[str, tuple[int, ...] | None]:
        """Asks, then proposes as the heuristic agent does under the answer."""
        if self._opens():
            running = [name for name, entry in self.negotiators.items() if entry[0].nmi is not None]
            if running:
                self._steer("first_proposals", dict.fromkeys(running), {})
        return super().first_proposals()

    def counter_all(self, offers: Mapping[str, Any], states: Mapping[str, Any]) -> dict[str, Any]:
        """Asks, then decides as the heuristic agent does under the answer."""
        known = {name: offer for name, offer in offers.items() if name in states}
        if known:
            self._steer("counter_all", known, states)
        return super().counter_all(offers, states)

    def _steer(self, call: Call, offers: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        """Asks what is not answered yet for this moment."""
        if self._day_view is None:
            assert self._today is not None
            self._day_view = day_view(self._today)
            self.diary.days[-1].asked = True
            place = level_name(self._today.level, self._today.n_levels)
            self._ask(DecisionRequest("day", self._today.day, place, self._day_view, self._day_view), call)
        if self._rounds:
            self._steer_round(call, offers, states)

    def _steer_round(self, call: Call, offers: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        assert self._day_view is not None
        threads = self._threads(offers, states)
        obs = self.diary.days[-1].obs
        views, state = round_views(threads, obs, self._day_view)
        partners = tuple(thread.partner for thread in threads)
        place = level_name(obs.level, obs.n_levels)
        self._ask(DecisionRequest("round", obs.day, place, views, state, partners), call)

    def _ask(self, question: DecisionRequest, call: Call) -> None:
        """Sees to it that `apply_action` gets an answer, at once or later."""
        raise NotImplementedError

    def _threads(self, offers: Mapping[str, Any], states: Mapping[str, Any]) -> list[ThreadObservation]:
        now = observe_calendar(self.awi)
        return [
            self._thread(name, states[name] if states else self.negotiators[name][0].nmi.state, offer, now)
            for name, offer in offers.items()
        ]

    def on_negotiation_success(self, contract: Any, mechanism: Any) -> None:  # noqa: ANN401 - negmas's
        """Write an agreement down."""
        super().on_negotiation_success(contract, mechanism)
        buyer, seller = contract.annotation["buyer"], contract.annotation["seller"]
        agreed = contract.agreement
        deal = Offer(int(agreed["quantity"]), int(agreed["time"]), int(agreed["unit_price"]))
        self._note_end(seller if buyer == self.id else buyer, deal)

    def on_negotiation_failure(self, partners: list[str], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - negmas's
        """Write a thread without agreement down."""
        super().on_negotiation_failure(partners, *args, **kwargs)
        for name in partners:
            if name != self.id:
                self._note_end(name, None)

    def _note_end(self, partner: str, deal: Offer | None) -> None:
        if not self.diary.days:
            return
        obs = self.diary.days[-1].obs
        buying = partner in self.awi.my_suppliers
        quantity, price = self._goal(obs, buying, deal)
        self.diary.threads[obs.day, partner] = RoundEntry(buying, deal, quantity, price)

    def _goal(self, obs: Observation, buying: bool, deal: Offer | None) -> tuple[float, float]:
        """Q* and P* of the delivery day of a deal; of the most wanted day without one."""
        goals = self._goal_layer.latest
        if goals is None:
            return 0.0, 0.0
        quantities, prices = (goals.q_buy, goals.p_buy) if buying else (goals.q_sell, goals.p_sell)
        lead = max(range(len(quantities)), key=quantities.__getitem__) if deal is None else deal.time - obs.day
        return float(quantities[lead]), float(prices[lead])


class PolicySteeredAgent(SteeredSeat):
    """The heuristic agent under a pilot that answers at once.

    Args:
        *args: Passed to scml.
        pilot: Who answers.
        **kwargs: Passed on.
    """

    def __init__(self, *args: Any, pilot: SteeringPolicy, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs)
        self._pilot = pilot

    def _ask(self, question: DecisionRequest, call: Call) -> None:
        apply_action(self.steering, question, self._pilot.answer(question))

"""The heuristic agent with residual actions from a policy, and the log of its episode.

An agent requests actions at two time scales: at its first decision of a day one residual for the day (L2), and at every
decision one residual per thread (L3, L4). `PolicySteeredAgent` requests them from a policy, such as trained weights. In
training the world stops at each request and waits for the action (`SteeredAgent` of the training environments).

This module, `acting`, `steering` and `views` are all that trained weights need to play. They import numpy, the policy
and `litaagent_std.agents.hrl` alone, because `lita export` copies them into a submission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.agents.online.steering import Residuals, SteeredCoordination, SteeredDecisions, SteeredGoals
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
    "SteeredSeat",
    "SteeringPolicy",
    "ThreadOutcome",
    "apply_action",
]

Call = Literal["first_proposals", "counter_all"]
"""The method of the agent that the world calls for decisions."""


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """Request of a seat for a residual action.

    Attributes:
        kind: ``day`` (L2) or ``round`` (L3 and L4).
        day: The day.
        level: The seat's level in the chain.
        view: The day's view [d], or the views of the threads [n, t].
        state: What a central critic sees [s]; the day's view itself for a day.
        partners: The threads' partners, in the order of the views; empty for a day.
    """

    kind: Literal["day", "round"]
    day: int
    level: Level
    view: Floats32
    state: Floats32
    partners: tuple[str, ...] = ()


def apply_action(residuals: Residuals, request: DecisionRequest, action: Floats32) -> None:
    """Set the residuals of a request; shapes as `SteeringPolicy.act` returns them."""
    if request.kind == "day":
        residuals.day = action
        return
    rows = dict(zip(request.partners, action, strict=True))  # a row is L3's action, then log α
    residuals.threads = {name: row[:-1] for name, row in rows.items()}
    residuals.weights = {name: float(row[-1]) for name, row in rows.items()}


class SteeringPolicy(Protocol):
    """Anything that maps requests to residual actions."""

    def act(self, request: DecisionRequest) -> Floats32:
        """Return the day's residual [n_day], or one per thread, L3's before L4's [n, n_thread + n_weight]."""


@dataclass(slots=True)
class DayEntry:
    """A day in the episode log.

    Attributes:
        obs: The observation at day start.
        end_calendar: Commitments at day end, before settlement; None until then.
        has_decision: Whether there was anything to decide.
    """

    obs: Observation
    end_calendar: Calendar | None = None
    has_decision: bool = False


@dataclass(slots=True)
class ThreadOutcome:
    """How a thread ended.

    Attributes:
        buying: Whether we were the buyer.
        deal: The agreement; None if there was none.
        goal_quantity: Q*, which the deal is compared with.
        goal_price: P*, the same of the price.
    """

    buying: bool
    deal: Offer | None
    goal_quantity: float
    goal_price: float


@dataclass(slots=True)
class EpisodeLog:
    """Log of a seat's episode: its days in order, and the outcome of each thread by (day, partner)."""

    days: list[DayEntry] = field(default_factory=list)
    threads: dict[tuple[int, str], ThreadOutcome] = field(default_factory=dict)

    def entry(self, day: int) -> DayEntry:
        """Return the latest entry of a day."""
        return next(entry for entry in reversed(self.days) if entry.obs.day == day)


class SteeredSeat(LitaAgentHRL):
    """The heuristic agent with residual actions; subclasses decide where the actions come from.

    Args:
        *args: Passed to scml.
        rounds: Whether rounds have residuals too (L3, L4); otherwise only days (L2).
        parameters: Parameters of the heuristic layers.
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
        self.residuals = Residuals()
        self._goal_layer = SteeredGoals(self.residuals, parameters)
        kwargs |= {"goal_layer": self._goal_layer}
        if rounds:
            kwargs |= {
                "decision_layer": SteeredDecisions(self.residuals),
                "coordination_layer": SteeredCoordination(self.residuals),
            }
        super().__init__(*args, parameters=parameters, **kwargs)
        self.episode_log = EpisodeLog()
        self._rounds = rounds
        self._day_view: Floats32 | None = None

    def before_step(self) -> None:
        """Log the observation at day start; the day's action is requested at the first decision."""
        super().before_step()
        assert self._today is not None
        self.episode_log.days.append(DayEntry(self._today))
        self._day_view = None

    def step(self) -> None:
        """Log the commitments at day end, before settlement."""
        super().step()
        if self.episode_log.days:
            self.episode_log.days[-1].end_calendar = observe_calendar(self.awi)

    def first_proposals(self) -> dict[str, tuple[int, ...] | None]:
        """Request actions, then propose as the heuristic agent with these residuals."""
        if self._opens():
            running = [name for name, entry in self.negotiators.items() if entry[0].nmi is not None]
            if running:
                self._request_actions("first_proposals", dict.fromkeys(running), {})
        return super().first_proposals()

    def counter_all(self, offers: Mapping[str, Any], states: Mapping[str, Any]) -> dict[str, Any]:
        """Request actions, then decide as the heuristic agent with these residuals."""
        known = {name: offer for name, offer in offers.items() if name in states}
        if known:
            self._request_actions("counter_all", known, states)
        return super().counter_all(offers, states)

    def _request_actions(self, call: Call, offers: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        """Request the day's action unless there is one, then those of the round."""
        if self._day_view is None:
            assert self._today is not None
            self._day_view = day_view(self._today)
            self.episode_log.days[-1].has_decision = True
            level = level_name(self._today.level, self._today.n_levels)
            self._request(DecisionRequest("day", self._today.day, level, self._day_view, self._day_view), call)
        if self._rounds:
            self._request_round(call, offers, states)

    def _request_round(self, call: Call, offers: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        assert self._day_view is not None
        threads = self._threads(offers, states)
        obs = self.episode_log.days[-1].obs
        views, state = round_views(threads, obs, self._day_view)
        partners = tuple(thread.partner for thread in threads)
        level = level_name(obs.level, obs.n_levels)
        self._request(DecisionRequest("round", obs.day, level, views, state, partners), call)

    def _request(self, request: DecisionRequest, call: Call) -> None:
        """Obtain the action and apply it with `apply_action`, at once or when the world repeats the call."""
        raise NotImplementedError

    def _threads(self, offers: Mapping[str, Any], states: Mapping[str, Any]) -> list[ThreadObservation]:
        now = observe_calendar(self.awi)
        return [
            self._thread(name, states[name] if states else self.negotiators[name][0].nmi.state, offer, now)
            for name, offer in offers.items()
        ]

    def on_negotiation_success(self, contract: Any, mechanism: Any) -> None:  # noqa: ANN401 - negmas's
        """Log an agreement."""
        super().on_negotiation_success(contract, mechanism)
        buyer, seller = contract.annotation["buyer"], contract.annotation["seller"]
        agreed = contract.agreement
        deal = Offer(int(agreed["quantity"]), int(agreed["time"]), int(agreed["unit_price"]))
        self._log_outcome(seller if buyer == self.id else buyer, deal)

    def on_negotiation_failure(self, partners: list[str], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - negmas's
        """Log a thread that ended without agreement."""
        super().on_negotiation_failure(partners, *args, **kwargs)
        for name in partners:
            if name != self.id:
                self._log_outcome(name, None)

    def _log_outcome(self, partner: str, deal: Offer | None) -> None:
        if not self.episode_log.days:
            return
        obs = self.episode_log.days[-1].obs
        buying = partner in self.awi.my_suppliers
        quantity, price = self._goal(obs, buying, deal)
        self.episode_log.threads[obs.day, partner] = ThreadOutcome(buying, deal, quantity, price)

    def _goal(self, obs: Observation, buying: bool, deal: Offer | None) -> tuple[float, float]:
        """Return Q* and P* of the deal's delivery day; if there is no deal, of the day with the largest goal."""
        goals = self._goal_layer.latest
        if goals is None:
            return 0.0, 0.0
        quantities, prices = (goals.q_buy, goals.p_buy) if buying else (goals.q_sell, goals.p_sell)
        lead = max(range(len(quantities)), key=quantities.__getitem__) if deal is None else deal.time - obs.day
        return float(quantities[lead]), float(prices[lead])


class PolicySteeredAgent(SteeredSeat):
    """The heuristic agent with residual actions from a policy.

    Args:
        *args: Passed to scml.
        policy: The policy that acts.
        **kwargs: Passed on.
    """

    def __init__(self, *args: Any, policy: SteeringPolicy, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs)
        self._policy = policy

    def _request(self, request: DecisionRequest, call: Call) -> None:
        apply_action(self.residuals, request, self._policy.act(request))

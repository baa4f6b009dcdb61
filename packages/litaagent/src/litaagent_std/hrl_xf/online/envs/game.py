"""A world that stops at each decision request of our seats and waits for the action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

import numpy as np

from litaagent_std.agents.online.seat import (
    Call,
    DecisionRequest,
    EpisodeLog,
    SteeredSeat,
    ThreadOutcome,
    apply_action,
)
from litaagent_std.agents.online.steering import DAY_ACTIONS, THREAD_ACTIONS, WEIGHT_ACTIONS
from litaagent_std.hrl_xf.online.worlds import OURS, TrainingWorld
from litaagent_std.hrl_xf.rewards import thread_terms
from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.observation import Observation
from litaagent_std.world.events import AgentError, Settlement, WorldObserver, WorldStart
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.fast.external import Decision, DecisionNeeded
from litaagent_std.world.setup import AgentSpec

__all__ = ["Game", "Health", "Pending", "SteeredAgent", "outcome_terms"]


class SteeredAgent(SteeredSeat):
    """The heuristic agent with residual actions from outside: each request stops the world until `give` is called.

    Args:
        *args: Passed to scml.
        seat: Index of the seat, for the world's decisions.
        **kwargs: Passed on.

    Attributes:
        request: The latest request; None before the first.
    """

    def __init__(self, *args: Any, seat: int = -1, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs)
        self.request: DecisionRequest | None = None
        self._seat = seat
        self._requested_by: Call | None = None

    def give(self, reply: Any) -> None:  # noqa: ANN401 - the world passes on what it was sent
        """Apply the action of the request that stopped the world."""
        assert self.request is not None
        apply_action(self.residuals, self.request, np.asarray(reply, np.float32))

    def _request_round(self, call: Call, offers: Mapping[str, Any], states: Mapping[str, Any]) -> None:
        if self._requested_by == call:  # the action is there: the world repeats the call that it had stopped
            self._requested_by = None
            return
        self._requested_by = call
        super()._request_round(call, offers, states)

    def _request(self, request: DecisionRequest, call: Call) -> None:
        self.request = request
        raise DecisionNeeded(self, Decision(self._seat, self.id, call, request.partners, {}, {}, self.awi))


@dataclass(slots=True)
class Health:
    """Health of a seat.

    Attributes:
        sold: Units sold.
        missing: Units sold but not delivered.
        stock_days: Sum over days of input stock, in days of full production.
        days: Days settled.
        overstocked: Days with more than three days of production in stock.
        bankrupt: Whether the factory went bankrupt.
    """

    sold: int = 0
    missing: int = 0
    stock_days: float = 0.0
    days: int = 0
    overstocked: int = 0
    bankrupt: bool = False

    @property
    def breach_rate(self) -> float:
        """Share of sold units that were not delivered."""
        return self.missing / max(1, self.sold)


@dataclass(slots=True)
class _HealthObserver(WorldObserver):
    """Records health and exceptions of our seats from the world's events."""

    seats: tuple[int, ...]
    lines: dict[str, int] = field(default_factory=dict)
    health: dict[str, Health] = field(default_factory=dict)
    errors: list[AgentError] = field(default_factory=list)

    def on_error(self, event: AgentError) -> None:
        if event.agent in self.health:
            self.errors.append(event)

    def on_world_start(self, event: WorldStart) -> None:
        for seat in self.seats:
            self.health[event.agents[seat]] = Health()
            self.lines[event.agents[seat]] = event.n_lines[seat]

    def on_settlement(self, event: Settlement) -> None:
        health = self.health.get(event.agent)
        if health is None:
            return
        stock = event.inventory_input / self.lines[event.agent]
        health.sold += event.output_quantity
        health.missing += event.shortfall_quantity
        health.stock_days += stock
        health.overstocked += stock > 3.0
        health.days += 1

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        if agent in self.health:
            self.health[agent].bankrupt = True


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that waits for its action.

    Attributes:
        seat: The seat that requests it.
        request: The request.
    """

    seat: int
    request: DecisionRequest

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Shape of the action: [n_day], or [threads, n_thread + n_weight]."""
        if self.request.kind == "day":
            return (len(DAY_ACTIONS),)
        return (len(self.request.partners), len(THREAD_ACTIONS) + len(WEIGHT_ACTIONS))


class Game:
    """A world that stops at the requests of our seats.

    Args:
        training_world: The world and our seats.
        rounds: Whether seats request actions every round; otherwise once a day.
        params: Keyword arguments of our seats beside ``seat`` and ``rounds``.

    Attributes:
        pending: The request that waits; None when the world is over.
    """

    def __init__(self, training_world: TrainingWorld, *, rounds: bool, params: dict[str, Any] | None = None) -> None:
        self.training_world = training_world
        self._observer = _HealthObserver(training_world.seats)
        agents = {
            seat: AgentSpec(OURS, {"seat": seat, "rounds": rounds} | (params or {}), competitor=True)
            for seat in training_world.seats
        }
        self._world = FastWorld(training_world.setup.with_agents(agents), [self._observer], defaults="native")
        self._play = self._world.play()
        self._set_pending(next(self._play, None))

    def _set_pending(self, decision: Any) -> None:  # noqa: ANN401 - the world's decision, of which the seat is needed
        self.pending: Pending | None = None
        if decision is not None:
            request = self.agent(decision.seat).request
            assert request is not None  # the seat has just made it
            self.pending = Pending(decision.seat, request)

    def step(self, action: Floats32) -> None:
        """Apply the action of the pending request and continue to the next one.

        Raises:
            RuntimeError: If the world is over.
            ValueError: If the action does not have the shape `Pending.action_shape`.
        """
        if self.pending is None:
            raise RuntimeError("the world is over; make a new game")
        if action.shape != self.pending.action_shape:
            raise ValueError(
                f"the action has shape {action.shape}, but seat {self.pending.seat} needs "
                f"{self.pending.action_shape} ({self.pending.request.kind}); see Pending.action_shape"
            )
        try:
            self._set_pending(self._play.send(cast("Any", action)))
        except StopIteration:
            self.pending = None

    def agent(self, seat: int) -> SteeredAgent:
        """Return the agent of one of our seats."""
        return cast("SteeredAgent", self._world.seats[seat].agent)

    def episode_log(self, seat: int) -> EpisodeLog:
        """Return the episode log of one of our seats."""
        return self.agent(seat).episode_log

    def day_observation(self, seat: int) -> Observation:
        """Return a seat's observation at the latest day start."""
        return self.episode_log(seat).days[-1].obs

    def cash(self, seat: int) -> float:
        """Return the present balance of a seat."""
        return float(self._world.seats[seat].balance)

    def health(self, seat: int) -> Health:
        """Return the health of one of our seats."""
        return self._observer.health[self._world.seats[seat].id]

    @property
    def errors(self) -> list[AgentError]:
        """Exceptions raised by our seats."""
        return self._observer.errors

    def score(self, seat: int) -> float:
        """Return balance over initial balance of any seat, also of other agents."""
        return float(list(self._world.scores().values())[seat])

    def close(self) -> None:
        """Stop the world where it is and restore the random streams."""
        self._play.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def outcome_terms(obs: Observation, outcome: ThreadOutcome) -> dict[str, float]:
    """Return the reward terms of a thread's outcome; ``obs`` is the observation at the start of its day."""
    return thread_terms(
        obs,
        buying=outcome.buying,
        deal=outcome.deal,
        goal_quantity=outcome.goal_quantity,
        goal_price=outcome.goal_price,
    )

"""A world with seats of ours, played question by question: what every environment and every rollout stands on."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

from litaagent_std.agents.online.seat import DecisionRequest, EpisodeLog
from litaagent_std.agents.online.steering import DAY_ACTIONS, THREAD_ACTIONS, WEIGHT_ACTIONS
from litaagent_std.hrl_xf.online.envs.driven import SteeredAgent
from litaagent_std.hrl_xf.online.worlds import OURS, TrainingWorld
from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.observation import Observation
from litaagent_std.world.events import AgentError, Settlement, WorldObserver, WorldStart
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec

__all__ = ["Game", "Health", "Pending"]


@dataclass(slots=True)
class Health:
    """What is watched of a seat.

    Attributes:
        sold: Units sold.
        missing: Units sold and not delivered.
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
        """Share of units sold that was not delivered."""
        return self.missing / max(1, self.sold)


@dataclass(slots=True)
class _Watch(WorldObserver):
    """Hears what becomes of our seats."""

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
        seen = self.health.get(event.agent)
        if seen is None:
            return
        stock = event.inventory_input / self.lines[event.agent]
        seen.sold += event.output_quantity
        seen.missing += event.shortfall_quantity
        seen.stock_days += stock
        seen.overstocked += stock > 3.0
        seen.days += 1

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        if agent in self.health:
            self.health[agent].bankrupt = True


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that waits for an answer.

    Attributes:
        seat: The seat that asks.
        question: What it asks.
    """

    seat: int
    question: DecisionRequest

    @property
    def answer_shape(self) -> tuple[int, ...]:
        """Shape of the answer."""
        if self.question.kind == "day":
            return (len(DAY_ACTIONS),)
        return (len(self.question.partners), len(THREAD_ACTIONS) + len(WEIGHT_ACTIONS))


class Game:
    """A world that stops at the questions of our seats.

    Args:
        training_world: The world and our seats.
        rounds: Whether seats ask every round; else once a day.
        params: Keyword arguments of our seats beside ``seat`` and ``rounds``.

    Attributes:
        pending: The question that waits; None when the world is over.
    """

    def __init__(self, training_world: TrainingWorld, *, rounds: bool, params: dict[str, Any] | None = None) -> None:
        self.training_world = training_world
        self._watch = _Watch(training_world.seats)
        seated = {
            seat: AgentSpec(OURS, {"seat": seat, "rounds": rounds} | (params or {}), competitor=True)
            for seat in training_world.seats
        }
        self._world = FastWorld(training_world.setup.with_agents(seated), [self._watch], defaults="native")
        self._play = self._world.play()
        self._take(next(self._play, None))

    def _take(self, decision: Any) -> None:  # noqa: ANN401 - the world's decision, of which the seat is needed
        self.pending: Pending | None = None
        if decision is not None:
            question = self.agent(decision.seat).question
            assert question is not None  # the seat has just asked
            self.pending = Pending(decision.seat, question)

    def answer(self, numbers: Floats32) -> None:
        """Answers the pending question; the world goes on to the next one.

        Raises:
            RuntimeError: If the world is over.
            ValueError: If the answer has another shape than the question asks for.
        """
        if self.pending is None:
            raise RuntimeError("the world is over; make a new game")
        if numbers.shape != self.pending.answer_shape:
            raise ValueError(
                f"the answer has shape {numbers.shape}, but seat {self.pending.seat} asked for "
                f"{self.pending.answer_shape} ({self.pending.question.kind}); look at Pending.answer_shape"
            )
        try:
            self._take(self._play.send(cast("Any", numbers)))
        except StopIteration:
            self.pending = None

    def agent(self, seat: int) -> SteeredAgent:
        """Return the agent of one of our seats."""
        return cast("SteeredAgent", self._world.seats[seat].agent)

    def diary(self, seat: int) -> EpisodeLog:
        """Return what one of our seats lived through so far."""
        return self.agent(seat).diary

    def today(self, seat: int) -> Observation:
        """Return the latest morning of a seat."""
        return self.diary(seat).days[-1].obs

    def cash(self, seat: int) -> float:
        """Return the seat's balance now."""
        return float(self._world.seats[seat].balance)

    def health(self, seat: int) -> Health:
        """Return what was watched of a seat."""
        return self._watch.health[self._world.seats[seat].id]

    @property
    def errors(self) -> list[AgentError]:
        """Exceptions that came out of our seats."""
        return self._watch.errors

    def score(self, seat: int) -> float:
        """Balance over initial balance of any seat, also of others'."""
        return float(list(self._world.scores().values())[seat])

    def close(self) -> None:
        """Leaves the world where it is and gives the random streams back."""
        self._play.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

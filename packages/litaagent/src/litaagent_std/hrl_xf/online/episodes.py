"""What a training world shows of our seats: their days, how their threads ended, and their health."""

from __future__ import annotations

from dataclasses import dataclass, field

from litaagent_std.hrl_xf.rewards import thread_terms
from litaagent_std.policy.observation import Calendar, Observation, Offer
from litaagent_std.world.events import AgentError, Settlement, WorldObserver, WorldStart

__all__ = ["DayEntry", "EpisodeLog", "Health", "HealthObserver", "ThreadOutcome", "outcome_terms"]


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


def outcome_terms(obs: Observation, outcome: ThreadOutcome) -> dict[str, float]:
    """Return the reward terms of a thread's outcome; ``obs`` is the observation at the start of its day."""
    return thread_terms(
        obs,
        buying=outcome.buying,
        deal=outcome.deal,
        goal_quantity=outcome.goal_quantity,
        goal_price=outcome.goal_price,
    )


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
class HealthObserver(WorldObserver):
    """Records health and exceptions of our seats from the world's events."""

    seats: tuple[int, ...]
    lines: dict[str, int] = field(default_factory=dict)
    health: dict[str, Health] = field(default_factory=dict)
    errors: list[AgentError] = field(default_factory=list)

    def on_error(self, event: AgentError) -> None:
        """Record an exception of one of our seats."""
        if event.agent in self.health:
            self.errors.append(event)

    def on_world_start(self, event: WorldStart) -> None:
        """Start with the lines of our seats."""
        for seat in self.seats:
            self.health[event.agents[seat]] = Health()
            self.lines[event.agents[seat]] = event.n_lines[seat]

    def on_settlement(self, event: Settlement) -> None:
        """Add a seat's day."""
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
        """Record a bankruptcy."""
        if agent in self.health:
            self.health[agent].bankrupt = True

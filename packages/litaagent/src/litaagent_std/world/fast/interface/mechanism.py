"""What agents may ask negmas' mechanism, provided by a negotiation; none of it is on the hot path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from negmas.common import NegotiatorDescriptor, TraceElement

from litaagent_std.world.fast.interface.proxies import LeanState, snapshot
from litaagent_std.world.reproducible.clock import elapsed_seconds

if TYPE_CHECKING:
    from negmas.outcomes import Issue, OutcomeSpace

    from litaagent_std.world.fast.interface.agenda import Agenda

Offer = Any


class _Owner(Protocol):
    id: str


class _Side(Protocol):
    """What is known of a side: the agent's seat, and the negotiator with the partner's id."""

    pid: str
    negotiator: Any

    @property
    def seat(self) -> _Owner: ...


class MechanismView:
    """The public interface of negmas' ``SAOMechanism`` that agents reach through their NMI."""

    __slots__ = ()

    id: str
    state: LeanState
    sides: tuple[_Side, _Side]
    agenda: Agenda
    trace_: list[tuple[int, str, Offer]]

    dynamic_entry = False
    atomic_steps = False
    max_n_negotiators = None
    requirements: dict[str, Any] = {}  # noqa: RUF012 - always empty, as in negmas

    @property
    def outcome_space(self) -> OutcomeSpace:
        """The outcome space."""
        return self.agenda.outcome_space

    @property
    def issues(self) -> tuple[Issue, ...]:
        """Quantity, time and unit price."""
        return tuple(self.agenda.outcome_space.issues)

    @property
    def params(self) -> dict[str, Any]:
        """The mechanism's parameters."""
        return {"dynamic_entry": False, "one_offer_per_step": False, "end_on_no_response": True}

    @property
    def time(self) -> float:
        """Virtual seconds since the start."""
        return elapsed_seconds(self.state.step)

    @property
    def relative_time(self) -> float:
        """The fraction of the negotiation that has passed."""
        return self.agenda.relative_times[self.state.step]

    @property
    def agreement(self) -> Offer | None:
        """The agreement, if there is one."""
        return self.state.agreement

    @property
    def negotiator_ids(self) -> list[str]:
        """Ids of both negotiators; each is the id of the other side's agent."""
        return [side.pid for side in self.sides]

    negotiator_names = negotiator_ids
    genius_negotiator_ids = negotiator_ids

    @property
    def agent_ids(self) -> list[str]:
        """Ids of both agents."""
        return [side.seat.id for side in self.sides]

    agent_names = agent_ids

    @property
    def negotiators(self) -> list[Any]:
        """Both negotiators."""
        return [side.negotiator for side in self.sides]

    @property
    def participants(self) -> list[NegotiatorDescriptor]:
        """Both negotiators, described."""
        return [NegotiatorDescriptor(pid, pid, "controlled_sao_negotiator") for pid in self.negotiator_ids]

    def negotiator_index(self, source: str) -> int | None:
        """Return the position of a negotiator."""
        ids = self.negotiator_ids
        return ids.index(source) if source in ids else None

    def random_outcome(self) -> Offer:
        """Draw an outcome."""
        return self.agenda.outcome_space.random_outcome()

    def random_outcomes(self, n: int = 1, with_replacement: bool = False) -> list[Offer]:
        """Draw outcomes."""
        space = self.agenda.outcome_space
        return list(space.sample(n, with_replacement=with_replacement, fail_if_not_enough=False))

    def discrete_outcome_space(self, levels: int = 5, max_cardinality: int = 10_000_000_000) -> OutcomeSpace:
        """Return the outcome space, which is discrete."""
        return self.agenda.outcome_space

    def discrete_outcomes(self, max_cardinality: float = float("inf")) -> Iterable[Offer]:
        """Enumerate all outcomes."""
        outcomes: Iterable[Offer] = self.agenda.outcome_space.enumerate_or_sample(max_cardinality=max_cardinality)
        return outcomes

    def log(self, nid: str, data: dict[str, Any], level: str) -> None:
        """Drop a negotiator's log entry."""

    @property
    def extended_trace(self) -> list[tuple[int, str, Offer]]:
        """All offers of completed rounds as (round, negotiator, offer)."""
        return [made for made in self.trace_ if made[0] < self.state.step]

    @property
    def trace(self) -> list[tuple[str, Offer]]:
        """All offers of completed rounds as (negotiator, offer)."""
        return [(pid, offer) for _, pid, offer in self.extended_trace]

    @property
    def offers(self) -> list[Offer]:
        """All offers of completed rounds in order."""
        return [offer for _, _, offer in self.extended_trace]

    def negotiator_offers(self, negotiator_id: str) -> list[Offer]:
        """Return all offers that a negotiator made in completed rounds."""
        return [offer for _, pid, offer in self.extended_trace if pid == negotiator_id]

    @property
    def full_trace(self) -> list[TraceElement]:
        """All offers with the time at which they were made."""
        return [
            TraceElement(
                elapsed_seconds(step), self.agenda.relative_times[step], step, pid, offer, {}, "continuing", None, None
            )
            for step, pid, offer in self.extended_trace
        ]

    @property
    def history(self) -> list[LeanState]:
        """The states after each completed round."""
        states = []
        for round_ in range(self.state.step):
            state = snapshot(self.state)
            state.step = round_
            state.time = elapsed_seconds(round_)
            state.relative_time = self.agenda.relative_times[round_]
            made = [(pid, offer) for step, pid, offer in self.trace_ if step == round_]
            state.new_offers = made
            if round_ < self.state.step - 1:
                state.running, state.agreement = True, None
                state.broken = state.timedout = False
            if made:
                state.current_proposer, state.current_offer = made[-1]
            states.append(state)
        return states

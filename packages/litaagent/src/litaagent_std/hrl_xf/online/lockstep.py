"""Many worlds in lockstep: all seats of ours that wait for a decision are decided as one batch.

A world is suspended where one of our seats has to decide (`world.fast.external`). `Lockstep` advances every world to
its next such decision, makes one batch of columns of all seats that wait, lets one `BatchBrain` decide it, and sends
the decisions back. What a world becomes does not depend on the worlds beside it: seats share no state, and a batch
decides as its members alone.

**The seam to learning.** The driver knows nothing of what learns. It is given a `LayerFactory`: from the seats of a
batch, in the order of their rows, it makes the layers that are plugged into the brain (`policy.layers.BatchGoals`,
`BatchDecisions`, `BatchCoordination`, and `RoundLayer` for one call of a network over the threads of both sides; None
leaves a layer to its heuristic). Sampling and the recording of inputs, actions and log-probabilities are inside these
layers, by `DayBatch.seats` and `SituationBatch.seats`: rows of the seats that the factory was given. Random draws must
depend on the seat alone (an rng for each seat), never on who shares the batch, and so must the rounding of networks
(`policy.arrays.matmul_rows`). Afterwards `LockstepSeat.episode` holds what rewards are computed from.

    lockstep = Lockstep(make_layers)
    worlds = lockstep.add([draw_world(plan) for plan in plans])
    lockstep.run()
    scores = [world.score(seat.seat) for world in worlds for seat in world.ours]
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.hrl_xf.online.episodes import DayEntry, EpisodeLog, Health, HealthObserver, ThreadOutcome
from litaagent_std.hrl_xf.online.worlds import OURS, TrainingWorld
from litaagent_std.policy.arrays import Ints
from litaagent_std.policy.brain import BatchBrain, Brain, Decision, End
from litaagent_std.policy.columns import BUY, SELL, CalendarBatch, Histories, ObservationBatch, ThreadBatch, histories
from litaagent_std.policy.layers import Layers, LayerSet, coordination_for_all, decisions_for_all, goals_for_all
from litaagent_std.policy.observation import Calendar, Observation, Offer, ThreadObservation
from litaagent_std.policy.parameters import Level
from litaagent_std.policy.partners.types import shipped_types
from litaagent_std.policy.plan import PlanBatch
from litaagent_std.world.events import AgentError
from litaagent_std.world.fast import external
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec

__all__ = ["LayerFactory", "Lockstep", "LockstepAgent", "LockstepSeat", "LockstepWorld", "RoundColumns"]

Call = Literal["first_proposals", "counter_all"]
"""The method of the agent that the world calls for decisions."""
_End = tuple[int, int, Offer | None]
"""The end of a thread: its side, the index of its partner, and the agreement if there is one."""


class LockstepSeat(Brain):
    """One of our seats. It stands in its agent's place of a brain, and waits for decisions of the batch.

    Args:
        seat: Index of the seat in its world.
        level: Level in the chain.

    Attributes:
        world: Its world.
        row: Row of its batch; -1 before it has one.
        obs: The observation of the latest day start.
        episode: The log of its episode.
        threads: Threads that wait for a decision, in the order in which the agent was asked.
        decisions: The decisions on them by partner, once there are any.
        events: What the batch has not taken yet: starts of days, ends of threads, and commitments at the ends of days.
    """

    def __init__(self, seat: int, level: Level = "first") -> None:
        super().__init__()
        self.world: LockstepWorld | None = None
        self.seat, self.level, self.row = seat, level, -1
        self.episode = EpisodeLog()
        self.threads: list[ThreadObservation] = []
        self.decisions: Mapping[str, Decision] | None = None
        self.events: deque[Observation | Calendar | _End] = deque()
        self.batch: _Batch | None = None
        self._index: list[dict[str, int]] = [{}, {}]

    def start_day(self, obs: Observation) -> None:
        """Start a day with its observation."""
        self.obs = obs
        self.events.append(obs)
        self.episode.days.append(DayEntry(obs))
        groups = (obs.suppliers, obs.consumers)
        self._index = [{partner.name: index for index, partner in enumerate(partners)} for partners in groups]

    def contract(self, partner: str, *, buying: bool, offer: Offer) -> None:
        """Take an agreement."""
        side = BUY if buying else SELL
        self.events.append((side, self._index[side][partner], offer))
        self._log_outcome(partner, side, offer)

    def thread_failed(self, partner: str) -> None:
        """Take the end of a thread without agreement."""
        for side in (BUY, SELL):
            if partner in self._index[side]:
                self.events.append((side, self._index[side][partner], None))
                self._log_outcome(partner, side, None)

    def end_day(self, calendar: Calendar) -> None:
        """Take the commitments with which the day goes into settlement."""
        self.events.append(calendar)
        if self.episode.days:
            self.episode.days[-1].end_calendar = calendar

    @property
    def plugged(self) -> LayerSet:
        """The layers of its batch, as the factory made them."""
        assert self.batch is not None  # it has started a day
        return self.batch.plugged

    def partner_index(self, thread: ThreadObservation) -> int:
        """Return the index of a thread's partner among those of its side."""
        return self._index[BUY if thread.buying else SELL][thread.partner]

    def _log_outcome(self, partner: str, side: int, deal: Offer | None) -> None:
        """Log how a thread ended, beside the goal of its delivery day; without a deal, of the day with the largest."""
        quantity = price = 0.0
        if self.batch is not None:
            goals = self.batch.brain.goals
            quantities, prices, _ = goals.side(selling=side == SELL)
            leads = quantities[self.row, : self.obs.horizon + 1]
            lead = int(leads.argmax()) if deal is None else deal.time - self.obs.day
            quantity, price = float(leads[lead]), float(prices[self.row, lead])
        self.episode.threads[self.obs.day, partner] = ThreadOutcome(side == BUY, deal, quantity, price)


LayerFactory = Callable[[Sequence[LockstepSeat]], LayerSet]
"""Makes the layers of a batch from its seats, in the order of their rows; see the module."""


class LockstepAgent(LitaAgentHRL):
    """The agent in our seats: each decision stops its world until `give` is called.

    Args:
        *args: Passed to scml.
        seat: Index of the seat.
        **kwargs: Passed on.
    """

    brain: LockstepSeat

    def __init__(self, *args: Any, seat: int = -1, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs)
        self.brain = LockstepSeat(seat)

    def give(self, reply: Any) -> None:  # noqa: ANN401 - the world passes on what it was sent
        """Take the decisions; the world repeats the call that it had stopped."""
        self.brain.decisions = reply

    def first_proposals(self) -> dict[str, tuple[int, ...] | None]:
        """Propose what was decided, or stop the world until it is."""
        if self.brain.decisions is None:
            if not self._opens():
                return {}
            self._wait("first_proposals", self._opening_threads())
        _, decisions = self._take()
        return self._proposals({partner: decision.offer for partner, decision in decisions.items()})

    def counter_all(self, offers: Mapping[str, Any], states: Mapping[str, Any]) -> dict[str, Any]:
        """Respond what was decided, or stop the world until it is."""
        if self.brain.decisions is None:
            self._wait("counter_all", self._threads(offers, states))
        return self._responses(*self._take())

    def _wait(self, call: Call, threads: list[ThreadObservation]) -> None:
        if threads:
            self.brain.threads = threads
            needed = external.Decision(self.brain.seat, self.id, call, (), {}, {}, self.awi)
            raise external.DecisionNeeded(cast("Any", self), needed)

    def _take(self) -> tuple[list[ThreadObservation], Mapping[str, Decision]]:
        brain = self.brain
        threads, decisions = brain.threads, brain.decisions or {}
        brain.threads, brain.decisions = [], None
        return threads, decisions


class LockstepWorld:
    """A world that stops at the decisions of our seats.

    Args:
        training_world: The world and our seats.

    Attributes:
        ours: Our seats.
        waiting: The seat that waits for a decision; None when the world is over.
    """

    def __init__(self, training_world: TrainingWorld) -> None:
        self.training_world = training_world
        self._observer = HealthObserver(training_world.seats)
        agents = {seat: AgentSpec(OURS, {"seat": seat}, competitor=True) for seat in training_world.seats}
        self._world = FastWorld(training_world.setup.with_agents(agents), [self._observer], defaults="native")
        self.ours = tuple(cast("LockstepAgent", self._world.seats[seat].agent).brain for seat in training_world.seats)
        for seat in self.ours:
            seat.world, seat.level = self, training_world.seat_levels[seat.seat]
        self._by_index = {seat.seat: seat for seat in self.ours}
        self._play = self._world.play()
        self._stop_at(next(self._play, None))

    def _stop_at(self, decision: external.Decision | None) -> None:
        self.waiting = None if decision is None else self._by_index[decision.seat]

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide."""
        return self.waiting is None

    def reply(self, decisions: Mapping[str, Decision]) -> None:
        """Send the decisions that the world waits for, and continue to the next one."""
        try:
            self._stop_at(self._play.send(cast("Any", decisions)))
        except StopIteration:
            self.waiting = None

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
        self.waiting = None


@dataclass(eq=False)
class RoundColumns:
    """The rounds of S seats that wait, with M threads, as columns.

    Attributes:
        asked: The seats, in the order of their rows.
        rows: Their rows of the batch, ``[S]``.
        today: The days of all seats of the batch.
        calendar: Their commitments at this moment.
        live: The threads as the agents made them, purchases first.
        threads: The same as columns; their seats are indices of `asked`.
    """

    asked: Sequence[LockstepSeat]
    rows: Ints
    today: ObservationBatch
    calendar: CalendarBatch
    live: Sequence[ThreadObservation]
    threads: ThreadBatch

    @cached_property
    def obs(self) -> ObservationBatch:
        """The days of the seats, S rows; copied when they are asked for."""
        return self.today.take(self.rows)

    @cached_property
    def histories(self) -> Histories:
        """The offers made in the threads so far."""
        return histories(self.live, self.threads.seat.tolist())


class _Batch:
    """Seats that started together, and the brain that decides for them.

    Args:
        seats: The seats; the first event of each is the start of its first day.
        make_layers: Makes their layers.
    """

    def __init__(self, seats: Sequence[LockstepSeat], make_layers: LayerFactory) -> None:
        self._seats = seats
        first = [cast("Observation", seat.events[0]) for seat in seats]
        obs = ObservationBatch.of(first)
        self._leads = obs.calendar.sold.shape[1]
        self._partners = [group.there.shape[1] for group in (obs.suppliers, obs.consumers, obs.competitors)]
        for row, seat in enumerate(seats):
            seat.row, seat.batch = row, self
        self.plugged = made = make_layers(seats)
        self._columns: tuple[list[list[ThreadObservation]], RoundColumns] | None = None
        self.brain = BatchBrain(
            obs,
            [seat.all_parameters for seat in seats],
            Layers(),
            goal_layer=None if made.goal is None else goals_for_all(made.goal),
            decision_layer=None if made.decision is None else decisions_for_all(made.decision),
            coordination_layer=None if made.coordination is None else coordination_for_all(made.coordination),
            types=made.types or shipped_types(),
        )

    def columns(self, asked: Sequence[LockstepSeat]) -> RoundColumns:
        """Return the rounds of seats that wait, in the order of their rows."""
        waiting = [seat.threads for seat in asked]
        if self._columns is not None and _are(self._columns[0], waiting):
            return self._columns[1]
        self._catch_up()
        rows, live, place, partner = [], [], [], []
        for index, seat in enumerate(asked):
            rows.append(seat.row)
            for thread in sorted(seat.threads, key=lambda thread: not thread.buying):
                live.append(thread)
                place.append(index)
                partner.append(seat.partner_index(thread))
        at = np.array(rows)
        made = RoundColumns(
            asked,
            at,
            self.brain.obs,
            CalendarBatch.of([seat.threads[0].calendar for seat in asked], self._leads),
            live,
            ThreadBatch.of(live, partner, place),
        )
        self._columns = (waiting, made)
        return made

    def decide(self, asked: Sequence[LockstepSeat]) -> list[dict[str, Decision]]:
        """Decide for seats that wait, in the order of their rows; decisions by partner for each."""
        columns = self.columns(asked)
        for seat in asked:
            seat.episode.days[-1].has_decision = True
        plan = self.brain.decide(
            columns.threads,
            columns.calendar,
            columns.rows,
            made=columns.histories if self.brain.needs_histories else None,
            live=[seat.obs for seat in asked],
            calendars=[seat.threads[0].calendar for seat in asked],
            rows=columns.live,
        )
        decisions: list[dict[str, Decision]] = [{} for _ in asked]
        places = columns.threads.seat.tolist()
        for place, thread, decision in zip(places, columns.live, _decisions(plan, columns.live), strict=True):
            decisions[place][thread.partner] = decision
        return decisions

    def _catch_up(self) -> None:
        """Take what has happened to the seats since their latest decisions, of all seats at once."""
        behind = [seat for seat in self._seats if seat.events]
        while behind:
            ends: list[End] = []
            due: list[tuple[int, Calendar]] = []
            starts: list[tuple[int, Observation]] = []
            for seat in behind:
                while seat.events:
                    event = seat.events.popleft()
                    if isinstance(event, Observation):  # what follows belongs to the day that starts
                        starts.append((seat.row, event))
                        break
                    if isinstance(event, Calendar):
                        due.append((seat.row, event))
                    else:
                        ends.append((seat.row, *event))
            self.brain.end_threads(ends)
            if due:
                units = np.array([(calendar.bought[0], calendar.sold[0]) for _, calendar in due])
                self.brain.memory.note_due(units[:, 0], units[:, 1], np.array([row for row, _ in due]))
            if starts:
                obs = ObservationBatch.of([obs for _, obs in starts], self._leads, self._partners)
                self.brain.start_day(obs, np.array([row for row, _ in starts]))
            behind = [seat for seat in behind if seat.events]


def _are(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


def _decisions(plan: PlanBatch, live: Sequence[ThreadObservation]) -> list[Decision]:
    """Return the decision of each thread."""
    decisions = []
    for thread, accept, propose, offer in zip(
        live, plan.accept.tolist(), plan.propose.tolist(), plan.offer.tolist(), strict=True
    ):
        if accept:
            decisions.append(Decision("accept", thread.offer))
        else:
            decisions.append(Decision("reject", Offer(*offer)) if propose else Decision("end"))
    return decisions


class Lockstep:
    """Worlds that are played together.

    Args:
        make_layers: Makes the layers of the seats that start together, see the module.

    Attributes:
        worlds: The worlds, in the order in which they were added.
        seconds: CPU seconds of the batches: columns, layers and brain.
        decisions: Decisions so far, one for each seat and round.
    """

    def __init__(self, make_layers: LayerFactory) -> None:
        self._make_layers = make_layers
        self.worlds: list[LockstepWorld] = []
        self.seconds, self.decisions = 0.0, 0

    def add(self, training_worlds: Sequence[TrainingWorld]) -> list[LockstepWorld]:
        """Start worlds, each up to its first decision; their seats become rows of one batch."""
        added = [LockstepWorld(world) for world in training_worlds]
        self.worlds += added
        self._make_batch()
        return added

    def _make_batch(self) -> None:
        """Make a batch of the seats that have none yet and have started a day."""
        new = [seat for world in self.worlds for seat in world.ours if seat.batch is None and seat.events]
        if new:
            _Batch(new, self._make_layers)

    @property
    def waiting(self) -> list[LockstepSeat]:
        """The seats that wait for a decision."""
        return [world.waiting for world in self.worlds if world.waiting is not None]

    def run(self) -> None:
        """Play all worlds to their ends."""
        gc.freeze()  # the collector would scan all worlds again and again for cycles, and they stay until the end
        try:
            while waiting := self.waiting:
                self.decide(waiting)
        finally:
            gc.unfreeze()

    def decide(self, seats: Sequence[LockstepSeat]) -> None:
        """Decide for seats that wait, and continue their worlds to the next decisions."""
        for batch, asked in self._batches(seats):
            began = time.process_time()
            decided = batch.decide(asked)
            self.seconds, self.decisions = self.seconds + time.process_time() - began, self.decisions + len(asked)
            for seat, decisions in zip(asked, decided, strict=True):
                assert seat.world is not None  # it waits in it
                seat.world.reply(decisions)

    def columns(self, seats: Sequence[LockstepSeat]) -> list[RoundColumns]:
        """Return the rounds of seats that wait as columns, batch by batch."""
        return [batch.columns(asked) for batch, asked in self._batches(seats)]

    def _batches(self, seats: Sequence[LockstepSeat]) -> list[tuple[_Batch, list[LockstepSeat]]]:
        """Group seats by their batches, each in the order of its rows."""
        if any(seat.batch is None for seat in seats):  # a seat that could not start its first day
            self._make_batch()
        grouped: dict[int, tuple[_Batch, list[LockstepSeat]]] = {}
        for seat in sorted(seats, key=lambda seat: seat.row):
            assert seat.batch is not None  # made above
            grouped.setdefault(id(seat.batch), (seat.batch, []))[1].append(seat)
        return list(grouped.values())

    def remove(self, world: LockstepWorld) -> None:
        """Stop a world and forget it."""
        world.close()
        self.worlds.remove(world)

    def close(self) -> None:
        """Stop all worlds."""
        for world in self.worlds:
            world.close()

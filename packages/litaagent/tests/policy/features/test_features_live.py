"""Features from records equal those of live agents, bit by bit on both engines, and hold nothing of the future."""

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scml.std.agents.rand import RandomStdAgent

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.policy.features import THREAD_FEATURES, of_day, of_thread
from litaagent_std.policy.observation import Offer, ThreadObservation, Turn, observe_calendar, observe_day
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.world import WorldRecord
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup

SEEN = {}
"""What each live agent made of its days and threads, with the moment as the key."""


THREADS = {}
"""The threads that our agent saw, with the moment as the key."""


def note(agent, key, made):
    SEEN.setdefault(agent, {})[key] = made


class ProbeTogether(LitaAgentHRL):
    """Our agent, which answers all partners together, and notes its features."""

    def before_step(self):
        super().before_step()
        note(self.id, self._today.day, of_day(self._today))

    def _thread(self, name, state, offer, calendar):
        thread = super()._thread(name, state, offer, calendar)
        THREADS[self.id, thread.day, name, thread.round, offer is not None] = thread
        note(self.id, (thread.day, name, thread.round, offer is not None), of_thread(thread, self._today))
        return thread


class ProbeAlone(RandomStdAgent):
    """An agent that answers partners one by one, and notes its features."""

    today = None

    def before_step(self):
        super().before_step()
        self.today = observe_day(self.awi, self.today)
        self.turns = {}
        note(self.id, self.today.day, of_day(self.today))

    def respond(self, negotiator_id, state, source=None):
        offer = Offer(*state.current_offer)
        self.take(negotiator_id, state, offer)
        self.turns.setdefault(negotiator_id, []).append(Turn(state.step, False, offer))
        return super().respond(negotiator_id, state, source)

    def propose(self, negotiator_id, state, *args, **kwargs):
        if not self.turns.get(negotiator_id):
            self.take(negotiator_id, state, None)
        offer = super().propose(negotiator_id, state, *args, **kwargs)
        if offer is not None:
            self.turns.setdefault(negotiator_id, []).append(Turn(state.step, True, Offer(*offer)))
        return offer

    def take(self, name, state, offer):
        opens = (self.today.n_levels - 1 - self.today.level) % 2 == 0
        thread = ThreadObservation(
            day=self.today.day,
            partner=name,
            buying=name in self.awi.my_suppliers,
            round=state.step,
            n_rounds=self.get_nmi(name).n_steps,
            relative_time=state.relative_time,
            opens=opens,
            offer=offer,
            turns=tuple(self.turns.get(name, ())),
            calendar=observe_calendar(self.awi),
        )
        note(self.id, (thread.day, name, state.step, offer is not None), of_thread(thread, self.today))


@pytest.fixture(scope="module", params=["fast", "scml"])
def played(request):
    """A small world in which both kinds of agents noted their features, and its record."""
    setup = official_setup(3, n_days=7, n_levels=2)
    kinds = [f"{__name__}.{kind.__name__}" for kind in (ProbeTogether, ProbeAlone)]
    setup = setup.with_agents({s: AgentSpec(kinds[s % 2], competitor=True) for s in range(setup.n_seats)})
    recorder = Recorder(setup, WorldFacts(0, 0, 0, 0, setup.seed, (None,) * setup.n_seats))
    SEEN.clear()
    THREADS.clear()
    run_world(setup, engine=request.param, observers=[recorder])
    return WorldRecord(recorder.tables()), dict(SEEN), dict(THREADS)


def test_features_from_records_equal_those_of_the_live_agents(played, same):
    record, seen, _ = played
    compared = {"ProbeTogether": 0, "ProbeAlone": 0}
    for seat, name in enumerate(record.names):
        days = record.observations(seat)
        for obs in days:
            assert same(of_day(obs), seen[name][obs.day]), (name, obs.day)
        for thread, turn in record.decisions(seat):
            live = seen[name][thread.day, thread.partner, thread.round, turn.response is not None]
            assert same(of_thread(thread, days[thread.day]), live), thread
            compared[record.factories[seat]["agent_type"].rpartition(".")[2]] += 1
    assert all(count > 100 for count in compared.values()), compared


def test_the_time_is_the_mechanisms_own(played):
    record, _, _ = played
    days, place = record.observations(0), THREAD_FEATURES["x_thread"].index("relative_time")
    times = {}
    for thread, turn in record.decisions(0):
        made = of_thread(thread, days[thread.day]).x_thread[place]
        assert made == np.float32(turn.relative_time)
        times[float(made)] = thread.round
    assert len(times) > 5


def test_our_agents_threads_are_those_of_the_record(played):
    """All but the calendar: which deals of a round an agent knows depends on whom it answers together."""
    record, _, threads = played
    compared = {True: 0, False: 0}
    for seat, name in enumerate(record.names):
        for thread, turn in record.decisions(seat):
            key = (name, thread.day, thread.partner, thread.round, turn.response is not None)
            if key in threads:
                assert replace(threads[key], calendar=thread.calendar) == thread
                compared[thread.opens] += len(thread.turns) > 1
    assert all(count > 20 for count in compared.values()), compared


def scrambled(record, day, turn):
    """The record with everything changed that was not known to anybody before a turn of a day."""
    rng = random.Random(5)
    known_at_noon = {"markets": {"sold_quantity", "next_trading_price"}, "exogenous": set(), "days": set()}
    ends = {"rounds", "quantity", "time", "unit_price"}  # n_turns says which turns belong to a negotiation
    final = {"factories": {"score", "n_errors"}, "contracts": {"fate_day"}, "negotiations": ends}

    def other(row, columns):
        return row | {c: row[c] + rng.randint(1, 9) for c in columns if type(row[c]) in (int, float)}

    tables = {}
    for name, table in record.tables.items():
        rows = table.to_pylist()
        if name == "turns":
            late = [row for row in rows if (row["day"], row["turn"]) >= (day, turn)]
            said = [{c: row[c] for c in ("quantity", "time", "unit_price", "response")} for row in late]
            rng.shuffle(said)
            changed = {(r["day"], r["turn"]): r | s for r, s in zip(late, said, strict=True)}
            rows = [changed.get((row["day"], row["turn"]), row) for row in rows]
        elif name in ("markets", "days", "exogenous"):
            numbers = set(table.column_names) - {"world", "day", "product", "factory", "buyer", "seller"}
            rows = [
                other(row, numbers if row["day"] > day else known_at_noon[name]) if row["day"] >= day else row
                for row in rows
            ]
        elif name in ("contracts", "settlements", "reports"):
            rows = [other(row, final.get(name, ())) for row in rows if row["day"] < day]
        elif name in final:
            rows = [other(row, final[name]) if row.get("day", day) >= day else row for row in rows]
        tables[name] = pa.Table.from_pylist(rows, schema=table.schema)
    return WorldRecord(tables)


def test_nothing_of_the_future_is_in_a_feature(played, same):
    record, _, _ = played
    day = 4
    turn = sum(row["day"] == day for row in record.tables["turns"].to_pylist()) // 2
    other = scrambled(record, day, turn)
    assert not other.tables["turns"].equals(record.tables["turns"])
    n_threads = n_changed = 0
    for seat in range(len(record.names)):
        days, others = record.observations(seat), other.observations(seat)
        assert all(same(of_day(a), of_day(b)) for a, b in zip(days[: day + 1], others, strict=False))
        n_changed += not same(of_day(days[day + 1]), of_day(others[day + 1]))
        for (thread, row), (thread2, row2) in zip(record.decisions(seat), other.decisions(seat), strict=True):
            if (thread.day, row.turn) > (day, turn):
                break
            assert row.turn == row2.turn
            assert same(of_thread(thread, days[thread.day]), of_thread(thread2, others[thread.day]))
            n_threads += 1
    assert n_threads > 100
    assert n_changed == len(record.names), "the change must be one that features would show"

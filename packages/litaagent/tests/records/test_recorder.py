"""The recorder: complete, the same on both engines, and equal to what agents saw."""

import pyarrow as pa
import pytest

from litaagent_std.records.schema import TABLES, arrow_schema
from litaagent_std.world.events import WorldObserver
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup


@pytest.fixture(scope="module", params=["fast", "scml"])
def watched(request, watched_setup, watching_agents, record_world):
    """A world with bankruptcies, its record, and what its agents noted."""
    setup = watched_setup(11, poor=True)
    watching_agents.DAYS.clear()
    watching_agents.CALENDARS.clear()
    record = record_world(setup, request.param)
    return setup, record, dict(watching_agents.DAYS), dict(watching_agents.CALENDARS)


def test_observations_equal_what_every_agent_saw(watched):
    setup, record, days, _ = watched
    assert len(days) == setup.n_seats
    assert any(row["bankrupt_day"] is not None for row in record.factories), "the world must have bankruptcies"
    for seat, name in enumerate(record.names):
        assert record.observations(seat) == days[name], name


def test_decisions_equal_what_agents_knew_in_their_threads(watched):
    _, record, _, calendars = watched
    compared = 0
    for seat, name in enumerate(record.names):
        answered = [
            (t.day, t.partner, t.round, t.relative_time, t.offer, t.calendar)
            for t, turn in record.decisions(seat)
            if turn.response is not None
        ]
        assert answered == calendars.get(name, []), name
        compared += len(answered)
    assert compared > 500


@pytest.mark.parametrize("engine", ["fast", "scml"])
def test_synchronous_agents_decided_on_the_calendar_of_that_moment(engine, watching_agents, record_world):
    setup = official_setup(21, n_days=8, n_levels=2)
    agents = {s: AgentSpec("watching_agents.WatchingSync") for s in range(0, setup.n_seats, 2)}
    watching_agents.TOGETHER.clear()
    record = record_world(setup.with_agents(agents), engine)
    compared = stale = 0
    for seat in agents:
        noted = watching_agents.TOGETHER[record.names[seat]]
        for thread, turn in record.decisions(seat):
            asked = noted.get((thread.day, thread.partner, thread.round, thread.offer))
            if asked is None:
                assert turn.response == 2, "only who has not offered yet is answered without being asked about"
                continue
            assert thread.calendar == asked, thread
            compared += 1
        rows = [row for row in record.tables["turns"].to_pylist() if row["factory"] == seat]
        assert all(row["decided"] <= row["turn"] for row in rows)
        stale += sum(row["decided"] < row["turn"] for row in rows)
    assert compared > 300
    assert stale > 50, "some turns must have been decided before other turns were taken"


def test_both_engines_give_the_same_record(watched_setup, record_world):
    setup = watched_setup(12, poor=True)
    fast, scml = (record_world(setup, engine) for engine in ("fast", "scml"))
    for name in TABLES:
        assert fast.tables[name].equals(scml.tables[name]), name


def test_tables_have_the_schema_and_no_unplanned_gaps(watched):
    _, record, _, _ = watched
    for name, table in record.tables.items():
        assert table.schema.equals(arrow_schema(name), check_metadata=True)
        table.validate(full=True)
        for column in table.schema:
            assert column.nullable or table[column.name].null_count == 0, (name, column.name)
    assert set(record.tables) == set(TABLES)


class _Counter(WorldObserver):
    def __init__(self):
        self.offers, self.responses, self.contracts, self.ends = [], [], [], []

    def on_offer(self, negotiation, round_, agent, offer):
        self.offers.append((negotiation.day, negotiation.index, round_, agent, *offer))

    def on_response(self, negotiation, round_, agent, response):
        self.responses.append((negotiation.day, negotiation.index, round_, agent, response))

    def on_contract(self, event):
        ref = event.negotiation
        self.contracts.append((ref.day, ref.index, event.quantity, event.time, event.unit_price))

    def on_negotiation_end(self, event):
        ref = event.negotiation
        self.ends.append((ref.day, ref.index, event.round, event.status, event.agreement))


def test_nothing_that_was_said_is_missing(watched_setup, record_world):
    heard = _Counter()
    record = record_world(watched_setup(13), observers=[heard])
    turns = record.tables["turns"].sort_by([("day", "ascending"), ("turn", "ascending")]).to_pylist()
    names = record.names
    offers = [
        (t["day"], t["negotiation"], t["round"], names[t["factory"]], t["quantity"], t["time"], t["unit_price"])
        for t in turns
        if t["quantity"] is not None
    ]
    responses = [
        (t["day"], t["negotiation"], t["round"], names[t["factory"]], t["response"])
        for t in turns
        if t["response"] is not None
    ]
    assert offers == heard.offers
    assert responses == heard.responses
    contracts = record.tables["contracts"].to_pylist()
    signed = [(c["day"], c["negotiation"], c["quantity"], c["time"], c["unit_price"]) for c in contracts]
    assert signed == heard.contracts
    ends = {(n["day"], n["negotiation"]): n for n in record.tables["negotiations"].to_pylist()}
    assert len(ends) == len(heard.ends)
    for day, index, round_, status, agreement in heard.ends:
        row = ends[day, index]
        terms = None if row["quantity"] is None else (row["quantity"], row["time"], row["unit_price"])
        assert (row["rounds"], row["status"], terms) == (round_, status, agreement)


def test_who_ended_a_negotiation_and_why(watched):
    _, record, _, _ = watched
    seen = set()
    for row in record.tables["negotiations"].to_pylist():
        seen.add(row["reason"])
        expected = {
            "accepted": "agreement",
            "ended": "broken",
            "no_offer": "broken",
            "left": "broken",
            "rounds_over": "timedout",
            "error": "error",
        }
        assert row["status"] == expected[row["reason"]]
        assert (row["ended_by"] is None) == (row["reason"] == "rounds_over")
        negotiation = record.negotiation(row["day"], row["negotiation"])
        assert len(negotiation.turns) == row["n_turns"]
        if row["reason"] in ("accepted", "ended"):
            assert record.names[negotiation.turns[-1].factory] == negotiation.ended_by
    assert {"accepted", "rounds_over"} <= seen


def test_contract_fates_follow_bankruptcies(watched):
    _, record, _, _ = watched
    bankrupt = {f["factory"]: f["bankrupt_day"] for f in record.factories if f["bankrupt_day"] is not None}
    contracts = record.tables["contracts"].to_pylist()
    assert {c["fate"] for c in contracts} == {"executed", "nullified"}
    executed = {}
    for c in contracts:
        days = [bankrupt[s] for s in (c["buyer"], c["seller"]) if bankrupt.get(s, c["time"]) < c["time"]]
        assert (c["fate"], c["fate_day"]) == (("nullified", min(days)) if days else ("executed", c["time"]))
        if c["fate"] == "executed":
            for side in ("buyer", "seller"):
                executed[c["time"], c[side], side] = executed.get((c["time"], c[side], side), 0) + c["quantity"]
    for row in record.tables["exogenous"].to_pylist():
        for side in ("buyer", "seller"):
            executed[row["day"], row[side], side] = executed.get((row["day"], row[side], side), 0) + row["quantity"]
    for row in record.tables["settlements"].to_pylist():
        assert row["input_quantity"] == executed.get((row["day"], row["factory"], "buyer"), 0)
        assert row["output_quantity"] == executed.get((row["day"], row["factory"], "seller"), 0)


def test_exceptions_of_agents_are_kept(record_world, watching_agents):
    setup = official_setup(14, n_days=5, n_levels=2).with_agents({0: AgentSpec("watching_agents.Raises")})
    record = record_world(setup)
    [error] = record.tables["errors"].to_pylist()
    assert (error["day"], error["factory"], error["where"]) == (0, 0, "step")
    assert (error["kind"], error["message"]) == ("ValueError", "nothing works")
    assert record.factories[0]["n_errors"] == 1


def test_every_negotiation_equals_the_mechanisms_own_trace(record_world):
    from litaagent_std.world.scml.engine import make_scml_world

    setup = official_setup(15, n_days=6, n_levels=3)
    traces = {}
    world = make_scml_world(setup)
    original = type(world).on_negotiation_start

    def remember(self, neg):
        original(self, neg)
        traces[neg.mechanism.ref.day, neg.mechanism.ref.index] = neg.mechanism

    type(world).on_negotiation_start = remember
    try:
        world.run_to_end()
    finally:
        type(world).on_negotiation_start = original
    record = record_world(setup)
    assert len(traces) == record.tables["negotiations"].num_rows > 100
    n_offers = 0
    for (day, index), mechanism in traces.items():
        owner = {negotiator.id: negotiator.owner.id for negotiator in mechanism.negotiators}
        # negmas repeats an offer in its trace on passes in which somebody waits
        said = [(step, owner[who], tuple(offer)) for step, who, offer in mechanism.extended_trace]
        unique = [item for place, item in enumerate(said) if item not in said[:place]]
        printed = [(r, who, tuple(offer)) for r, who, offer in record.negotiation(day, index).trace]
        assert printed == unique, record.negotiation(day, index)
        n_offers += len(printed)
    assert n_offers > 1000


def test_a_record_of_an_unfinished_world_is_refused(watched_setup):
    from litaagent_std.records.recorder import Recorder, WorldFacts

    setup = watched_setup(16)
    recorder = Recorder(setup, WorldFacts(0, 0, 0, 0, 16, (None,) * setup.n_seats))
    with pytest.raises(RuntimeError, match="not ended"):
        recorder.tables()


def test_recording_leaves_the_world_alone(watched_setup, record_world):
    setup = watched_setup(17, n_days=8)
    alone = run_world(setup)
    record = record_world(setup)
    assert {row["name"]: row["score"] for row in record.factories} == alone.scores
    assert isinstance(record.tables["turns"], pa.Table)

"""Samples are the recorded turns and days with the policy's features and baseline, on both engines."""

import numpy as np
import pytest

from litaagent_std.hrl_xf.data_pipeline.extraction.heuristic import History, fold_heuristic
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import MACRO, MICRO, samples_of_worlds, world_samples
from litaagent_std.policy.columns import ObservationBatch, live_threads
from litaagent_std.policy.features import of_day, of_thread
from litaagent_std.policy.l1.thread import thread_baseline
from litaagent_std.records.columns import ACCEPT, END, REJECT
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.threads import recorded_threads
from litaagent_std.records.world import WorldRecord
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup


@pytest.fixture(scope="module")
def samples(record, whole):
    return whole(record)


def rows_of(samples, seat):
    return np.flatnonzero(samples.macro["factory"][samples.micro["day_row"]] == seat)


def test_days_are_those_of_the_record(record, samples):
    for row in range(len(samples.macro["day"])):
        seat, day = int(samples.macro["factory"][row]), int(samples.macro["day"][row])
        obs = observations_of(record, seat)[day]
        assert samples.macro["x_static"][row].tobytes() == of_day(obs).x_static.tobytes()
        assert samples.macro["price"][row].tolist() == [np.float32(obs.price_in), np.float32(obs.price_out)]
        assert samples.macro["lines"][row] == obs.n_lines


_CACHE = {}


def observations_of(record, seat):
    if (id(record), seat) not in _CACHE:
        _CACHE[id(record), seat] = record.observations(seat)
    return _CACHE[id(record), seat]


def test_every_turn_is_a_sample_with_what_its_factory_knew(record, samples, known_threads):
    total = 0
    for seat in range(len(record.names)):
        observations, threads, rows = observations_of(record, seat), known_threads(record, seat), rows_of(samples, seat)
        assert len(threads) == len(rows)
        total += len(rows)
        for row, (negotiation, thread, turn) in zip(rows.tolist(), threads, strict=True):
            made = of_thread(thread, observations[thread.day])
            for name, field in (("history", "history"), ("history_mask", "mask")):
                assert samples.micro[name][row].tobytes() == getattr(made, field).tobytes()
            for name in ("ranges", "x_thread", "x_partner"):
                assert samples.micro[name][row].tobytes() == getattr(made, name).tobytes(), name
            assert samples.micro["thread"][row] == negotiation
            assert samples.micro["round"][row] == turn["round"]
            assert samples.macro["day"][samples.micro["day_row"][row]] == thread.day
            assert samples.micro["side"][row] == (0 if thread.buying else 1)
    assert total == record.tables["turns"].num_rows > 1000


def test_actions_are_the_recorded_ones(record, samples, known_threads):
    for seat in range(len(record.names)):
        for row, (_, thread, turn) in zip(rows_of(samples, seat).tolist(), known_threads(record, seat), strict=True):
            made = turn["quantity"] is not None
            op = ACCEPT if turn["response"] == 0 else REJECT if made else END
            assert samples.micro["op"][row] == op
            offer = (turn["quantity"], turn["time"] - thread.day, turn["unit_price"]) if made else (-1, -1, -1)
            assert tuple(samples.micro["offer"][row].tolist()) == offer
            seen = thread.offer
            received = (-1, -1, -1) if seen is None else (seen.quantity, seen.time - thread.day, seen.price)
            assert tuple(samples.micro["received"][row].tolist()) == received


def test_baselines_are_those_of_the_policy_thread_by_thread(record, samples, known_threads):
    seats = range(len(record.names))
    obs, turns = record.days.batch(seats), [np.flatnonzero(record.columns.factory == seat) for seat in seats]
    known = recorded_threads(record.columns, record.days, seats, turns)
    (folded,) = fold_heuristic([History(record, seats, obs, known.threads, np.concatenate(turns))])
    plans, parameters = folded.plans, folded.parameters
    kinds = set()
    for seat in seats:
        days = observations_of(record, seat)
        for row, (_, thread, _turn) in zip(rows_of(samples, seat).tolist(), known_threads(record, seat), strict=True):
            day = np.array([seat * len(days) + thread.day])
            one = live_threads([thread], [days[thread.day]], [0])
            kind, counter = thread_baseline(
                one, ObservationBatch.of([days[thread.day]]), plans.take(day), parameters.take(day)
            )
            kinds.add(int(kind[0]))
            assert samples.micro["baseline_op"][row] == kind[0]
            assert samples.micro["baseline"][row].tolist() == counter[0].tolist()
    assert kinds == {ACCEPT, REJECT, END}


def test_counter_offers_are_taken_where_the_contract_says_so(record, samples):
    seats = range(len(record.names))
    taken = sum(int((samples.micro["taken"][rows_of(samples, seat)] == 1).sum()) for seat in seats)
    assert taken == record.tables["contracts"].num_rows
    not_offers = samples.micro["op"] != REJECT
    assert (samples.micro["taken"][not_offers] == -1).all()
    assert (samples.micro["taken"] == 0).sum() > 100


def test_arrays_have_the_promised_types_and_shapes(record, samples):
    assert {name: values.dtype for name, values in samples.macro.items()} == {k: np.dtype(v) for k, v in MACRO.items()}
    plain = world_samples(record, [0, 1])
    assert {name: values.dtype for name, values in plain.micro.items()} == {k: np.dtype(v) for k, v in MICRO.items()}
    assert samples.micro["history"].dtype == np.float32
    assert samples.micro["history"].shape[1] == 2 * record.facts["n_rounds"]
    within = samples.micro["op"] == REJECT
    offer = samples.micro["offer"][within]
    assert (offer >= samples.micro["issue_low"][within]).all()
    assert (offer <= samples.micro["issue_high"][within]).all()


def test_a_wider_horizon_is_padded_and_masked(record):
    narrow, wide = world_samples(record, [0]), world_samples(record, [0], horizon=40)
    n = narrow.macro["x_temporal"].shape[1]
    assert wide.macro["x_temporal"].shape[1] == 41
    assert np.array_equal(wide.macro["x_temporal"][:, :n], narrow.macro["x_temporal"])
    assert not wide.macro["mask"][:, n:].any()
    assert not wide.macro["x_temporal"][:, n:].any()
    assert wide.macro["goal_q"].shape == narrow.macro["goal_q"].shape


def test_the_heuristic_folded_over_our_own_agents_record_decides_as_it_did():
    setup = official_setup(3, n_days=10, n_levels=3)
    seats = [next(seat for seat, factory in enumerate(setup.factories) if factory.level == level) for level in range(3)]
    ours = AgentSpec("litaagent_std.agents.hrl.LitaAgentHRL", {"l2": "heuristic"}, competitor=True)
    setup = setup.with_agents(dict.fromkeys(seats, ours))
    recorder = Recorder(setup, WorldFacts(0, 0, 0, 0, 7, (None,) * setup.n_seats))
    run_world(setup, observers=[recorder])
    micro = world_samples(WorldRecord(recorder.tables()), seats).micro
    same = (micro["op"] == micro["base_op"]) & (
        (micro["op"] != REJECT) | (micro["offer"] == micro["base_offer"]).all(1)
    )
    assert len(same) > 300
    assert same.mean() > 0.95  # the order in which offers came is not always in the record


def test_samples_of_a_world_do_not_depend_on_the_worlds_beside_it(record):
    parts = [(record, [0, 1, 2]), (record, [3])]
    for (world, seats), beside in zip(parts, samples_of_worlds(parts), strict=True):
        alone = world_samples(world, seats)
        for mine, theirs in ((alone.macro, beside.macro), (alone.micro, beside.micro)):
            assert all(np.array_equal(mine[name], theirs[name]) for name in mine)

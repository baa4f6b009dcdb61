"""L2's labels are what the records say, by hand."""

import numpy as np
import pytest

from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import world_samples
from litaagent_std.policy.buckets import bucket_of


def by_bucket(record, acts):
    """Units and value by (day, side, bucket) of (day, side, lead, quantity, price)."""
    horizon = record.facts["horizon"]
    units, value, largest = {}, {}, {}
    for day, side, lead, quantity, price in acts:
        key = (day, side, bucket_of(lead, horizon))
        units[key] = units.get(key, 0) + quantity
        value[key] = value.get(key, 0) + quantity * price
        largest[key] = max(largest.get(key, 0), quantity)
    return units, value, largest


@pytest.mark.parametrize("seat", [0, 4])
def test_deals_are_the_days_contracts(record, seat):
    acts = [
        (c["day"], 0 if c["buyer"] == seat else 1, c["time"] - c["day"], c["quantity"], c["unit_price"])
        for c in record.tables["contracts"].to_pylist()
        if seat in (c["buyer"], c["seller"])
    ]
    units, value, _ = by_bucket(record, acts)
    macro = world_samples(record, [seat], labels="deals").macro
    assert macro["goal_q"].sum() == sum(units.values()) > 0
    for (day, side, bucket), quantity in units.items():
        row = int(np.flatnonzero(macro["day"] == day)[0])
        assert macro["goal_q"][row, side, bucket] == quantity
        assert macro["goal_p"][row, side, bucket] == np.float32(value[day, side, bucket] / quantity)


@pytest.mark.parametrize("seat", [0, 4])
def test_intentions_are_first_acts_within_the_need(record, seat, known_threads):
    acts, seen = [], set()
    for negotiation, thread, turn in known_threads(record, seat):
        accepted = turn["response"] == 0
        offer = thread.offer if accepted else (turn["quantity"], turn["time"], turn["unit_price"])
        if negotiation not in seen and offer[0] is not None:
            seen.add(negotiation)
            acts.append((thread.day, 0 if thread.buying else 1, offer[1] - thread.day, offer[0], offer[2]))
    units, value, largest = by_bucket(record, acts)
    macro = world_samples(record, [seat]).macro
    observations = record.observations(seat)
    assert units
    assert (macro["goal_q"] > 0).sum() == len(units)
    for (day, side, bucket), quantity in units.items():
        row = int(np.flatnonzero(macro["day"] == day)[0])
        got = float(macro["goal_q"][row, side, bucket])
        if bucket == 0:
            need = (observations[day].needed_supplies, observations[day].needed_sales)[side]
            assert got == min(quantity, max(need, largest[day, side, bucket], 0))
        assert largest[day, side, bucket] <= got <= quantity
        assert macro["goal_p"][row, side, bucket] == np.float32(value[day, side, bucket] / quantity)


def test_prices_are_masked_where_nothing_is_wanted(record):
    for labels in ("intention", "deals"):
        macro = world_samples(record, range(len(record.names)), labels=labels).macro
        assert np.array_equal(macro["goal_p_mask"], macro["goal_q"] > 0)
        assert not macro["goal_p"][~macro["goal_p_mask"]].any()
        sides = np.repeat(macro["x_role"][:, :, None], macro["goal_q"].shape[2], axis=2)
        assert not macro["goal_q"][sides == 0].any()


def test_return_to_go_is_what_is_still_to_be_earned(record):
    macro = world_samples(record, [1]).macro
    final = record.factories[1]["score"]
    for row, day in enumerate(macro["day"].tolist()):
        obs = record.observations(1)[day]
        assert macro["return_to_go"][row] == pytest.approx(final - obs.cash / obs.initial_balance, abs=1e-6)

"""Soft bounds: what is covered, what is trusted, and what a budget buys."""

from dataclasses import replace

import numpy as np
import pytest

from litaagent_std.policy.columns import ObservationBatch
from litaagent_std.policy.l1.risk import bounded_goals, purchase_cap, sale_caps, sellable
from litaagent_std.policy.l1.safety import bounds
from litaagent_std.policy.layers.adaptors import stacked
from litaagent_std.policy.memory import Memory
from litaagent_std.policy.observation import Calendar
from litaagent_std.policy.parameters import ParameterColumns, Parameters
from litaagent_std.policy.plan import Goals

NAN, INF = float("nan"), float("inf")


def facts(obs, *, persistent=True, **parameters):
    batch, p = ObservationBatch.of([obs]), ParameterColumns.of([Parameters(assume_persistent=persistent, **parameters)])
    memory = Memory(1, obs.horizon + 1, p)
    memory.start_day(batch)
    limits = bounds(batch, batch.calendar, memory.now.persistent)
    return batch, batch.calendar, limits, memory.now, p


def caps_of(*facts):
    return tuple(sale_caps(*facts)[0].tolist())


def bounded(goals, obs, cap, most):
    """Goals of one factory, bounded."""
    leads = obs.horizon + 1
    made = bounded_goals(
        stacked([goals], leads), ObservationBatch.of([obs]), np.full((1, leads), cap), np.array([most])
    )
    return made.row(0, leads)


def calendar(sold=0, bought=0):
    return Calendar(
        (bought, *(0,) * 10), (15.0 * bought, *(0.0,) * 10), (sold, *(0,) * 10), (20.0 * sold, *(0.0,) * 10)
    )


def test_without_risk_only_covered_units_are_sold(observation):
    obs = observation(stock_in=6, calendar=calendar(sold=2))
    assert caps_of(*facts(obs, risk_budget=0.0)) == (4, *(6,) * 10)
    depleting = facts(obs, persistent=False, risk_budget=0.0)
    assert sellable(*depleting).sum() == 4, "where stock depletes no unit is counted for two days"


def test_a_budget_buys_units_by_their_penalty_up_to_the_lines(observation):
    obs = observation(stock_in=6, shortfall_penalty_mean=0.5)
    [trusted] = sellable(*facts(obs, risk_budget=0.1))
    caps = caps_of(*facts(obs, risk_budget=0.1))
    assert caps[0] == trusted[0] + 2  # 0.1 · 10 lines / 0.5
    assert max(caps_of(*facts(obs, risk_budget=1.0))) == 10


def test_purchases_stop_at_what_can_be_used_and_paid(observation):
    obs = observation(stock_in=4, calendar=calendar(sold=3, bought=2))
    assert purchase_cap(*facts(obs, stock_target=1.0)) == 10 + 3 - 4 - 2
    assert purchase_cap(*facts(obs, persistent=False)) == 11 * 10 - 4 - 2
    assert purchase_cap(*facts(replace(obs, cash=100.0))) == 3  # (100 − 30 owed − 2·3 to produce) // (16 + 2)
    assert purchase_cap(*facts(replace(obs, stock_in=40))) == 0


def test_goals_are_brought_under_the_caps_and_made_finite(observation):
    leads = 11
    wild = Goals((99,) * leads, (NAN,) * leads, (-3, 99, NAN, *(4,) * 8), (INF,) * leads, (NAN,) * leads, NAN)
    made = bounded(wild, observation(), 5, 7)
    assert made.q_buy == (7,) * leads
    assert made.q_sell == (0, 5, 0, *(4,) * 8)
    assert made.p_buy == (13.0,) * leads, "an unknown price buys at the lowest only"
    assert made.p_sell == (22.0,) * leads, "and sells at the highest"
    assert made.unit_value == 13.0


def test_goals_for_other_leads_are_refused(observation):
    short = stacked([Goals((1,), (1.0,), (1,), (1.0,), (1.0,), 1.0)], 1)
    with pytest.raises(ValueError, match="goals need the shape"):
        bounded_goals(short, ObservationBatch.of([observation()]), np.full((1, 11), 5), np.array([7]))


def test_urgency_is_brought_between_0_and_1_and_may_be_missing(observation):
    obs = observation()
    leads = obs.horizon + 1
    plain = Goals((1,) * leads, (1.0,) * leads, (1,) * leads, (1.0,) * leads, (1.0,) * leads, 1.0)
    assert bounded(plain, obs, 10, 10) == plain
    wild = replace(plain, u_sell=(NAN, INF, -1.0, 2.0, *(0.5,) * (leads - 4)))
    assert bounded(wild, obs, 10, 10).u_sell == (0.0, 0.0, 0.0, 1.0, *(0.5,) * (leads - 4))
    assert plain.urgency(selling=True) is None
    assert replace(plain, u_sell=(0.0,) * leads).urgency(selling=True) is None

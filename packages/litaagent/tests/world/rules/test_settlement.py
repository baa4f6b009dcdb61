"""The settlement of a day against scml's own utility function, and the rule of inventory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.world.rules.limits import find_limit_on_grid
from litaagent_std.world.rules.settlement import Terms, breach, next_inventory, settle

from scml.oneshot.ufun import OneShotUFun  # isort: skip

LINES = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30)), max_size=6)
TERMS = st.builds(
    Terms,
    balance=st.floats(-100, 3000),
    n_lines=st.integers(1, 10),
    cost=st.integers(1, 12),
    stock_in=st.integers(0, 40),
    stock_in_bill=st.integers(0, 400),
    stock_out=st.integers(0, 20),
    stock_out_bill=st.integers(0, 700),
    shortfall_price=st.floats(1, 60),
    shortfall_penalty=st.floats(0, 1),
    storage_price=st.floats(1, 60),
    storage_cost=st.floats(0, 0.05),
    disposal_price=st.floats(1, 60),
    disposal_cost=st.just(0.0),
)


def scml_ufun(terms, **more):
    return OneShotUFun(
        agent_id="me",
        perishable=False,
        ex_qin=terms.stock_in,
        ex_pin=terms.stock_in_bill,
        ex_qout=terms.stock_out,
        ex_pout=terms.stock_out_bill,
        production_cost=terms.cost,
        disposal_cost=terms.disposal_cost,
        storage_cost=terms.storage_cost,
        shortfall_penalty=terms.shortfall_penalty,
        input_penalty_scale=terms.disposal_price,
        storage_penalty_scale=terms.storage_price,
        output_penalty_scale=terms.shortfall_price,
        input_agent=True,
        output_agent=False,
        input_product=0,
        n_input_negs=0,
        n_output_negs=0,
        current_step=3,
        time_range=(3, 3),
        n_lines=terms.n_lines,
        current_balance=terms.balance,
        **more,
    )


@given(LINES, LINES, TERMS)
def test_settlement_is_scmls_to_the_last_bit(inputs, outputs, terms):
    offers = [(quantity, 3, price) for price, quantity in inputs + outputs]
    sides = [False] * len(inputs) + [True] * len(outputs)
    expected = scml_ufun(terms).from_offers(tuple(offers), tuple(sides), return_info=True)
    settled = settle(list(inputs), list(outputs), terms)
    assert settled.profit == expected.utility
    assert settled.produced == expected.producible
    assert settled.total_input == expected.total_input
    assert settled.total_output == expected.total_output
    assert settled.shortfall == expected.shortfall_quantity
    assert settled.shortfall_penalty == expected.shortfall_penalty
    assert settled.storage_cost == expected.storage_cost


@given(LINES, LINES, TERMS)
def test_nothing_is_made_from_nothing(inputs, outputs, terms):
    settled = settle(list(inputs), list(outputs), terms)
    assert 0 <= settled.produced <= min(settled.total_input, settled.total_output, terms.n_lines)
    assert settled.shortfall == settled.total_output - settled.produced


@given(st.booleans(), st.integers(0, 12), st.integers(0, 12), st.integers(1, 20), st.integers(1, 40), TERMS)
def test_limits_are_those_of_a_scan(best, most_in, most_out, in_price, out_price, terms):
    ufun = scml_ufun(
        terms,
        input_qrange=(0, most_in),
        output_qrange=(0, most_out),
        input_prange=(in_price, in_price),
        output_prange=(out_price, out_price),
    )
    expected = ufun.find_limit_brute_force(best, 1, 1)
    found = find_limit_on_grid(best, most_in, most_out, in_price, out_price, [(0.0, 0)], [(0.0, 0)], terms)
    assert found == (expected.utility, expected.input_quantity, expected.output_quantity, expected.producible)


@pytest.mark.parametrize(
    ("rule", "inventory", "bought", "produced", "after"),
    [("as_shipped", 7, 5, 10, 7), ("as_shipped", 7, 12, 10, 9), ("depleting", 7, 5, 10, 2), ("depleting", 0, 4, 4, 0)],
)
def test_only_depleting_stock_is_consumed(rule, inventory, bought, produced, after):
    assert next_inventory(rule, inventory, bought, produced) == after


@given(st.integers(0, 40), st.integers(0, 40), TERMS)
def test_breaches_are_scmls(bought, sold, terms):
    ufun = scml_ufun(terms)
    assert breach(bought, sold, terms) == (ufun.is_breach(bought, sold), ufun.breach_level(bought, sold))

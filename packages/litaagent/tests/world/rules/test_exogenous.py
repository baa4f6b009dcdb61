"""Exogenous contracts: grouping, totals of a seat, and the published summary."""

from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.world.rules.exogenous import ExogenousContract, group_by_day, summarize, total_of_seat

N_PRODUCTS, N_SEATS = 3, 4
CONTRACTS = st.lists(
    st.builds(
        ExogenousContract,
        day=st.integers(0, 5),
        product=st.integers(0, N_PRODUCTS - 1),
        quantity=st.integers(0, 20),
        unit_price=st.integers(1, 50),
        seller=st.integers(-1, N_SEATS - 1),
        buyer=st.integers(-1, N_SEATS - 1),
    )
)


@given(CONTRACTS)
def test_days_keep_the_order_of_their_contracts(contracts):
    by_day = group_by_day(contracts)
    assert sum(map(len, by_day.values())) == len(contracts)
    for day, group in by_day.items():
        assert group == [contract for contract in contracts if contract.day == day]


@given(CONTRACTS)
def test_totals_of_all_seats_and_the_summary_agree(contracts):
    totals = [total_of_seat(contracts, seat) for seat in range(-1, N_SEATS)]
    summary = summarize(contracts, N_PRODUCTS)
    assert sum(total.input_quantity for total in totals) == sum(quantity for quantity, _ in summary)
    assert sum(total.output_quantity for total in totals) == sum(quantity for quantity, _ in summary)
    assert sum(total.input_bill for total in totals) == sum(bill for _, bill in summary)
    assert sum(total.output_bill for total in totals) == sum(bill for _, bill in summary)


def test_a_seat_may_buy_and_sell():
    contracts = [ExogenousContract(0, 0, 3, 10, -1, 2), ExogenousContract(0, 1, 4, 20, 2, -1)]
    assert total_of_seat(contracts, 2) == (3, 30, 4, 80)
    assert total_of_seat(contracts, 1) == (0, 0, 0, 0)

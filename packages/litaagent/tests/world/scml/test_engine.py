import pytest

from litaagent_std.world.scml.engine import make_scml_world, plain_scml_world
from litaagent_std.world.scml.trace import Trace, Window, first_difference
from litaagent_std.world.setup import official_setup

GREEDY = "scml.std.agents.greedy.GreedyStdAgent"
RANDOM = "scml.std.agents.rand.RandomStdAgent"
SYNC = "scml.std.agents.rand.SyncRandomStdAgent"
CAUTIOUS = "scml_agents.scml2024.standard.team_miyajima_std.cautious.CautiousStdAgent"
PENGUIN = "scml_agents.scml2024.standard.team_penguin.penguinagent.PenguinAgent"


def trace_of(setup, **options):
    trace = Trace()
    make_scml_world(setup, [trace], **options).run_to_end()
    return trace


def test_the_reference_is_scmls_own_world_with_the_same_configuration():
    setup = official_setup(4, n_days=5)
    ours, plain = make_scml_world(setup), plain_scml_world(setup)
    for name in ("n_steps", "horizon", "price_range_fraction", "quantity_multiplier", "perishable", "bankruptcy_limit"):
        assert getattr(ours, name) == getattr(plain, name), name
    assert list(ours.agents) == list(plain.agents)
    assert ours.initial_balances == plain.initial_balances
    assert {day: len(c) for day, c in ours.exogenous_contracts.items()} == {
        day: len(c) for day, c in plain.exogenous_contracts.items()
    }


@pytest.mark.parametrize(("seed", "inventory"), [(0, "as_shipped"), (0, "depleting"), (1, "as_shipped")])
def test_every_day_is_settled_by_the_rules(auditor, seed, inventory):
    setup = official_setup(seed, [PENGUIN, CAUTIOUS], n_days=12, n_levels=2 + seed)
    audit = auditor(setup, inventory)
    make_scml_world(setup, [audit], inventory=inventory).run_to_end()
    assert audit.phase == "after"
    assert audit.n_settled == 12 * setup.n_seats
    assert audit.n_contracts > 0


def test_stock_depletes_only_under_the_rule_that_says_so():
    setup = official_setup(0, [CAUTIOUS], n_days=12, n_levels=2, fill="competitors")
    stocks = {}
    for inventory in ("as_shipped", "depleting"):
        world = make_scml_world(setup, inventory=inventory)
        world.run_to_end()
        stocks[inventory] = sum(world._inventory_input.values())
    assert stocks["depleting"] < stocks["as_shipped"]


def test_a_window_shows_the_position_of_a_difference():
    setup = official_setup(1, n_days=5, n_levels=2)
    trace, other = trace_of(setup), trace_of(setup.with_seed(2))
    position = first_difference(trace, other)
    window = Window(position)
    make_scml_world(setup, [window]).run_to_end()
    assert len(window.texts) == min(position, 4) + 1
    assert window.fingerprints == trace.fingerprints


def test_with_agents_that_draw_nothing_the_reference_equals_scmls_unmodified_world(probe_agents):
    setup = official_setup(1, ["probe_agents.Steady"], n_days=8, n_levels=3, fill="competitors")
    ours, plain = make_scml_world(setup), plain_scml_world(setup, sync_calls=True)
    costs = setup.daily_costs()
    for seat, name in enumerate(ours.agents):
        if seat < setup.n_seats:
            plain.agent_shortfall_penalty[name] = costs.shortfall_penalty[seat]
            plain.agent_storage_cost[name] = costs.storage_cost[seat]
            plain.agent_disposal_cost[name] = costs.disposal_cost[seat]
    ours.run_to_end()
    plain.run()

    def contracts(world):
        keys = ("buyer_name", "seller_name", "quantity", "delivery_time", "unit_price", "signed_at", "executed_at")
        return sorted(tuple(record[key] for key in keys) for record in world.saved_contracts)

    assert contracts(ours) == contracts(plain)
    assert len(contracts(ours)) > 100
    assert plain.scores() == pytest.approx(ours.scores(), rel=1e-12)
    assert plain.trading_prices == pytest.approx(ours.trading_prices, rel=1e-12)

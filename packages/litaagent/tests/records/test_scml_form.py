"""Logs in scml's form say what scml's own say."""

import csv
import io
import json

import pytest

from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.scml_form import world_files
from litaagent_std.records.world import WorldRecord
from litaagent_std.world.scml.engine import make_scml_world
from litaagent_std.world.setup import official_setup


@pytest.fixture(scope="module")
def both():
    """A world run by scml, and its files from the record."""
    setup = official_setup(31, n_days=8, n_levels=2)
    recorder = Recorder(setup, WorldFacts(0, 0, 0, 0, 31, (None,) * setup.n_seats))
    world = make_scml_world(setup, [recorder])
    world.run_to_end()
    return world, world_files(WorldRecord(recorder.tables()))


def rows(files, name):
    return list(csv.DictReader(io.StringIO(files[name])))


def test_daily_statistics_equal_scmls(both):
    world, files = both
    table = rows(files, "stats.csv")
    own = world.stats
    shared = [column for column in table[0] if column in own]
    factories = len(world.seats)
    assert len(shared) >= 11 * factories + 3 * world.n_products
    for column in shared:
        if column in ("n_contracts_concluded", "n_contracts_signed", "n_contracts_executed"):
            continue  # scml counts a contract's signing and execution in part on other days
        values = [row[column] for row in table]
        expected = [str(value) if isinstance(value, bool) else value for value in own[column]]
        if isinstance(expected[0], str):
            assert values == expected, column
        else:
            assert [float(value) for value in values] == pytest.approx([float(v) for v in expected]), column


def test_contracts_and_negotiations_have_scmls_terms(both):
    world, files = both
    contracts = [row for row in rows(files, "contracts.csv") if row["negotiation_id"]]
    own = [c for c in world.saved_contracts if "SELLER" not in c["partners"] and "BUYER" not in c["partners"]]
    terms = ("seller", "buyer", "delivery_time", "quantity", "unit_price", "signed_at", "executed_at", "product_name")
    assert sorted(tuple(row[key] for key in terms) for row in contracts) == sorted(
        tuple(str(row[key]) for key in terms) for row in own
    )
    negotiations = rows(files, "negotiations.csv")
    agreed = [row for row in negotiations if row["final_status"] == "succeeded"]
    assert len(agreed) == len(contracts)
    for row in negotiations:
        offers, history = eval(row["offers"]), eval(row["history"])
        assert set(offers) == {row["buyer"], row["seller"]}
        told = [offer for state in history for _, offer in state["new_offers"]]
        assert len(told) == sum(len(some) for some in offers.values())
        if row["agreement"]:
            assert eval(row["agreement"]) in told


def test_agents_and_configuration_are_there(both):
    world, files = both
    agents, info = json.loads(files["agents.json"]), json.loads(files["info.json"])
    assert list(agents) == [seat.id for seat in world.seats]
    assert info["n_steps"] == 8
    assert set(info["agent_profiles"]) == set(agents)
    assert all(agents[seat.id]["type"].endswith(seat.type_name.split(":")[-1]) for seat in world.seats)

"""The reasons of a seat on the page of an agent, from a record that holds them."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from apexrl.charts import plotly_figure
from litaagent_std.dashboard.decisions import Choice, Deal, Goal, SeatDecisions, decisions_of
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.report import pages_of
from litaagent_std.dashboard.routes import page_at
from litaagent_std.dashboard.views import decisions as view
from litaagent_std.dashboard.warehouse import Warehouse
from litaagent_std.records.reader import WorldKey, open_records

AGENT = "name=ours&agent=LitaAgentHRL"
OVERALL = ["sales", "troubles", "prices_taken", "wealth", "acceptance"]


@pytest.fixture(scope="module")
def record(with_ours):
    return open_records(with_ours / "ours").world(WorldKey(0, 0))


@pytest.fixture(scope="module")
def seat(record):
    [seat] = [row["factory"] for row in record.factories if row["competitor"] == "LitaAgentHRL"]
    return seat


@pytest.fixture(scope="module")
def decisions(with_ours, seat):
    return decisions_of(Warehouse(with_ours / "ours/records"), 0, seat)


def names(page):
    return [chart.name for chart in page.charts()]


def test_decisions_are_those_of_the_record(record, seat, decisions):
    assert (decisions.agent, decisions.agent_class) == (record.names[seat], "LitaAgentHRL")
    factory = next(row for row in record.factories if row["factory"] == seat)
    is_middle = 0 < factory["level"] < max(row["level"] for row in record.factories)
    assert decisions.layers == ("learned" if is_middle else "heuristic", "types", "joint"), "L2 is of the middle level"
    assert len(decisions.interventions) == decisions.n_days == 8
    signed = [
        (row["day"], row["quantity"], row["time"], row["unit_price"])
        for row in record.tables["contracts"].to_pylist()
        if seat in (row["buyer"], row["seller"])
    ]
    assert [(deal.day, deal.quantity, deal.time, deal.price) for deal in decisions.deals] == signed != []
    turns = [turn for _, turn in record.decisions(seat)]
    assert len(decisions.choices) == len(turns)
    accepted = sum(choice.kind == "accept" for choice in decisions.choices)
    assert accepted == sum(turn.response == 0 for turn in turns) > 0
    assert all(choice.because for choice in decisions.choices)
    logged = record.reasons(seat).decisions
    assert [(c.day, c.round, c.partner) for c in decisions.choices] == [(r.day, r.round, r.partner) for r in logged]


def test_a_page_shows_the_reasons_of_a_chosen_seat(with_ours, seat, decisions, texts, html):
    history = History(with_ours)
    plain = page_at(history, "/agent", f"?{AGENT}")
    assert names(plain) == OVERALL
    assert any("Choose one of its seats" in text for text in texts(plain, "note"))
    page = page_at(history, "/agent", f"?{AGENT}&seat=0-{seat}")
    reasons = ["goal_units_sell", "goal_gap_sell", "goal_prices_sell", "choices", "goal_delivery"]  # L1 changed nothing
    assert names(page) == [*reasons, *OVERALL]
    assert not page.live
    json.dumps([plotly_figure(chart) for chart in page.charts()], allow_nan=False)
    assert html(page).index("goal_units_sell") < html(page).index("In all its worlds")
    table = page_at(history, "/agent", f"?{AGENT}&seat=0-{seat}&day=3").context["reasons"].decisions
    assert len(table.rows) == sum(choice.day == 3 for choice in decisions.choices) > 0


@pytest.mark.parametrize("address", ["name=without&agent=LitaAgentHRL&seat=0-{}", "name=ours&agent=RandomStdAgent"])
def test_a_record_without_reasons_says_how_to_get_them(with_ours, seat, texts, address):
    page = page_at(History(with_ours), "/agent", "?" + address.format(seat))
    assert names(page) == OVERALL
    [note] = texts(page, "note")
    assert "hold no reasons of this agent" in note
    assert "lita collect --reasons" in note


def test_learned_weights_and_both_sides_are_drawn(with_ours, seat, decisions, monkeypatch):
    goals = tuple(replace(goal, buying=True) for goal in decisions.goals)
    choices = tuple(replace(choice, alpha=0.25) for choice in decisions.choices)
    changed = replace(decisions, goals=decisions.goals + goals, choices=choices)
    monkeypatch.setattr(view, "decisions_of", lambda *_: changed)
    page = page_at(History(with_ours), "/agent", f"?{AGENT}&seat=0-{seat}")
    assert {"goal_units_buy", "goal_gap_buy", "goal_prices_buy", "weights"} <= set(names(page))
    weights = next(chart for chart in page.charts() if chart.name == "weights")
    assert {value for series in weights.series for value in series.y} == {0.25, None}


def test_a_report_has_the_same_figures(with_ours):
    page = pages_of(with_ours / "ours", 0, "LitaAgentHRL")[-1]
    assert page.title == "LitaAgentHRL"
    assert "goal_units_sell" in names(page)


def test_a_side_of_a_day_in_numbers():
    offer = (4, 1, 20)
    common = {"day": 0, "buying": False, "proposed": None, "limit": None, "chance": None, "because": "so"}
    choices = (
        Choice(round=0, partner="a", received=offer, kind="accept", offer=offer, alpha=0.5, **common),
        Choice(round=0, partner="b", received=offer, kind="end", offer=None, alpha=1.0, **common),
        Choice(round=1, partner="b", received=None, kind="end", offer=None, alpha=None, **common),
    )
    clipped = Choice(
        **(common | {"proposed": (9, 1, 20)}),
        round=2,
        partner="b",
        received=None,
        kind="reject",
        offer=offer,
        alpha=None,
    )
    decisions = SeatDecisions(
        world=0,
        seat=0,
        agent="00",
        agent_class="LitaAgentHRL",
        layers=("heuristic", "learned", "learned"),
        n_days=2,
        interventions=(1, 0),
        goals=(Goal(day=0, buying=False, units=(3, 4), prices=(19.0, 20.0)),),
        choices=(*choices, clipped),
        deals=(Deal(day=0, buying=False, partner="a", quantity=4, time=1, price=20, goal_price=20.0),),
    )
    first, second = decisions.sides(buying=False)
    assert (first.wanted, first.signed, first.received, first.accepted, first.rounds) == (7, 4, 2, 1, 1)
    assert first.alpha == 0.75
    assert (second.wanted, second.alpha) == (0, None)
    assert not any(side.wanted or side.received for side in decisions.sides(buying=True))
    assert [choice.clipped for choice in decisions.choices] == [False, False, False, True]


def test_the_server_itself_loads_nothing_that_plays():
    code = "import sys, litaagent_std.dashboard.server; print({'scml', 'negmas', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

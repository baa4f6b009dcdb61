"""An agent in a tournament: what it sold, at which prices, with whom it agreed, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from apexrl.charts import Chart, Series, color_of
from litaagent_std.dashboard.history import NotHereError
from litaagent_std.dashboard.page import Filter, Link, Page, Table, number
from litaagent_std.dashboard.views.decisions import reasons_of
from litaagent_std.dashboard.warehouse import Row, Warehouse
from litaagent_std.records.reader import RECORDS_FOLDER

__all__ = ["agent_page"]

_PARTS: Final = 20  # parts of a world's length, so that worlds of different lengths can be compared

_SEATS: Final = """
    SELECT count(*) AS seats, avg(score) AS score, avg((bankrupt_day IS NOT NULL)::INT) AS bankrupt,
           sum(n_errors) AS errors, any_value(agent_type) AS agent_type
    FROM factories WHERE competitor = ?
"""
_DAYS: Final = f"""
    SELECT (s.day * {_PARTS} // w.n_days)::INT AS part, avg(s.output_quantity) AS sold, avg(s.input_quantity) AS bought,
           avg(s.produced) AS produced, avg(s.shortfall_quantity) AS shortfall, avg(s.stock_in) AS stock,
           avg(s.balance / f.initial_balance) AS balance
    FROM factories f JOIN settlements s ON s.world = f.world AND s.factory = f.factory
    JOIN worlds w ON w.world = f.world
    WHERE f.competitor = ? GROUP BY part ORDER BY part
"""
_PRICES: Final = """
    WITH own AS (
        SELECT c.*, true AS sells FROM factories f JOIN contracts c ON c.world = f.world AND c.seller = f.factory
        WHERE f.competitor = ?
        UNION ALL
        SELECT c.*, false AS sells FROM factories f JOIN contracts c ON c.world = f.world AND c.buyer = f.factory
        WHERE f.competitor = ?)
    SELECT own.sells, least(own.time - own.day, 10) AS ahead, sum(own.quantity) AS units,
           sum(own.quantity * own.unit_price / m.trading_price) / sum(own.quantity) AS relative
    FROM own JOIN markets m ON m.world = own.world AND m.day = own.day AND m.product = own.product
    GROUP BY ALL ORDER BY ALL
"""
_PARTNERS: Final = """
    WITH met AS (
        SELECT n.world, n.buyer AS other, n.status, n.rounds, n.quantity, true AS sells
        FROM factories f JOIN negotiations n ON n.world = f.world AND n.seller = f.factory WHERE f.competitor = ?
        UNION ALL
        SELECT n.world, n.seller AS other, n.status, n.rounds, n.quantity, false AS sells
        FROM factories f JOIN negotiations n ON n.world = f.world AND n.buyer = f.factory WHERE f.competitor = ?)
    SELECT met.sells, coalesce(p.competitor, string_split(p.agent_type, '.')[-1]) AS partner, count(*) AS met,
           avg((met.status = 'agreement')::INT) AS agreed, avg(met.rounds) AS rounds, sum(met.quantity) AS units
    FROM met JOIN factories p ON p.world = met.world AND p.factory = met.other
    GROUP BY ALL ORDER BY met DESC, partner, sells
"""


def agent_page(folder: Path, name: str, query: Mapping[str, str]) -> Page:
    """Return the page of an agent.

    Args:
        folder: The tournament's folder.
        name: Its name in addresses.
        query: The ``agent``; for its reasons in one world also ``seat`` and ``day``.

    Raises:
        NotHereError: If it did not play.
    """
    store = Warehouse(folder / RECORDS_FOLDER)
    agent = query.get("agent", "")
    names = [
        row["competitor"]
        for row in store.ask(
            "SELECT DISTINCT competitor FROM factories WHERE competitor IS NOT NULL ORDER BY ALL", ["factories"]
        )
    ]
    if agent not in names:
        raise NotHereError(
            f"{agent[:200]!r} is not a competitor of this tournament",
            "an agent can be looked at when a world with it is finished",
            "choose one from the ranking",
        )
    [seats] = store.ask(_SEATS, ["factories"], [agent])
    days = store.ask(_DAYS, ["factories", "settlements", "worlds"], [agent])
    prices = store.ask(_PRICES, ["factories", "contracts", "markets"], [agent, agent])
    partners = store.ask(_PARTNERS, ["factories", "negotiations"], [agent, agent])
    reasons = reasons_of(store, query)
    units = (("sold", "sold"), ("bought", "bought"), ("produced", "produced"))
    context = {
        "filters": [Filter("agent", "agent", [(competitor, competitor) for competitor in names], agent)],
        "seat_is_chosen": "seat" in query,
        "reasons": reasons,
        "reason_charts": reasons.charts,
        "day_charts": reasons.day_charts,
        "facts": _facts(seats),
        "charts": [
            _over_time(days, "sales", "Units per day", units),
            _over_time(
                days,
                "troubles",
                "Stock and shortfall per day",
                (("stock", "stock of input"), ("shortfall", "shortfall")),
            ),
            _prices(prices),
            _over_time(days, "wealth", "Balance over initial balance", (("balance", "balance"),)),
            _acceptance(partners),
        ],
        "partners": _partner_table(partners),
    }
    trail = [Link("all", "/"), Link(name, "/tournament", {"name": name})]
    live = not store.manifest.complete
    return Page(template="agent", title=agent, context=context, trail=trail, live=live)


def _facts(seats: Row) -> list[tuple[str, str]]:
    return [
        ("seats", str(seats["seats"])),
        ("mean score", number(seats["score"])),
        ("bankrupt", f"{100 * seats['bankrupt']:.1f} %"),
        ("exceptions", str(seats["errors"])),
        ("class", seats["agent_type"]),
    ]


def _over_time(days: Sequence[Row], name: str, title: str, lines: Sequence[tuple[str, str]]) -> Chart:
    shares = [100 * (row["part"] + 0.5) / _PARTS for row in days]
    series = [
        Series(name=label, x=shares, y=[row[key] for row in days], color=color_of(index))
        for index, (key, label) in enumerate(lines)
    ]
    return Chart(name=name, title=title, series=series, x_title="% of the world's days", y_title="mean of its seats")


def _prices(rows: Sequence[Row]) -> Chart:
    series = []
    for index, (sells, label) in enumerate(((True, "selling"), (False, "buying"))):
        own = [row for row in rows if row["sells"] == sells]
        labels = [f"{label}, {row['ahead']} days ahead: {row['relative']:.3f} ({row['units']} units)" for row in own]
        days, heights = [row["ahead"] for row in own], [row["relative"] for row in own]
        series.append(Series(name=label, x=days, y=heights, color=color_of(index), labels=labels))
    return Chart(
        name="prices_taken",
        title="Prices taken, relative to the trading price of the day",
        series=series,
        x_title="days ahead (10: and more)",
        y_title="unit price / trading price",
    )


def _acceptance(rows: Sequence[Row]) -> Chart:
    partners = sorted({row["partner"] for row in rows})
    series = []
    for index, (sells, label) in enumerate(((True, "selling"), (False, "buying"))):
        share = {row["partner"]: 100 * row["agreed"] for row in rows if row["sells"] == sells}
        heights = [share.get(partner) for partner in partners]
        labels = [
            f"{label} to {partner}: {number(height, 1)} %" for partner, height in zip(partners, heights, strict=True)
        ]
        series.append(Series(name=label, x=partners, y=heights, kind="bar", color=color_of(index), labels=labels))
    return Chart(
        name="acceptance",
        title="Negotiations that ended in agreement, by partner",
        series=series,
        x_title="% of negotiations",
        horizontal=True,
        height=max(240, 110 + 34 * len(partners)),
    )


def _partner_table(rows: Sequence[Row]) -> Table:
    table = [
        [
            row["partner"],
            "sells" if row["sells"] else "buys",
            str(row["met"]),
            f"{100 * row['agreed']:.1f}",
            number(row["rounds"], 1),
            str(row["units"] or 0),
        ]
        for row in rows
    ]
    return Table(
        "Partners", ["partner", "this agent", "negotiations", "agreed, %", "mean rounds", "units"], table, n_texts=2
    )

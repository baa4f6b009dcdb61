"""A negotiation: the offers of both sides round by round, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Band, Chart, Series, color_of
from litaagent_std.dashboard.history import NotHereError
from litaagent_std.dashboard.page import Cell, Link, Page, Table
from litaagent_std.dashboard.views.world import WorldFacts, chosen_number, read_world
from litaagent_std.dashboard.warehouse import Row, Warehouse
from litaagent_std.records.reader import RECORDS_FOLDER

__all__ = ["example_negotiation", "negotiation_page"]

_RESPONSES: Final = {0: "accepts", 1: "rejects", 2: "ends", 3: "does not answer", 5: "leaves"}

_EXAMPLE: Final = """
    SELECT n.day, n.negotiation FROM negotiations n
    JOIN factories b ON b.factory = n.buyer JOIN factories s ON s.factory = n.seller
    WHERE n.status = 'agreement'
    ORDER BY (b.competitor IS NOT NULL)::INT + (s.competitor IS NOT NULL)::INT DESC, n.n_turns DESC,
             n.day, n.negotiation
    LIMIT 1
"""


def negotiation_page(folder: Path, name: str, query: Mapping[str, str]) -> Page:
    """Return the page of a negotiation.

    Args:
        folder: The tournament's folder.
        name: Its name in addresses.
        query: ``world``, ``day`` and ``negotiation``.

    Raises:
        NotHereError: If there was no such negotiation.
    """
    store = Warehouse(folder / RECORDS_FOLDER)
    world = chosen_number(query, "world", 10**9)
    facts = read_world(store, world)
    day, index = chosen_number(query, "day", 10**6), chosen_number(query, "negotiation", 10**6)
    trail = [
        Link("all", "/"),
        Link(name, "/tournament", {"name": name}),
        Link(f"world {world}", "/world", {"name": name, "world": world, "day": day}),
    ]
    return Page(
        template="negotiation",
        title=f"Negotiation {index} of day {day}",
        context={"neighbours": _neighbours(name, world, day, index), **_context(store, world, facts, day, index)},
        trail=trail,
    )


def example_negotiation(store: Warehouse, world: int) -> tuple[int, int] | None:
    """Return day and number of a typical agreement: between competitors if there is one, with many turns."""
    rows = store.ask(_EXAMPLE, ["negotiations", "factories"], world=world)
    return (rows[0]["day"], rows[0]["negotiation"]) if rows else None


def _context(store: Warehouse, world: int, facts: WorldFacts, day: int, index: int) -> dict[str, Any]:
    """Return what happened, with a chart per issue against its range.

    Raises:
        NotHereError: If there was no such negotiation.
    """
    where = "WHERE day = ? AND negotiation = ?"
    rows = store.ask(f"SELECT * FROM negotiations {where}", ["negotiations"], [day, index], world=world)
    if not rows:
        raise NotHereError(
            f"there was no negotiation {index} on day {day} of world {world}",
            "negotiations count from 0 within their day",
            "choose one from the world's page",
        )
    [row] = rows
    turns = store.ask(f"SELECT * FROM turns {where} ORDER BY turn", ["turns"], [day, index], world=world)
    issue = "SELECT * FROM markets WHERE day = ? AND product = ?"
    [market] = store.ask(issue, ["markets"], [day, row["product"]], world=world)
    issues = (("unit_price", "price"), ("quantity", "quantity"), ("time", "time"))
    return {
        "facts": _facts(facts, row, market),
        "summary": _summary(facts, row, turns),
        "charts": [_offers(facts, row, turns, market, key, issue) for key, issue in issues],
        "turns": _turn_table(facts, turns),
    }


def _neighbours(name: str, world: int, day: int, index: int) -> list[tuple[str, Cell]]:
    base: dict[str, str | int] = {"name": name, "world": world, "day": day}
    before = Link(f"negotiation {index - 1}", "/negotiation", {**base, "negotiation": index - 1})
    after = Link(f"negotiation {index + 1}", "/negotiation", {**base, "negotiation": index + 1})
    return [*([("previous", before)] if index else []), ("next", after)]


def _facts(facts: WorldFacts, row: Row, market: Row) -> list[tuple[str, Cell]]:
    agreed = "none" if row["quantity"] is None else f"{row['quantity']} at {row['unit_price']} for day {row['time']}"
    return [
        ("seller", facts.names[row["seller"]]),
        ("buyer", facts.names[row["buyer"]]),
        ("first to propose", facts.names[row["caller"]]),
        ("product", str(row["product"])),
        ("trading price", f"{market['trading_price']:.2f}"),
        ("price range", f"{market['price_min']} … {market['price_max']}"),
        ("rounds", str(row["rounds"])),
        ("end", f"{row['status']} ({row['reason']})"),
        ("agreement", agreed),
    ]


def _summary(facts: WorldFacts, row: Row, turns: Sequence[Row]) -> str:
    """Describe in a sentence or two who conceded and how it ended."""
    parts = []
    for seat, is_seller in ((row["seller"], True), (row["buyer"], False)):
        prices = [turn["unit_price"] for turn in turns if turn["factory"] == seat and turn["unit_price"] is not None]
        if not prices:
            parts.append(f"{facts.names[seat]} made no offer.")
            continue
        conceded = (prices[0] - prices[-1]) * (1 if is_seller else -1)
        how = (
            f"conceded {conceded}"
            if conceded > 0
            else "did not move"
            if conceded == 0
            else f"became {-conceded} tougher"
        )
        parts.append(f"{facts.names[seat]} made {len(prices)} offers, from {prices[0]} to {prices[-1]}: it {how}.")
    by = "" if row["ended_by"] is None else f" by {facts.names[row['ended_by']]}"
    return f"{' '.join(parts)} Result after {row['rounds']} rounds: {row['status']}, {row['reason']}{by}."


def _offers(facts: WorldFacts, row: Row, turns: Sequence[Row], market: Row, key: str, issue: str) -> Chart:
    """Return the offers of both sides on one issue, with its range; replayable turn by turn."""
    series = []
    for index, (side, seat) in enumerate((("seller", row["seller"]), ("buyer", row["buyer"]))):
        own = [(step, turn) for step, turn in enumerate(turns) if turn["factory"] == seat and turn[key] is not None]
        labels = [_turn_text(facts, turn) for _, turn in own]
        series.append(
            Series(
                name=f"{side}: {facts.names[seat]}",
                x=[turn["round"] for _, turn in own],
                y=[turn[key] for _, turn in own],
                color=color_of(index),
                labels=labels,
                steps=[step for step, _ in own],
            )
        )
    if row[key] is not None:
        last = max(turn["round"] for turn in turns)
        series.append(
            Series(
                name="agreement",
                x=[last],
                y=[row[key]],
                kind="points",
                color="#009e73",
                size=14,
                labels=[f"agreed: {row[key]}"],
                steps=[len(turns) - 1],
            )
        )
    last_round = max([1, *(turn["round"] for turn in turns)])
    ends = [market[f"{issue}_min"]] * 2, [market[f"{issue}_max"]] * 2
    band = Band(name="range of the issue", x=[0, last_round], low=ends[0], high=ends[1])
    title = {"price": "Unit price", "quantity": "Quantity", "time": "Delivery day"}[issue]
    shown = [offers for offers in series if offers.x]
    return Chart(
        name=f"negotiation_{issue}",
        title=f"{title}, round by round",
        series=shown,
        bands=[band],
        x_title="round",
        y_title=title.lower(),
        height=420 if shown else 200,
    )


def _turn_text(facts: WorldFacts, turn: Row) -> str:
    parts = [] if turn["response"] is None else [_RESPONSES.get(turn["response"], "answers")]
    if turn["quantity"] is not None:
        parts.append(f"offers {turn['quantity']} at {turn['unit_price']} for day {turn['time']}")
    return f"round {turn['round']}: {facts.names[turn['factory']]} {' and '.join(parts)}"


def _turn_table(facts: WorldFacts, turns: Sequence[Row]) -> Table:
    rows = [
        [
            facts.names[turn["factory"]],
            "–" if turn["response"] is None else _RESPONSES.get(turn["response"], "answers"),
            str(turn["round"]),
            *("–" if turn[key] is None else str(turn[key]) for key in ("quantity", "unit_price", "time")),
        ]
        for turn in turns
    ]
    return Table("Turns", ["factory", "answer", "round", "quantity", "unit price", "delivery day"], rows, n_texts=2)

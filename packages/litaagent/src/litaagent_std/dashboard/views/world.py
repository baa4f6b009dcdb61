"""A world: who traded with whom, and what became of each factory day by day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from apexrl.charts import Chart, Series, color_of
from litaagent_std.dashboard.history import NotHereError
from litaagent_std.dashboard.page import Cell, Filter, Link, Page, Table, number
from litaagent_std.dashboard.views.world_map import world_map
from litaagent_std.dashboard.warehouse import Row, Warehouse
from litaagent_std.records.reader import RECORDS_FOLDER

__all__ = ["WorldFacts", "chosen_number", "read_world", "world_page"]

_MOST_NEGOTIATIONS: Final = 60

_FLOWS: Final = """
    SELECT seller, buyer, product, sum(quantity) AS units, sum(quantity * unit_price) AS value, count(*) AS contracts
    FROM (SELECT seller, buyer, product, quantity, unit_price FROM contracts WHERE fate = 'executed'
          UNION ALL SELECT seller, buyer, product, quantity, unit_price FROM exogenous)
    GROUP BY ALL ORDER BY ALL
"""
_CALENDAR: Final = """
    SELECT time AS day, seller = ? AS sells, fate, sum(quantity) AS units FROM (
        SELECT time, seller, buyer, quantity, fate FROM contracts
        UNION ALL SELECT day AS time, seller, buyer, quantity, 'exogenous' AS fate FROM exogenous)
    WHERE seller = ? OR buyer = ? GROUP BY ALL ORDER BY ALL
"""
_NEGOTIATIONS: Final = """
    SELECT * FROM negotiations WHERE day = ? AND (? < 0 OR buyer = ? OR seller = ?) ORDER BY negotiation LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class WorldFacts:
    """A world's row and its factories, in seat order."""

    row: Row
    factories: list[Row]

    @property
    def names(self) -> list[str]:
        """Names of the factories: the id and the agent."""
        return [f"{row['name']} {who_plays(row)}" for row in self.factories]


def who_plays(factory: Row) -> str:
    """Return the competitor of a seat, or the class of a default agent."""
    return str(factory["competitor"] or factory["agent_type"].rsplit(".", 1)[-1])


def read_world(store: Warehouse, world: int) -> WorldFacts:
    """Return a world's row and its factories.

    Raises:
        NotHereError: If it is not among the finished worlds.
    """
    if world not in store.worlds:
        raise NotHereError(
            f"world {world} is not among the {len(store.worlds)} finished worlds",
            "a world can be looked at when it is finished",
            "choose one from the tournament's list",
        )
    [row] = store.ask("SELECT * FROM worlds", ["worlds"], world=world)
    factories = store.ask("SELECT * FROM factories ORDER BY factory", ["factories"], world=world)
    return WorldFacts(row, factories)


def chosen_number(query: Mapping[str, str], name: str, most: int, default: int = 0) -> int:
    """Return a number from an address, kept within 0 and ``most``; what is no number counts as the default."""
    text = query.get(name, "")
    return min(int(text), most) if text.isdecimal() and len(text) < 9 else default


def world_page(folder: Path, name: str, query: Mapping[str, str]) -> Page:
    """Return the page of a world.

    Args:
        folder: The tournament's folder.
        name: Its name in addresses.
        query: The ``world``, and choices: ``factory`` and ``day``.
    """
    store = Warehouse(folder / RECORDS_FOLDER)
    world = chosen_number(query, "world", 10**9)
    facts = read_world(store, world)
    factory = chosen_number(query, "factory", len(facts.factories) - 1, default=_default_seat(facts))
    day = chosen_number(query, "day", facts.row["n_days"] - 1)
    seats = [(str(seat), text) for seat, text in enumerate(facts.names)]
    days = [(str(index), f"day {index}") for index in range(facts.row["n_days"])]
    context = {
        "facts": _facts(facts),
        "charts": _charts(store, world, facts),
        "factories": _factory_table(facts, name, world),
        "filters": [Filter("factory", "factory", seats, str(factory)), Filter("day", "day", days, str(day))],
        "calendar": _calendar(store, world, facts, factory),
        "negotiations": _negotiations(store, world, facts, name, day, factory),
    }
    trail = [Link("all", "/"), Link(name, "/tournament", {"name": name})]
    return Page(template="world", title=f"World {world}", context=context, trail=trail)


def _charts(store: Warehouse, world: int, facts: WorldFacts) -> list[Chart]:
    """Return the map, balances, stock, prices and shortfalls of a world."""
    flows = store.ask(_FLOWS, ["contracts", "exogenous"], world=world)
    rows = store.ask("SELECT * FROM settlements ORDER BY day, factory", ["settlements"], world=world)
    markets = store.ask("SELECT day, product, trading_price FROM markets ORDER BY ALL", ["markets"], world=world)
    return [
        world_map(facts.row["n_levels"], facts.factories, [who_plays(row) for row in facts.factories], flows),
        _lines(facts, rows, "balance", "Balance after each day", "balance"),
        _lines(facts, rows, "stock_in", "Stock of input after each day", "units"),
        _prices(facts, markets),
        _shortfalls(facts, rows),
    ]


def _default_seat(facts: WorldFacts) -> int:
    """Return the seat that a page shows first: a competitor's, the best one's if there are several."""
    rows = [row for row in facts.factories if row["competitor"] is not None] or facts.factories
    return int(max(rows, key=lambda row: row["score"])["factory"])


def _facts(facts: WorldFacts) -> list[tuple[str, str]]:
    return [
        (label, str(facts.row[key]))
        for label, key in (
            ("days", "n_days"),
            ("levels", "n_levels"),
            ("factories", "n_factories"),
            ("horizon", "horizon"),
            ("rounds", "n_rounds"),
            ("configuration", "config"),
            ("run", "run"),
            ("rotation", "rotation"),
            ("inventory", "inventory"),
            ("seed", "seed"),
        )
    ]


def _factory_table(facts: WorldFacts, name: str, world: int) -> Table:
    rows: list[list[Cell]] = []
    for row in sorted(facts.factories, key=lambda factory: (factory["level"], -factory["score"])):
        who = who_plays(row)
        reasons = {"name": name, "agent": who, "seat": f"{world}-{row['factory']}"}
        link: Cell = Link(who, "/agent", reasons) if row["competitor"] else who
        seat = Link(row["name"], "/world", {"name": name, "world": world, "factory": row["factory"]})
        bankrupt = "–" if row["bankrupt_day"] is None else f"day {row['bankrupt_day']}"
        numbers = [number(row["score"]), number(row["cost"], 1), number(row["initial_balance"], 0), str(row["n_lines"])]
        rows.append([seat, link, str(row["level"]), *numbers, bankrupt, str(row["n_errors"])])
    columns = ["factory", "agent", "level", "score", "cost", "initial balance", "lines", "bankrupt", "errors"]
    return Table("Factories", columns, rows, n_texts=2)


def _lines(facts: WorldFacts, rows: Sequence[Row], key: str, title: str, unit: str) -> Chart:
    """Return a line per factory; competitors are named and coloured, default agents stay grey behind them."""
    series = []
    competitors = sorted({row["competitor"] for row in facts.factories if row["competitor"] is not None})
    for seat, row in enumerate(facts.factories):
        own = [settled for settled in rows if settled["factory"] == seat]
        is_competitor = row["competitor"] is not None
        series.append(
            Series(
                name=facts.names[seat] if is_competitor else "",
                x=[settled["day"] for settled in own],
                y=[settled[key] for settled in own],
                color=color_of(competitors.index(row["competitor"])) if is_competitor else "#c4c9cf",
                width=2.2 if is_competitor else 1.0,
                labels=[f"{facts.names[seat]}, day {settled['day']}: {settled[key]:.0f}" for settled in own],
            )
        )
    series.sort(key=lambda line: bool(line.name))
    return Chart(name=key, title=title, series=series, x_title="day", y_title=unit, note="Grey: default agents.")


def _prices(facts: WorldFacts, markets: Sequence[Row]) -> Chart:
    series = []
    for product, catalog in enumerate(facts.row["catalog_prices"]):
        own = [row for row in markets if row["product"] == product]
        days = [row["day"] for row in own]
        style: dict[str, Any] = {"x": days, "color": color_of(product)}
        series.append(Series(name=f"product {product}", y=[row["trading_price"] for row in own], **style))
        series.append(Series(name="", y=[catalog] * len(days), dashed=True, width=1.2, **style))
    title = "Trading prices against the catalog"
    return Chart(
        name="prices", title=title, series=series, x_title="day", y_title="price", note="Dotted: catalog price."
    )


def _shortfalls(facts: WorldFacts, rows: Sequence[Row]) -> Chart:
    series = []
    for level in range(facts.row["n_levels"]):
        seats = {row["factory"] for row in facts.factories if row["level"] == level}
        days = sorted({row["day"] for row in rows})
        units = [
            sum(r["shortfall_quantity"] for r in rows if r["day"] == day and r["factory"] in seats) for day in days
        ]
        series.append(Series(name=f"level {level}", x=days, y=units, kind="bar", color=color_of(level)))
    title = "Units sold and not delivered"
    return Chart(name="shortfalls", title=title, series=series, x_title="day", y_title="units", stacked=True)


def _calendar(store: Warehouse, world: int, facts: WorldFacts, factory: int) -> Chart:
    rows = store.ask(_CALENDAR, ["contracts", "exogenous"], [factory, factory, factory], world=world)
    parts = (
        ("sold", True, "executed", color_of(0)),
        ("sold to the system", True, "exogenous", "#56b4e9"),
        ("sold, void", True, "nullified", "#c4c9cf"),
        ("bought", False, "executed", color_of(1)),
        ("bought from the system", False, "exogenous", "#f0a868"),
        ("bought, void", False, "nullified", "#dcd6cf"),
    )
    series = []
    for label, sells, fate, color in parts:
        own = [row for row in rows if row["sells"] == sells and row["fate"] == fate]
        if own:
            sign = 1 if sells else -1
            days, units = [row["day"] for row in own], [sign * int(row["units"]) for row in own]
            labels = [f"day {day}: {abs(unit)} units {label}" for day, unit in zip(days, units, strict=True)]
            series.append(Series(name=label, x=days, y=units, kind="bar", color=color, labels=labels))
    lines, ends = facts.factories[factory]["n_lines"], [0, facts.row["n_days"] - 1]
    series.append(Series(name="lines", x=ends, y=[lines, lines], dashed=True, color="#7f7f7f", width=1.2))
    series.append(Series(name="", x=ends, y=[-lines, -lines], dashed=True, color="#7f7f7f", width=1.2))
    return Chart(
        name="calendar",
        title=f"Contract calendar of {facts.names[factory]}",
        series=series,
        x_title="delivery day",
        y_title="units: bought below 0, sold above",
        stacked=True,
        wide=True,
        note="Contracts by delivery day; void: with a bankrupt partner; dotted: what the lines can make in a day.",
    )


def _negotiations(store: Warehouse, world: int, facts: WorldFacts, name: str, day: int, factory: int) -> Table:
    values = [day, factory, factory, factory, _MOST_NEGOTIATIONS]
    rows: list[list[Cell]] = []
    for row in store.ask(_NEGOTIATIONS, ["negotiations"], values, world=world):
        query = {"name": name, "world": world, "day": day, "negotiation": row["negotiation"]}
        deal = "–" if row["quantity"] is None else f"{row['quantity']} at {row['unit_price']} for day {row['time']}"
        link = Link(f"negotiation {row['negotiation']}", "/negotiation", query)
        sides = [facts.names[row["seller"]], facts.names[row["buyer"]]]
        rows.append([link, *sides, f"{row['status']} ({row['reason']})", deal, str(row["rounds"])])
    title = f"Negotiations of {facts.names[factory]} on day {day}"
    return Table(title, ["", "seller", "buyer", "end", "agreement", "rounds"], rows, n_texts=5)

"""What a record holds: tables and columns, with their meaning.

A record is a set of tables that share the key ``world``. Everything an agent could see, everything it did and
everything that came of it is in there; what can be computed from the tables exactly (such as a factory's
:class:`~litaagent_std.policy.observation.Observation`) is computed by the reader and not stored twice.

Conventions: a *factory* is the number of a seat, -1 stands for the system; days, rounds, negotiations and turns
count from 0; prices are per unit unless a name ends in ``_value`` (then it is a total); relative costs are
fractions of a trading price. Tables whose rows a factory could not know before its day's negotiations say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa

__all__ = ["SCHEMA_VERSION", "TABLES", "Column", "TableSpec", "arrow_schema", "as_markdown"]

SCHEMA_VERSION: Final = 2
"""Grows with every change that a reader has to know of."""

I8, I16, I32, I64, F64, TEXT, FLAG = (
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.bool_(),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, type and meaning, and whether values may be missing."""

    name: str
    type: pa.DataType
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table.

    Attributes:
        name: Its name, which is also its folder's.
        meaning: What a row is.
        columns: The columns after ``world``.
        grouped: Whether each world is a row group of its own, so that reading one world touches little.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    grouped: bool = False


_WORLD: Final = Column("world", I32, "number of the world in its tournament's plan")

_SPECS: Final = (
    TableSpec(
        "worlds",
        "A row per world: what determined it and how it ended.",
        (
            Column("config", I32, "number of the configuration; worlds of one configuration never cross a data split"),
            Column("run", I32, "which run of the configuration, each with another seed"),
            Column("rotation", I32, "which assignment of competitors to seats"),
            Column("config_seed", I64, "seed that the configuration was drawn with"),
            Column("seed", I64, "seed of the world's and the seats' streams"),
            Column("setup_digest", TEXT, "SHA-256 of the complete setup"),
            Column("inventory", TEXT, "rule of inventory: `as_shipped` or `depleting`"),
            Column("n_days", I16, "days that the world runs"),
            Column("n_levels", I16, "production levels; there is one product more"),
            Column("n_factories", I16, "factories"),
            Column("n_rounds", I16, "rounds allowed per negotiation"),
            Column("horizon", I16, "days ahead that deliveries can be agreed for"),
            Column("price_range", F64, "half width of the price issue around the trading price"),
            Column("catalog_prices", pa.list_(F64), "catalog price of each product"),
            Column("limit_fired", FLAG, "whether a wall-clock limit fired, which excludes it from comparisons"),
        ),
    ),
    TableSpec(
        "factories",
        "A row per seat: its constants, its agent and its final score.",
        (
            Column("factory", I16, "number of the seat"),
            Column("name", TEXT, "id of the factory in the world"),
            Column("level", I16, "production level: it buys product `level` and sells product `level + 1`"),
            Column("agent_type", TEXT, "class of the agent, as it ran"),
            Column("competitor", TEXT, "the competitor as the tournament names it; missing for default agents", True),
            Column("params", TEXT, "constructor arguments of the agent, as JSON"),
            Column("n_lines", I16, "production lines"),
            Column("cost", F64, "production cost per unit"),
            Column("initial_balance", F64, "balance before the first day"),
            Column("shortfall_penalty_mean", F64, "mean of the relative shortfall penalty"),
            Column("shortfall_penalty_dev", F64, "its standard deviation"),
            Column("storage_cost_mean", F64, "mean of the relative storage cost"),
            Column("storage_cost_dev", F64, "its standard deviation"),
            Column("disposal_cost_mean", F64, "mean of the relative disposal cost"),
            Column("disposal_cost_dev", F64, "its standard deviation"),
            Column("score", F64, "final balance relative to the initial balance; known at the end only"),
            Column("n_errors", I32, "exceptions that came out of the agent; known at the end only"),
            Column("bankrupt_day", I16, "day in whose settlement it went bankrupt, if it did; known then", True),
        ),
    ),
    TableSpec(
        "markets",
        "A row per day and product, before the day's negotiations unless a column says otherwise.",
        (
            Column("day", I16, "the day"),
            Column("product", I16, "the product"),
            Column("trading_price", F64, "trading price at the start of the day"),
            Column("quantity_min", I32, "least quantity of an offer"),
            Column("quantity_max", I32, "largest quantity of an offer"),
            Column("time_min", I16, "earliest delivery day of an offer"),
            Column("time_max", I16, "latest delivery day of an offer"),
            Column("price_min", I32, "lowest unit price of an offer"),
            Column("price_max", I32, "highest unit price of an offer"),
            Column("exogenous_quantity", I32, "units of today's exogenous contracts"),
            Column("exogenous_value", I64, "their total price"),
            Column("sold_quantity", I32, "units delivered today; known after the day"),
            Column("next_trading_price", F64, "trading price after the day"),
        ),
    ),
    TableSpec(
        "days",
        "A row per day and factory: its private state before the day's negotiations. With `markets`, `factories` and "
        "`reports` these are also the parameters of its utility function.",
        (
            Column("day", I16, "the day"),
            Column("factory", I16, "the seat"),
            Column("balance", F64, "balance"),
            Column("stock_in", I32, "units of input in stock"),
            Column("exogenous_in", I32, "units of today's forced purchase"),
            Column("exogenous_in_value", I64, "its total price"),
            Column("exogenous_out", I32, "units of today's forced sale"),
            Column("exogenous_out_value", I64, "its total price"),
            Column("needed_sales", I32, "units to sell today, as the agents' interface counts them"),
            Column("needed_supplies", I32, "units to buy today, as the agents' interface counts them"),
            Column("shortfall_penalty", F64, "today's shortfall penalty relative to the output's trading price"),
            Column("storage_cost", F64, "today's storage cost relative to the input's trading price"),
            Column("disposal_cost", F64, "today's disposal cost relative to the input's trading price"),
            Column("bankrupt", FLAG, "whether it is bankrupt"),
        ),
    ),
    TableSpec(
        "exogenous",
        "A row per exogenous contract, revealed before the negotiations of its day.",
        (
            Column("day", I16, "day of revelation and delivery"),
            Column("buyer", I16, "the buying seat, or -1"),
            Column("seller", I16, "the selling seat, or -1"),
            Column("product", I16, "the product"),
            Column("quantity", I32, "units"),
            Column("unit_price", I32, "price per unit"),
        ),
    ),
    TableSpec(
        "negotiations",
        "A row per negotiation, in order of registration. How it ended is known when it has.",
        (
            Column("day", I16, "the day"),
            Column("negotiation", I16, "number within the day"),
            Column("buyer", I16, "the buying seat"),
            Column("seller", I16, "the selling seat"),
            Column("caller", I16, "the seat that proposes first"),
            Column("product", I16, "the product"),
            Column("rounds", I16, "rounds completed"),
            Column("n_turns", I16, "rows in `turns`"),
            Column("status", TEXT, "`agreement`, `broken`, `timedout` or `error`"),
            Column("reason", TEXT, "why it ended: `accepted`, `ended`, `no_offer`, `left`, `rounds_over`, `error`"),
            Column("ended_by", I16, "the seat whose turn ended it; missing when the rounds were over", True),
            Column("quantity", I32, "agreed quantity", True),
            Column("time", I16, "agreed delivery day", True),
            Column("unit_price", I32, "agreed unit price", True),
        ),
        grouped=True,
    ),
    TableSpec(
        "turns",
        "A row per turn of a side that answered or offered, ordered by negotiation; `turn` gives the order of the "
        "day over all negotiations.",
        (
            Column("day", I16, "the day"),
            Column("negotiation", I16, "number within the day"),
            Column("turn", I32, "place in the day's order of turns over all negotiations"),
            Column(
                "decided",
                I32,
                "turns that the day had had when this one was decided: `turn`, or fewer if the agent decides about all "
                "partners together",
            ),
            Column("round", I16, "rounds completed before the turn"),
            Column("relative_time", F64, "the mechanism's relative time at the turn"),
            Column("factory", I16, "the seat that acts"),
            Column(
                "response",
                I8,
                "answer to the offer on the table: 0 accept, 1 reject, 2 end, 3 none, 5 leave; missing when there was "
                "no offer",
                True,
            ),
            Column("quantity", I32, "quantity of its offer; missing when it made none", True),
            Column("time", I16, "delivery day of its offer", True),
            Column("unit_price", I32, "unit price of its offer", True),
        ),
        grouped=True,
    ),
    TableSpec(
        "contracts",
        "A row per contract between factories, in order of conclusion. Its fate is known on `fate_day`.",
        (
            Column("day", I16, "day of conclusion and signing"),
            Column("negotiation", I16, "number of the negotiation within the day"),
            Column("turn", I32, "the turn that concluded it, as in `turns`"),
            Column("buyer", I16, "the buying seat"),
            Column("seller", I16, "the selling seat"),
            Column("product", I16, "the product"),
            Column("quantity", I32, "units"),
            Column("time", I16, "delivery day"),
            Column("unit_price", I32, "price per unit"),
            Column("fate", TEXT, "`executed`, or `nullified` by a bankruptcy"),
            Column("fate_day", I16, "day of execution, or of the bankruptcy"),
        ),
    ),
    TableSpec(
        "settlements",
        "A row per day and factory: what came of the day. Known after the day only.",
        (
            Column("day", I16, "the day"),
            Column("factory", I16, "the seat"),
            Column("input_quantity", I32, "units of input bought for today, exogenous included"),
            Column("output_quantity", I32, "units of output sold for today, exogenous included"),
            Column("produced", I32, "units produced"),
            Column("profit", F64, "profit of the day"),
            Column("balance", F64, "balance after the day"),
            Column("stock_in", I32, "units of input in stock after the day"),
            Column("shortfall_quantity", I32, "units sold and not delivered"),
            Column("shortfall_penalty", F64, "penalty paid for them"),
            Column("storage_cost", F64, "storage paid for unused input"),
        ),
    ),
    TableSpec(
        "reports",
        "A row per published financial report; visible to all from the day after.",
        (
            Column("day", I16, "day at whose end it was published"),
            Column("factory", I16, "the seat it is about"),
            Column("cash", F64, "its balance"),
            Column("assets", F64, "its published assets"),
            Column("breach_probability", F64, "share of its days with a breach so far"),
            Column("breach_level", F64, "mean of its breach levels so far"),
            Column("bankrupt", FLAG, "whether it is bankrupt"),
        ),
    ),
    TableSpec(
        "errors",
        "A row per exception that came out of an agent's code.",
        (
            Column("day", I16, "the day"),
            Column("factory", I16, "the seat"),
            Column("where", TEXT, "the call that failed"),
            Column("kind", TEXT, "class of the exception"),
            Column("message", TEXT, "its text"),
        ),
    ),
)

TABLES: Final[dict[str, TableSpec]] = {spec.name: spec for spec in _SPECS}
"""All tables by name."""


@cache
def arrow_schema(name: str) -> pa.Schema:
    """Return the Arrow schema of a table, ``world`` first, marked with table and version."""
    fields = [pa.field(c.name, c.type, nullable=c.nullable) for c in (_WORLD, *TABLES[name].columns)]
    return pa.schema(fields, metadata={"litaagent.table": name, "litaagent.schema_version": str(SCHEMA_VERSION)})


def as_markdown() -> str:
    """Return the whole schema as Markdown, for the documentation."""
    parts = []
    for spec in TABLES.values():
        rows = [
            f"| `{c.name}` | {c.type}{', may be missing' if c.nullable else ''} | {c.meaning} |"
            for c in (_WORLD, *spec.columns)
        ]
        parts.append(
            f"### `{spec.name}`\n\n{spec.meaning}\n\n| column | type | meaning |\n|---|---|---|\n" + "\n".join(rows)
        )
    return "\n\n".join(parts) + "\n"

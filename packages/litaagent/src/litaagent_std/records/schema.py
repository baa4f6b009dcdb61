"""What a record holds: tables and columns, with their meaning.

A record is a set of tables that share the key ``world``. Everything an agent could see, everything it did and
everything that came of it is in there; what can be computed from the tables exactly (such as a factory's
:class:`~litaagent_std.policy.observation.Observation`) is computed by the reader and not stored twice.

Conventions: a *factory* is the number of a seat, -1 stands for the system; days, rounds, negotiations and turns
count from 0; prices are per unit unless a name ends in ``_value`` (then it is a total); relative costs are
fractions of a trading price. Tables whose rows a factory could not know before its day's negotiations say so.

Tables and columns may be added without a new version: a reader ignores what it does not know, and finds a nullable
column that an older record lacks empty, and an optional table missing. `SCHEMA_VERSION` grows only when a reader of the
version before would read something wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa

__all__ = [
    "ALL_TABLES",
    "REASON_TABLES",
    "SCHEMA_VERSION",
    "TABLES",
    "Column",
    "TableSpec",
    "arrow_schema",
    "as_markdown",
    "conform",
]

SCHEMA_VERSION: Final = 2
"""Grows with every change that a reader has to know of; additions are none."""

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

_BY_LEAD: Final = "by days until delivery"

_REASON_SPECS: Final = (
    TableSpec(
        "reason_days",
        "A row per day and factory whose agent gave its reasons.",
        (
            Column("day", I16, "the day"),
            Column("factory", I16, "the seat"),
            Column("l2", TEXT, "version of L2 that played"),
            Column("l3", TEXT, "version of L3 that played"),
            Column("l4", TEXT, "version of L4 that played"),
            Column("regime", TEXT, "what the agent knew of the inventory rule at the end of the day"),
            Column("interventions", I32, "how often L1 changed what the other layers wanted"),
        ),
    ),
    TableSpec(
        "reason_goals",
        "A row per state of L2's goals and L1's bounds in which a factory took a decision.",
        (
            Column("goals", I32, "number of the row in its world; `reasons` refer to it"),
            Column("day", I16, "the day"),
            Column("factory", I16, "the seat"),
            Column("q_buy", pa.list_(I32), f"units to buy, {_BY_LEAD}"),
            Column("p_buy", pa.list_(F64), f"the most to pay per unit, {_BY_LEAD}"),
            Column("q_sell", pa.list_(I32), f"units to sell, {_BY_LEAD}"),
            Column("p_sell", pa.list_(F64), f"the least to ask per unit, {_BY_LEAD}"),
            Column("hold", pa.list_(F64), f"value of a unit of unsold capacity, {_BY_LEAD}"),
            Column("unit_value", F64, "value of one more unit of input today"),
            Column("u_buy", pa.list_(F64), f"urgency of purchases, {_BY_LEAD}; empty if nothing is urgent"),
            Column("u_sell", pa.list_(F64), f"urgency of sales, {_BY_LEAD}; empty if nothing is urgent"),
            Column("lines", pa.list_(I32), f"L1: units that the lines leave free, {_BY_LEAD}"),
            Column("covered", pa.list_(I32), f"L1: units that input covers as well, {_BY_LEAD}"),
            Column("spare", pa.list_(I32), f"L1: input that is not promised to a sale, {_BY_LEAD}"),
            Column("buy", I32, "L1: units that free cash buys at the highest legal price"),
        ),
        grouped=True,
    ),
    TableSpec(
        "reasons",
        "A row per decision of an agent that gave its reasons, in the order in which each agent took them.",
        (
            Column("day", I16, "the day"),
            Column("negotiation", I16, "number within the day"),
            Column("factory", I16, "the seat that decided"),
            Column("partner", I16, "the partner's seat"),
            Column("buying", FLAG, "whether the seat buys"),
            Column("round", I16, "rounds of the negotiation completed before the decision"),
            Column("goals", I32, "goals and bounds of that moment, a row of `reason_goals`"),
            Column("received_quantity", I32, "quantity of the partner's offer; missing when there was none", True),
            Column("received_time", I16, "its delivery day", True),
            Column("received_unit_price", I32, "its unit price", True),
            Column("decision", I8, "0 accept, 1 reject, 2 end"),
            Column("quantity", I32, "quantity of what was accepted or offered; missing when the thread ends", True),
            Column("time", I16, "its delivery day", True),
            Column("unit_price", I32, "its unit price", True),
            Column("proposed_quantity", I32, "quantity that the layers proposed before L1's clip", True),
            Column("proposed_time", I16, "its delivery day", True),
            Column("proposed_unit_price", I32, "its unit price", True),
            Column("reservation", F64, "limit price for the delivery day of the offer received", True),
            Column("acceptance", F64, "probability that the partner takes the offer, as L3 saw it", True),
            Column("alpha", F64, "L4's weight of the thread; missing when no learned L3 or L4 played", True),
            Column("types", pa.list_(F64), "probability of each type of partner; missing without such a model", True),
            Column("urgency", F64, "urgency of the side's goals for the delivery day of the offer, or the greatest"),
            Column(
                "alternatives",
                pa.list_(pa.struct([("quantity", I32), ("time", I16), ("unit_price", I32), ("probability", F64)])),
                "other offers within the goal, the best by expected revenue, with their probabilities of acceptance",
            ),
            Column("residual", pa.list_(F64), "action of a learned layer, before it is decoded", True),
            Column("log_probability", F64, "logarithm of its probability, where the action was sampled", True),
        ),
        grouped=True,
    ),
)

TABLES: Final[dict[str, TableSpec]] = {spec.name: spec for spec in _SPECS}
"""The tables of every record by name."""

REASON_TABLES: Final[dict[str, TableSpec]] = {spec.name: spec for spec in _REASON_SPECS}
"""The optional tables of a record with reasons."""

ALL_TABLES: Final[dict[str, TableSpec]] = TABLES | REASON_TABLES
"""Both."""


@cache
def arrow_schema(name: str) -> pa.Schema:
    """Return the Arrow schema of a table, ``world`` first, marked with table and version."""
    fields = [pa.field(c.name, c.type, nullable=c.nullable) for c in (_WORLD, *ALL_TABLES[name].columns)]
    return pa.schema(fields, metadata={"litaagent.table": name, "litaagent.schema_version": str(SCHEMA_VERSION)})


def conform(table: pa.Table, name: str) -> pa.Table:
    """Return a stored table with the columns of the schema: unknown ones left out, missing nullable ones empty.

    Raises:
        KeyError: If a column is missing that may not be empty.
        ValueError: If a column has another type.
    """
    schema = arrow_schema(name)
    kinds = {field.name: field.type for field in schema}
    wrong = [field.name for field in table.schema if kinds.get(field.name, field.type) != field.type]
    if wrong or len(set(table.schema.names)) < len(table.schema.names):
        raise ValueError(f"table {name!r} has columns of other types {wrong}, or a column twice")
    if table.schema.names == schema.names:
        return table
    lacking = [field.name for field in schema if field.name not in table.schema.names and not field.nullable]
    if lacking:
        raise KeyError(f"table {name!r} lacks the columns {lacking}; it has {table.schema.names}")
    arrays = [
        table[field.name] if field.name in table.schema.names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def as_markdown() -> str:
    """Return the whole schema as Markdown, for the documentation."""
    parts = []
    for spec in ALL_TABLES.values():
        rows = [
            f"| `{c.name}` | {c.type}{', may be missing' if c.nullable else ''} | {c.meaning} |"
            for c in (_WORLD, *spec.columns)
        ]
        head = f"### `{spec.name}`\n\n{_optional(spec)}{spec.meaning}\n\n| column | type | meaning |\n|---|---|---|\n"
        parts.append(head + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _optional(spec: TableSpec) -> str:
    return "" if spec.name in TABLES else "Only in records with reasons (`--reasons`). "

"""A world's record in the form of scml's own logs, for scml-vis and for tools that read ``negotiations.csv``.

Only the columns whose values scml takes from the clock or from random identifiers differ: times are those of the
virtual clock, and identifiers name day and place (``d3n12`` is negotiation 12 of day 3).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from litaagent_std.records.world import WorldRecord

__all__ = ["world_files", "world_name"]

_SECONDS_PER_ROUND = 0.001
_ADAPTER = "scml.oneshot.sysagents.DefaultOneShotAdapter"
_SYSTEM = {"buyer": "BUYER", "seller": "SELLER"}

_NEGOTIATIONS = [
    "id",
    "partner_ids",
    "partners",
    "partner_types",
    "requested_at",
    "ended_at",
    "mechanism_type",
    "issues",
    "final_status",
    "failed",
    "agreement",
    "group",
    "caller",
    "product",
    "is_buy",
    "buyer",
    "seller",
    "sim_step",
    "running",
    "waiting",
    "started",
    "step",
    "time",
    "relative_time",
    "broken",
    "timedout",
    "n_negotiators",
    "has_error",
    "history",
    "offers",
]
_CONTRACTS = [
    "id",
    "seller_name",
    "buyer_name",
    "seller_type",
    "buyer_type",
    "delivery_time",
    "quantity",
    "unit_price",
    "signed_at",
    "nullified_at",
    "concluded_at",
    "signatures",
    "issues",
    "seller",
    "buyer",
    "partners",
    "product_name",
    "n_neg_steps",
    "negotiation_id",
    "executed_at",
    "breaches",
    "erred_at",
    "dropped_at",
]
_PER_FACTORY = [
    "score",
    "balance",
    "bankrupt",
    "productivity",
    "shortfall_quantity",
    "shortfall_penalty",
    "storage_cost",
    "disposal_cost",
    "inventory_penalized",
    "inventory_input",
    "inventory_output",
]


def world_name(world: int) -> str:
    """Return the name of a world's folder in the logs."""
    return f"world-{world:06}"


def world_files(record: WorldRecord) -> dict[str, str]:
    """Return the files of a world's folder by name."""
    return {
        "negotiations.csv": _csv(_NEGOTIATIONS, _negotiations(record)),
        "contracts.csv": _csv(_CONTRACTS, _contracts(record)),
        "stats.csv": _stats(record),
        "agents.csv": _csv(["id", "name", "type"], ((i, f["name"], _type(f)) for i, f in enumerate(record.factories))),
        "agents.json": json.dumps({f["name"]: _agent(f) for f in record.factories}, indent=1) + "\n",
        "info.json": json.dumps(_info(record), indent=1) + "\n",
    }


def _csv(columns: Sequence[str], rows: Iterator[Sequence[Any]] | Iterator[tuple[Any, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["", *columns])
    writer.writerows([number, *row] for number, row in enumerate(rows))
    return text.getvalue()


def _type(factory: dict[str, Any]) -> str:
    return f"{_ADAPTER}:{factory['agent_type']}"


def _agent(factory: dict[str, Any]) -> dict[str, Any]:
    name = factory["name"]
    return {"id": name, "name": name, "type": _type(factory), "short_type": factory["agent_type"].rpartition(".")[2]}


def _info(record: WorldRecord) -> dict[str, Any]:
    factories = record.factories
    return {
        "n_steps": record.facts["n_days"],
        "n_processes": record.facts["n_levels"],
        "neg_n_steps": record.facts["n_rounds"],
        "horizon": record.facts["horizon"],
        "catalog_prices": record.facts["catalog_prices"],
        "agent_initial_balances": {f["name"]: f["initial_balance"] for f in factories},
        "agent_processes": {f["name"]: [f["level"]] for f in factories},
        "agent_inputs": {f["name"]: [f["level"]] for f in factories},
        "agent_outputs": {f["name"]: [f["level"] + 1] for f in factories},
        "agent_profiles": {
            f["name"]: {
                "cost": f["cost"],
                "input_product": f["level"],
                "n_lines": f["n_lines"],
                **{key: f[key] for key in f if key.endswith(("_mean", "_dev"))},
            }
            for f in factories
        },
        "is_default": [f["competitor"] is None for f in factories],
    }


def _ranges(record: WorldRecord) -> dict[tuple[int, int], list[str]]:
    """Issues by day and product, as scml prints them."""
    return {
        (m["day"], m["product"]): [
            f"quantity: ({m['quantity_min']}, {m['quantity_max']})",
            f"time: ({m['time_min']}, {m['time_max']})",
            f"unit_price: ({m['price_min']}, {m['price_max']})",
        ]
        for m in record.tables["markets"].to_pylist()
    }


def _negotiations(record: WorldRecord) -> Iterator[tuple[Any, ...]]:
    names, issues = record.names, _ranges(record)
    types = [_type(factory) for factory in record.factories]
    clock = record.facts["n_rounds"] + 1
    start = 0
    wanted = ("round", "factory", "quantity", "time", "unit_price")
    turns = list(zip(*(record.tables["turns"][name].to_pylist() for name in wanted), strict=True))
    for n in record.tables["negotiations"].to_pylist():
        own = [turn for turn in turns[start : start + n["n_turns"]] if turn[2] is not None]
        start += n["n_turns"]
        caller, partner = n["caller"], n["seller"] if n["caller"] == n["buyer"] else n["buyer"]
        pair = [names[caller], names[partner]]
        agreed = n["status"] == "agreement"
        offers: dict[str, list[tuple[int, int, int]]] = {name: [] for name in pair}
        for _, factory, *offer in own:
            offers[names[factory]].append(tuple(offer))
        agreement = (n["quantity"], n["time"], n["unit_price"]) if agreed else None
        state = (False, False, True, n["rounds"], n["rounds"] * _SECONDS_PER_ROUND)
        yield (
            f"d{n['day']}n{n['negotiation']}",
            pair,
            pair,
            [types[caller], types[partner]],
            n["day"],
            n["day"],
            "SAOMechanism",
            issues[n["day"], n["product"]],
            "succeeded" if agreed else "failed",
            not agreed,
            agreement,
            None,
            names[caller],
            n["product"],
            caller == n["buyer"],
            names[n["buyer"]],
            names[n["seller"]],
            n["day"],
            *state,
            min(1.0, (n["rounds"] + 1) / clock),
            n["status"] == "broken",
            n["status"] == "timedout",
            2,
            n["status"] == "error",
            _history(own, names, clock),
            offers,
        )


def _history(turns: list[tuple[Any, ...]], names: tuple[str, ...], clock: int) -> list[dict[str, Any]]:
    """One state per round in which an offer was made, with the rounds' offers in order."""
    states: list[dict[str, Any]] = []
    for round_, factory, *offer in turns:
        if not states or states[-1]["step"] != round_:
            time = {"time": round_ * _SECONDS_PER_ROUND, "relative_time": min(1.0, (round_ + 1) / clock)}
            states.append({"step": round_, **time, "new_offers": []})
        states[-1]["current_offer"] = tuple(offer)
        states[-1]["current_proposer"] = names[factory]
        states[-1]["new_offers"].append((names[factory], tuple(offer)))
    return states


def _contracts(record: WorldRecord) -> Iterator[tuple[Any, ...]]:
    names, issues = record.names, _ranges(record)
    types = [_type(factory) for factory in record.factories]
    rounds = {(n["day"], n["negotiation"]): n["rounds"] for n in record.tables["negotiations"].to_pylist()}
    for c in record.tables["contracts"].to_pylist():
        executed = c["fate"] == "executed"
        who = (names[c["seller"]], names[c["buyer"]])
        place = f"d{c['day']}n{c['negotiation']}"
        yield (
            f"{place}:contract",
            *who,
            types[c["seller"]],
            types[c["buyer"]],
            *(c["time"], c["quantity"], c["unit_price"], c["day"]),
            -1 if executed else c["fate_day"],
            c["day"],
            "|".join(reversed(who)),
            issues[c["day"], c["product"]],
            *who,
            tuple(reversed(who)),
            f"p{c['product']}",
            rounds[c["day"], c["negotiation"]],
            place,
            c["fate_day"] if executed else -1,
            "",
            -1,
            -1,
        )
    for number, x in enumerate(record.tables["exogenous"].to_pylist()):
        sides = [_SYSTEM[side] if x[side] < 0 else names[x[side]] for side in ("seller", "buyer")]
        kinds = ["System" if x[side] < 0 else types[x[side]] for side in ("seller", "buyer")]
        days = (x["day"], x["quantity"], x["unit_price"], x["day"], -1, x["day"])
        rest = ("", *sides, tuple(reversed(sides)), f"p{x['product']}", 0, "", x["day"], "", -1, -1)
        yield (f"x{number}", *sides, *kinds, *days, "|".join(reversed(sides)), *rest)


def _stats(record: WorldRecord) -> str:
    """Return the table of daily statistics, a row per day."""
    days = range(record.facts["n_days"])
    rows: list[dict[str, Any]] = [{} for _ in days]
    for m in record.tables["markets"].to_pylist():
        p, row = m["product"], rows[m["day"]]
        row[f"trading_price_{p}"] = m["next_trading_price"]
        row[f"sold_quantity_{p}"] = m["sold_quantity"]
        row[f"exogenous_quantity_{p}"] = m["exogenous_quantity"]
    for (day, product), (quantity, value) in _traded(record).items():
        rows[day][f"unit_price_{product}"] = value / quantity if quantity else 0.0
    stocks = record.tables["days"]["stock_in"].to_pylist()  # in the order of the settlements
    for s, stock in zip(record.tables["settlements"].to_pylist(), stocks, strict=True):
        _settled(rows[s["day"]], record.factories[s["factory"]], s, stock)
    for row, extra in zip(rows, _counts(record), strict=True):
        row.update(extra)
    columns = list(rows[0])
    return _csv(columns, ([row[column] for column in columns] for row in rows))


def _traded(record: WorldRecord) -> dict[tuple[int, int], tuple[int, int]]:
    """Units delivered and their value, by day and product."""
    sold = {(m["day"], m["product"]): (0, 0) for m in record.tables["markets"].to_pylist()}
    due = [(c["time"], c) for c in record.tables["contracts"].to_pylist() if c["fate"] == "executed"]
    for day, c in [*due, *((x["day"], x) for x in record.tables["exogenous"].to_pylist())]:
        units, value = sold[day, c["product"]]
        sold[day, c["product"]] = (units + c["quantity"], value + c["quantity"] * c["unit_price"])
    return sold


def _settled(row: dict[str, Any], factory: dict[str, Any], s: dict[str, Any], stock: int) -> None:
    name, end = factory["name"], factory["bankrupt_day"]
    values = (
        s["balance"] / factory["initial_balance"] if factory["initial_balance"] else s["balance"],
        s["balance"],
        end is not None and end <= s["day"],
        s["produced"] / factory["n_lines"],
        s["shortfall_quantity"],
        s["shortfall_penalty"],
        s["storage_cost"],
        0.0,
        max(0, stock + s["input_quantity"] - s["produced"]),
        s["stock_in"],
        0,
    )
    row.update({f"{what}_{name}": value for what, value in zip(_PER_FACTORY, values, strict=True)})


def _counts(record: WorldRecord) -> list[dict[str, int]]:
    """Return what happened on each day, counted."""
    names = [
        "n_contracts_concluded",
        "n_contracts_signed",
        "n_contracts_executed",
        "n_contracts_nullified",
        "n_negotiations",
        "n_negotiation_successful",
        "n_negotiation_failed",
        "n_negotiation_rounds_successful",
        "n_negotiation_rounds_failed",
    ]
    days = [dict.fromkeys(names, 0) for _ in range(record.facts["n_days"])]
    for c in record.tables["contracts"].to_pylist():
        days[c["day"]]["n_contracts_concluded"] += 1
        days[c["day"]]["n_contracts_signed"] += 1
        days[c["fate_day"]][f"n_contracts_{c['fate']}"] += 1
    for x in record.tables["exogenous"].to_pylist():
        for name in ("concluded", "signed", "executed"):
            days[x["day"]][f"n_contracts_{name}"] += 1
    for n in record.tables["negotiations"].to_pylist():
        day, how = days[n["day"]], "successful" if n["status"] == "agreement" else "failed"
        day["n_negotiations"] += 1
        day[f"n_negotiation_{how}"] += 1
        day[f"n_negotiation_rounds_{how}"] += n["rounds"] + 1  # scml counts the pass that ended it
    return days

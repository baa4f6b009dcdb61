"""Samples from scml's negotiation tables (``negotiations.csv``).

`load_negotiation_csv` reads the tables; `build_macro_dataset` and `build_micro_dataset` make samples of them. A state
is what a table shows at the start of a day: the day, the legal prices, and what earlier days agreed. The baseline is
L1's price concession for the earliest delivery and an even share of the largest legal quantity, because a table shows
neither stock nor cash.
"""

from __future__ import annotations

import ast
import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import astuple
from math import ceil
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError, NoSuchAgentError
from litaagent_std.hrl_xf.data_pipeline.samples import MacroSample, MicroSample
from litaagent_std.policy.arrays import Floats32, Ints32
from litaagent_std.policy.buckets import bucket_edges
from litaagent_std.policy.l1 import baseline as l1_baseline
from litaagent_std.policy.observation import Agenda, Calendar, Offer, ThreadObservation
from litaagent_std.policy.parameters import ParameterColumns, Parameters
from litaagent_std.records.columns import ACCEPT, END, REJECT

__all__ = ["NEGOTIATIONS_CSV", "build_macro_dataset", "build_micro_dataset", "load_negotiation_csv"]

NEGOTIATIONS_CSV: Final = "negotiations.csv"

_OFFER: Final = pa.struct(
    [("round", pa.int32()), ("by", pa.string()), *((name, pa.int32()) for name in ("quantity", "time", "price"))]
)
_SCHEMA: Final = pa.schema(
    [
        ("world", pa.string()),
        ("negotiation_id", pa.string()),
        ("day", pa.int32()),
        ("product", pa.int32()),
        ("buyer", pa.string()),
        ("seller", pa.string()),
        ("caller", pa.string()),
        ("buyer_type", pa.string()),
        ("seller_type", pa.string()),
        *((f"{name}_{end}", pa.int32()) for name in ("quantity", "time", "price") for end in ("min", "max")),
        ("status", pa.string()),
        ("offers", pa.list_(_OFFER)),
    ]
)
_RANGE: Final = re.compile(r"\((-?\d+),\s*(-?\d+)\)")


def load_negotiation_csv(folder: str | Path) -> pa.Table:
    """Read every ``negotiations.csv`` under a folder, or one such file.

    Returns:
        A row per negotiation: world (the name of the log's folder), id, day, product, buyer, seller, caller, classes of
        both agents, legal ranges, how it ended (``agreement``, ``broken``, ``timedout`` or ``error``), and its offers
        in order. ``to_pandas()`` makes a data frame of it.

    Raises:
        DatasetError: If there is no such file, a column is missing or a cell cannot be read.
    """
    root = Path(folder)
    files = [root] if root.is_file() else sorted(root.rglob(NEGOTIATIONS_CSV))
    if not files:
        raise DatasetError(
            f"there is no {NEGOTIATIONS_CSV} under {str(root)!r}",
            "scml writes one per world when negotiations are logged",
            "run the tournament with log_negotiations=True, or lita export-scml on records",
        )
    rows = [row for path in files for row in _rows(path)]
    return pa.Table.from_pylist(rows, _SCHEMA)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(sys.maxsize)  # histories are long
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        needed = {"id", "partners", "partner_types", "issues", "caller", "product", "buyer", "seller", "sim_step"}
        missing = sorted((needed | {"broken", "timedout", "agreement", "history"}) - set(reader.fieldnames or ()))
        if missing:
            raise DatasetError(
                f"{str(path)!r} lacks the columns {missing}",
                "it must be a table of negotiations as scml 0.7 or 0.8 writes it",
                "log negotiations with their histories, or use records",
            )
        for number, row in enumerate(reader):
            try:
                yield _row(path.parent.name, row)
            except (ValueError, SyntaxError, KeyError, TypeError, IndexError) as error:
                raise DatasetError(
                    f"row {number} of {str(path)!r} cannot be read: {error!r}",
                    "cells hold what scml prints",
                    "the file may be cut off; export or log it again",
                ) from error


def _row(world: str, row: dict[str, str]) -> dict[str, Any]:
    partners, types = ast.literal_eval(row["partners"]), ast.literal_eval(row["partner_types"])
    kinds = {name: kind.rpartition(":")[2].rpartition(".")[2] for name, kind in zip(partners, types, strict=True)}
    ranges = [tuple(map(int, ends)) for ends in _RANGE.findall(row["issues"])]
    (q_min, q_max), (t_min, t_max), (p_min, p_max) = ranges
    return {
        "world": world,
        "negotiation_id": row["id"],
        "day": int(row["sim_step"]),
        "product": int(row["product"]),
        "buyer": row["buyer"],
        "seller": row["seller"],
        "caller": row["caller"],
        "buyer_type": kinds[row["buyer"]],
        "seller_type": kinds[row["seller"]],
        "quantity_min": q_min,
        "quantity_max": q_max,
        "time_min": t_min,
        "time_max": t_max,
        "price_min": p_min,
        "price_max": p_max,
        "status": _status(row),
        "offers": _offers(row["history"]),
    }


def _status(row: dict[str, str]) -> str:
    if row["agreement"] not in ("", "None"):
        return "agreement"
    if row["broken"] == "True":
        return "broken"
    return "timedout" if row["timedout"] == "True" else "error"


def _offers(history: str) -> list[dict[str, Any]]:
    """Read a negotiation's offers from its states.

    scml labels an offer with the negotiator that made it, and names a negotiator after the partner; the agent stands
    in a column of its own. Our export labels an offer with the agent.
    """
    offers = []
    for state in ast.literal_eval(history):
        agents = state.get("new_offerer_agents") or [by for by, _ in state["new_offers"]]
        for by, (_, offer) in zip(agents, state["new_offers"], strict=False):
            if offer is not None:
                quantity, time, price = (int(value) for value in offer)
                offers.append({"round": state["step"], "by": by, "quantity": quantity, "time": time, "price": price})
    return offers


Row = dict[str, Any]
_BUY, _SELL = 0, 1
_NO_OFFER: Final = (-1, -1, -1)
_EMPTY: Final = Calendar((), (), (), ())
_DEFAULT_ROUNDS: Final = 20


def build_macro_dataset(table: pa.Table, agent_name: str = "") -> list[MacroSample]:
    """Make a sample of each day on which an agent negotiated; goals are the day's deals by delivery bucket.

    Args:
        table: From `load_negotiation_csv`.
        agent_name: Prefix of the agents' class names; "" selects all.

    Raises:
        NoSuchAgentError: If no agent matches.
    """
    rows = table.to_pylist()
    horizon = _horizon(rows)
    by_agent: dict[tuple[str, str], dict[int, list[tuple[int, Row]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for side, role in ((_BUY, "buyer"), (_SELL, "seller")):
            if row[f"{role}_type"].startswith(agent_name):
                by_agent[row["world"], row[role]][row["day"]].append((side, row))
    if not by_agent:
        raise _no_match(rows, agent_name)
    return [sample for days in by_agent.values() for sample in _days(days, horizon)]


def _horizon(rows: list[Row]) -> int:
    return max((row["time_max"] - row["day"] for row in rows), default=1)


def _no_match(rows: list[Row], agent_name: str) -> NoSuchAgentError:
    known = sorted({row[f"{role}_type"] for row in rows for role in ("buyer", "seller")})
    return NoSuchAgentError(
        f"no negotiation of an agent {agent_name!r}",
        f"agents are selected by a prefix of their class name; the tables hold {', '.join(known) or 'no agents'}",
        "name one of these",
    )


def _days(days: dict[int, list[tuple[int, Row]]], horizon: int) -> Iterator[MacroSample]:
    """Yield an agent's days in order; deals of a day enter the state of later days only."""
    edges = np.array(bucket_edges(horizon))
    last = max(days)
    agreed = np.zeros((2, last + horizon + 2))  # [side, delivery day] units agreed so far
    first_prices: dict[int, float] = {}
    for day, negotiations in sorted(days.items()):
        mid_price = np.zeros(2)
        largest = max(row["quantity_max"] for _, row in negotiations)
        partners = np.zeros(2)
        quantity, value = np.zeros((2, len(edges) - 1)), np.zeros((2, len(edges) - 1))
        standing = agreed[:, day : day + horizon + 1].copy()  # [side, lead] without the deals of this day
        for side, row in negotiations:
            mid_price[side] = (row["price_min"] + row["price_max"]) / 2
            first_prices.setdefault(side, mid_price[side])
            partners[side] += 1
            if row["status"] == "agreement" and row["offers"]:
                deal = row["offers"][-1]
                bucket = int(np.searchsorted(edges, deal["time"] - day, side="right")) - 1
                quantity[side, bucket] += deal["quantity"]
                value[side, bucket] += deal["quantity"] * deal["price"]
                agreed[side, deal["time"]] += deal["quantity"]
        # goal [4, B] and state of the day: progress, partners, sides, change of prices, standing units by lead
        price = np.divide(value, quantity, out=np.zeros_like(value), where=quantity > 0)
        change = [mid_price[side] / first_prices[side] - 1 if mid_price[side] > 0 else 0.0 for side in (_BUY, _SELL)]
        state = np.concatenate([[day / max(1, last)], partners / 6, mid_price > 0, change, standing.ravel() / largest])
        goal = np.stack([quantity[0], price[0], quantity[1], price[1]]).astype(np.float32)
        scale = np.array([largest, mid_price[0] or 1, largest, mid_price[1] or 1], np.float32)
        yield MacroSample(day, state.astype(np.float32), goal, scale)


def build_micro_dataset(table: pa.Table, agent_name: str = "") -> list[MicroSample]:
    """Make a sample of each action of an agent, its history strictly before it.

    Args:
        table: From `load_negotiation_csv`.
        agent_name: Prefix of the agents' class names; "" selects all.

    Raises:
        NoSuchAgentError: If no agent matches.
    """
    rows = table.to_pylist()
    horizon = _horizon(rows)
    partners: dict[tuple[str, int, str], int] = defaultdict(int)
    for row in rows:
        for role in ("buyer", "seller"):
            partners[row["world"], row["day"], row[role]] += 1
    n_rounds = max((offer["round"] + 1 for row in rows for offer in row["offers"]), default=_DEFAULT_ROUNDS)
    samples: list[MicroSample] = []
    for row in rows:
        for role in ("buyer", "seller"):
            if row[f"{role}_type"].startswith(agent_name):
                shares = partners[row["world"], row["day"], row[role]]
                samples += _actions(row, row[role], horizon, max(n_rounds, _DEFAULT_ROUNDS), shares)
    if not samples:
        raise _no_match(rows, agent_name)
    return samples


def _actions(row: Row, me: str, horizon: int, n_rounds: int, n_partners: int) -> Iterator[MicroSample]:
    """Yield an agent's actions in one negotiation: its offers, and the response that ended it if it was its own."""
    buying, day = row["buyer"] == me, row["day"]
    agenda = Agenda(*(row[f"{name}_{end}"] for name in ("quantity", "time", "price") for end in ("min", "max")))
    mid_price = (agenda.price_min + agenda.price_max) / 2 or 1.0
    scale = np.array([agenda.quantity_max, max(1, horizon), mid_price], np.float32)
    history = np.array([_features(turn, o, me, row, agenda, scale, n_rounds) for turn, o in enumerate(row["offers"])])
    history = history.reshape(-1, 6).astype(np.float32)  # [n_offers, 6]
    for turn, op in _own_turns(row, me):
        offer = row["offers"][turn] if op == REJECT else None
        counter = _NO_OFFER if offer is None else (offer["quantity"], offer["time"] - day, offer["price"])
        received = row["offers"][turn - 1] if turn else None
        offered = None if received is None else Offer(received["quantity"], received["time"], received["price"])
        thread = ThreadObservation(day, "", buying, turn // 2, n_rounds, 0.0, row["caller"] == me, offered, (), _EMPTY)
        context = np.array([turn // 2 / n_rounds, float(buying), float(turn > 0), n_partners / 6], np.float32)
        baseline = _baseline(thread, agenda, n_partners)
        name = f"{row['world']}/{row['negotiation_id']}"
        yield MicroSample(name, history[:turn], np.array([op, *counter], np.int32), baseline, context, scale)


def _own_turns(row: Row, me: str) -> Iterator[tuple[int, int]]:
    """Yield each own action: the number of offers before it, and its operation."""
    offers = row["offers"]
    for turn, offer in enumerate(offers):
        if offer["by"] == me:
            yield turn, REJECT
    if offers and offers[-1]["by"] != me and row["status"] in ("agreement", "broken"):
        yield len(offers), ACCEPT if row["status"] == "agreement" else END


def _features(
    turn: int, offer: Row, me: str, row: Row, agenda: Agenda, scale: Floats32, n_rounds: int
) -> tuple[float, ...]:
    width = agenda.price_max - agenda.price_min
    above = (offer["price"] - agenda.price_min) / width if width else 0.5
    return (
        float(offer["by"] == me),
        (turn // 2 + 1) / (n_rounds + 1),
        offer["quantity"] / scale[0],
        (offer["time"] - row["day"]) / scale[1],
        (offer["price"] / scale[2] - 1) / 0.1,
        1 - above if row["buyer"] == me and width else above,
    )


def _baseline(thread: ThreadObservation, agenda: Agenda, n_partners: int) -> Ints32:
    parameters, ends = ParameterColumns.of([Parameters()]), np.array([astuple(agenda)])
    selling, end = not thread.buying, np.array([float(agenda.price_max if thread.buying else agenda.price_min)])
    start = l1_baseline.start_price(selling, ends, parameters)

    def limit(*, proposing: bool) -> float:
        time = l1_baseline.progress_at(thread.round, thread.n_rounds, opens=thread.opens, proposing=proposing)
        conceded = l1_baseline.power(np.array([time]), l1_baseline.curve(selling, parameters))
        return float(l1_baseline.reservation(selling, start, end, conceded, urgency=parameters.buy_urgency)[0])

    price = int(limit(proposing=True))
    counter = (ceil(agenda.quantity_max / max(1, n_partners)), agenda.time_min - thread.day, price)
    op = REJECT
    if thread.offer is not None:
        now = limit(proposing=False)
        good = thread.offer.price <= now if thread.buying else thread.offer.price >= now
        op = ACCEPT if good and thread.offer.quantity <= counter[0] else REJECT
    return np.array([op, *counter], np.int32)

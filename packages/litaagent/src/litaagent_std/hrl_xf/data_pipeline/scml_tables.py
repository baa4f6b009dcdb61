"""Negotiation tables that scml itself writes (``logs/*/negotiations.csv``), for tournaments that others ran.

Such a table tells who offered what to whom, and the legal ranges; it tells nothing of money, stock and exogenous
contracts. Records tell all of it and are read much faster: prefer them where there are any.
"""

from __future__ import annotations

import ast
import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError

__all__ = ["NEGOTIATIONS_CSV", "load_negotiation_csv"]

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

    scml names an offer after the negotiator that made it, and a negotiator after the partner; whose it was is said
    beside it. Our own export says whose it was at once.
    """
    found = []
    for state in ast.literal_eval(history):
        agents = state.get("new_offerer_agents") or [by for by, _ in state["new_offers"]]
        for by, (_, offer) in zip(agents, state["new_offers"], strict=False):
            if offer is not None:
                quantity, time, price = (int(value) for value in offer)
                found.append({"round": state["step"], "by": by, "quantity": quantity, "time": time, "price": price})
    return found

"""Comparison of networks with baselines: scores side by side, and baselines that are not beaten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["HIGHER", "losers", "scores", "summary_lines"]

HIGHER: Final = ("accuracy", "macro_f1", "auc", "t_accuracy")
"""Measures of which higher is better; of the others lower is."""


def scores(tables: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the tables of a split as ``{what: {predictor: {measure: value}}}``."""
    out: dict[str, dict[str, dict[str, float]]] = {}
    for what in ("quantity", "price") if "l2" in tables else ():
        table = tables["l2"][what]
        out[f"L2 {what}"] = {name: {k: parts["all"][k] for k in ("mae", "rmse")} for name, parts in table.items()}
    if "l3" in tables:
        out["L3 operation"], out["L3 offer"] = tables["l3"]["operation"], tables["l3"]["offer"]
    if "acceptance" in tables:
        out["acceptance"] = tables["acceptance"]["scores"]
    names = {"all": "partner types", "compared": "partner types, competitors", "ours": "partner types, our agent"}
    for part, table in tables.get("partner", {}).items():
        if table["threads"]:
            out[names[part]] = table["scores"]
    return out


def losers(tables: Mapping[str, Any]) -> list[str]:
    """Return where a baseline is as good as the network, such as ``L2 price mae: linear 0.1, network 0.2``."""
    lost = []
    for what, table in scores(tables).items():
        for measure, own in table["network"].items():
            for name, values in table.items():
                better = values[measure] >= own if measure in HIGHER else values[measure] <= own
                if name != "network" and better:
                    lost.append(f"{what} {measure}: {name} {values[measure]:.4g}, network {own:.4g}")
    return lost


def summary_lines(tables: Mapping[str, Any]) -> list[str]:
    """Return a line for each table: the network and each baseline with their measures."""
    lines = []
    for what, table in scores(tables).items():
        cells = [f"{name} " + " ".join(f"{k}={v:.4f}" for k, v in values.items()) for name, values in table.items()]
        lines.append(f"{what}: " + "; ".join(cells))
    if "l4" in tables and "agreement" in tables["l4"]:
        lines.append(
            f"L4: agreement {tables['l4']['agreement']:.4f}, nothing {tables['l4']['agreement_of_nothing']:.4f}"
        )
    return lines

"""Comparison of networks with baselines: scores side by side, and baselines that are not beaten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["HIGHER", "losers", "partner_details", "scores", "summary_lines"]

HIGHER: Final = ("accuracy", "macro_f1", "auc", "t_accuracy")
"""Measures of which higher is better; of the others lower is."""
_PARTNER: Final = {
    "all": "partner types",
    "compared": "partner types, of competitors' partners",
    "ours": "partner types, of our agent's partners",
}
"""Titles of the parts of the evaluation of partners' types."""


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
    out |= {_PARTNER[part]: table["scores"] for part, table in tables.get("partner", {}).items() if table["threads"]}
    return out


def partner_details(tables: Mapping[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return the types of partners by day and by type: title, header and rows of each table."""
    out = []
    for part, table in tables.get("partner", {}).items():
        if not table["threads"]:
            continue
        network = table["by_day"]["network"]
        accuracy = [
            [name, *(f"{days[day]['accuracy']:.3f}" for day in network)] for name, days in table["by_day"].items()
        ]
        threads = ["threads", *(str(network[day]["threads"]) for day in network)]
        out.append((f"{_PARTNER[part]}: accuracy by day", ["predictor", *network], [*accuracy, threads]))
        measures = ("accuracy", "log_loss", "calibration_error")
        rows = [
            [name, kind, *(f"{values[measure]:.3f}" for measure in measures), str(values["threads"])]
            for name, kinds in table["by_type"].items()
            for kind, values in kinds.items()
        ]
        out.append((f"{_PARTNER[part]}: by type", ["predictor", "type", *measures, "threads"], rows))
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

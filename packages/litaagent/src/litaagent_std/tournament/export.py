"""Files in scml's own form: a folder of logs per world, and the scores of the tournament.

scml-vis reads a tournament's folder when ``assigned_configs.json``, ``base_configs.json`` and ``scores.csv`` are in it.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from apexrl.runs.atomic import ensure_folder, sync_folder, write_bytes, write_failure, write_text
from litaagent_std.records.reader import Records
from litaagent_std.records.scml_form import world_files, world_name
from litaagent_std.tournament.standings import Results

__all__ = ["LOGS", "export_logs", "export_scores", "write_world"]

LOGS: Final = "logs"


def write_world(logs: Path, world: int, files: Mapping[str, str]) -> None:
    """Write a world's folder of logs; it appears whole or not at all, and replaces an older one."""
    target = logs / world_name(world)
    partial = logs / f".{target.name}.partial"
    try:
        for leftover in (partial, target):
            if leftover.exists():
                shutil.rmtree(leftover)
        ensure_folder(partial)
        for name, text in files.items():
            (partial / name).write_text(text, encoding="utf-8")
        partial.rename(target)
        sync_folder(logs)
    except OSError as error:
        raise write_failure(error, target) from error


def export_logs(records: Records, folder: Path, worlds: Iterable[int] | None = None) -> int:
    """Write the logs of a folder's finished worlds that are not there yet; returns how many were written.

    Args:
        records: Records of one folder.
        folder: The tournament's folder.
        worlds: Worlds to write; all when None.
    """
    wanted = None if worlds is None else set(worlds)
    written = 0
    for key in records.keys:
        skip = wanted is not None and key.world not in wanted
        if skip or (folder / LOGS / world_name(key.world)).exists():
            continue
        write_world(folder / LOGS, key.world, world_files(records.world(key)))
        written += 1
    return written


def export_scores(records: Records, results: Results, folder: Path) -> None:
    """Write the tournament's scores, standings and configurations."""
    names = {
        (row["source"], row["world"], row["factory"]): row["name"]
        for row in records.table("factories", columns=["factory", "name"]).to_pylist()
    }
    rows = [
        {
            "world": world_name(s.world),
            "config": s.config,
            "run": s.run,
            "agent_name": names[s.source, s.world, s.factory],
            "agent_type": s.competitor,
            "level": s.level,
            "score": s.score,
        }
        for s in results.scores
    ]
    write_text(folder / "scores.csv", _as_csv(rows))
    totals = [
        {"agent_type": s.competitor, "score": s.score, "low": s.low, "high": s.high, "mean": s.mean, "worlds": s.worlds}
        for s in results.standings
    ]
    write_text(folder / "total_scores.csv", _as_csv(totals))
    write_text(folder / "results.json", json.dumps(results.to_plain(), indent=2) + "\n")


def export_configurations(records: Records, folder: Path) -> None:
    """Write which world belongs to which configuration, as scml-vis wants it."""
    worlds = records.table("worlds", columns=["config", "n_days", "n_factories"]).to_pylist()
    factories = records.table("factories", columns=["factory", "competitor"]).to_pylist()
    default: dict[int, list[bool]] = {}
    for row in factories:
        default.setdefault(row["world"], []).append(row["competitor"] is None)
    assigned = [
        [
            {
                "config_id": f"config-{w['config']:05}",
                "__dir_name": str(folder / LOGS / world_name(w["world"])),
                "world_params": {"name": world_name(w["world"]), "n_steps": w["n_days"]},
                "is_default": default[w["world"]],
            }
        ]
        for w in worlds
    ]
    bases = {w["config"]: w["n_days"] for w in worlds}
    base: list[list[dict[str, Any]]] = [
        [{"config_id": f"config-{number:05}", "world_params": {"n_steps": days}}]
        for number, days in sorted(bases.items())
    ]
    for name, content in (("assigned_configs.json", assigned), ("base_configs.json", base)):
        write_bytes(folder / name, (json.dumps(content, indent=1) + "\n").encode())


def _as_csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["score"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()

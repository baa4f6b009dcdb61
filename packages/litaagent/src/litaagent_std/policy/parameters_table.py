"""The table of the tunable parameters for the documentation."""

from __future__ import annotations

from dataclasses import fields

from .parameters import Parameters

__all__ = ["as_markdown"]


def as_markdown() -> str:
    """Return every tunable parameter with its range and meaning."""
    rows = [
        (entry.name, *entry.metadata["range"], entry.metadata["meaning"])
        for entry in fields(Parameters)
        if "range" in entry.metadata
    ]
    lines = ["| parameter | from | to | meaning |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {low:g} | {high:g} | {meaning} |" for name, low, high, meaning in rows])

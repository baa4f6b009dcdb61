"""The settings of a run as a list for people: name, symbol, value and meaning."""

import ast
import inspect
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from hmasd.config.file import ALIASES
from hmasd.config.schema import HMASDConfig


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A field of :class:`~hmasd.config.schema.HMASDConfig`."""

    name: str
    symbol: str
    """Its other names in files and on the command line, or nothing."""
    value: Any
    meaning: str


def settings(config: HMASDConfig | None = None) -> list[Setting]:
    """All settings with their values in ``config``, or with their defaults."""
    config = config or HMASDConfig()
    meanings = _docstrings()
    return [
        Setting(
            name=field.name,
            symbol=", ".join(alias for alias, name in ALIASES.items() if name == field.name),
            value=getattr(config, field.name),
            meaning=meanings[field.name],
        )
        for field in fields(HMASDConfig)
    ]


def markdown() -> str:
    """Return the settings as a table for the documentation."""
    lines = ["| setting | also called | default | meaning |", "|---|---|---|---|"]
    for setting in settings():
        symbol = f"`{setting.symbol}`" if setting.symbol else ""
        lines.append(f"| `{setting.name}` | {symbol} | `{setting.value!r}` | {setting.meaning} |")
    return "\n".join(lines) + "\n"


def _docstrings() -> dict[str, str]:
    """Return the text under each field, which Python does not keep."""
    body = ast.parse(inspect.getsource(HMASDConfig)).body[0].body  # type: ignore[attr-defined]  # a class has one
    found = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            found[field.target.id] = " ".join(ast.literal_eval(text.value).replace("``", "`").split())
    return found

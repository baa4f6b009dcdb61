"""All settings of a run for display: name, symbol, value and meaning."""

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
    """Its other names in files and on the command line, or an empty string."""
    value: Any
    meaning: str


def list_settings(config: HMASDConfig | None = None) -> list[Setting]:
    """Return all settings with their values in ``config``; default: the default values."""
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
    for setting in list_settings():
        symbol = f"`{setting.symbol}`" if setting.symbol else ""
        lines.append(f"| `{setting.name}` | {symbol} | `{setting.value!r}` | {setting.meaning} |")
    return "\n".join(lines) + "\n"


def _docstrings() -> dict[str, str]:
    """Return the docstring under each field, which Python does not keep at run time."""
    body = ast.parse(inspect.getsource(HMASDConfig)).body[0].body  # type: ignore[attr-defined]  # the class
    docstrings = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            docstrings[field.target.id] = " ".join(ast.literal_eval(text.value).replace("``", "`").split())
    return docstrings

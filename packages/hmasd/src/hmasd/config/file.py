"""Configuration files: YAML, or a Python file of plain assignments such as ``config_1.py``.

A Python file is parsed and never executed: it may contain ``name = literal`` lines, a docstring and comments, or one
class with such lines, and nothing else. The paper's symbols are accepted beside the field names of
:class:`hmasd.config.HMASDConfig`.
"""

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from apexrl.configuration import from_mapping, read_yaml
from apexrl.runs.atomic import StrPath
from apexrl.runs.errors import ConfigurationError
from hmasd.config.schema import HMASDConfig

ALIASES: Final = {
    "n_Z": "n_team_skills",
    "n_z": "n_agent_skills",
    "k": "skill_steps",
    "lambda_D": "lambda_team",
    "lambda_d": "lambda_agent",
    "lambda_c": "lambda_coverage",
    "lambda_h": "entropy_high",
    "lambda_l": "entropy_low",
    "hidden_dim": "hidden_size",
    "learning_rate": "lr",
    "clip_epsilon": "clip_range",
    "total_timesteps": "total_steps",
}
"""Symbols of the paper and common other names, with the fields that they mean."""


_SCIENTIFIC: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")


def read_settings(path: Path) -> dict[str, Any]:
    """Return field names and values of a ``.py`` or ``.yaml`` file.

    Raises:
        ConfigurationError: The file cannot be read, contains code, or sets a field twice.
    """
    values = _read_literals(path) if path.suffix == ".py" else list(read_yaml(path).items())
    return {name: plain_number(value) for name, value in by_field(values, repr(str(path))).items()}


def by_field(values: Iterable[tuple[str, Any]], source: str) -> dict[str, Any]:
    """Return values by the names of fields, where the names of :data:`ALIASES` are understood too.

    Args:
        values: Names and values.
        source: Who gives them, for the message.

    Raises:
        ConfigurationError: A field is given twice.
    """
    settings: dict[str, Any] = {}
    names: dict[str, str] = {}  # field: what the source calls it
    for name, value in values:
        field = ALIASES.get(name, name)
        if field in settings:
            both = "" if names[field] == name else f", as {names[field]!r} and as {name!r}"
            raise ConfigurationError(f"{source} gives {field} twice{both}; keep one of them")
        settings[field], names[field] = value, name
    return settings


def plain_number(value: Any) -> Any:  # noqa: ANN401 - any value of a file or of the command line
    """Return words such as ``3e6`` as numbers, whole ones as int, because YAML does not; other values unchanged."""
    if not isinstance(value, str) or not _SCIENTIFIC.fullmatch(value):
        return value
    number = float(value)
    return int(number) if number.is_integer() else number


def load_config(path: StrPath | None, changes: dict[str, Any] | None = None) -> HMASDConfig:
    """Return the configuration of a file, with some fields changed; defaults for what neither names."""
    values = {} if path is None else read_settings(Path(path))
    sources = [] if path is None else [f"configuration file {str(path)!r}"]
    sources += ["--set"] if changes else []
    values |= by_field((changes or {}).items(), "the change")
    return from_mapping(HMASDConfig, values, " with ".join(sources) or "the configuration")


def _read_literals(path: Path) -> list[tuple[str, Any]]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except OSError as error:
        raise ConfigurationError(
            f"configuration file {str(path)!r} cannot be read ({error.strerror}); give the path of an existing file"
        ) from error
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"configuration file {str(path)!r} is not valid Python: {error}") from error
    body = [node for node in tree.body if not _is_docstring(node)]
    if len(body) == 1 and isinstance(body[0], ast.ClassDef):
        body = [node for node in body[0].body if not _is_docstring(node)]
    return [_assignment(node, path) for node in body]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _assignment(node: ast.stmt, path: Path) -> tuple[str, Any]:
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if isinstance(node, ast.AnnAssign):
        target = node.target
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(target, ast.Name) or node.value is None:
        raise ConfigurationError(
            f"line {node.lineno} of {str(path)!r} is not of the form `name = value`; the file is read, not executed: "
            "write plain values only"
        )
    try:
        return target.id, ast.literal_eval(node.value)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"line {node.lineno} of {str(path)!r}: the value of {target.id} is an expression; the file is read, not "
            "executed: write a number, a string, True, False or None"
        ) from error

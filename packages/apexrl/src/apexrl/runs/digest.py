"""Plain values, canonical JSON and SHA-256 digests, so that a run can say what it was made from."""

from __future__ import annotations

import ast
import dataclasses
import enum
import hashlib
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePath
from typing import Any

from apexrl.runs.errors import NotPlainError

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
"""What strict JSON and YAML can hold and give back unchanged."""

_ABSENT = "(absent)"


def to_plain(value: Any, where: str = "config") -> Plain:  # noqa: ANN401 - any configuration object
    """Reduce a configuration to values that JSON and YAML give back unchanged.

    Dataclasses and pydantic models become mappings of their fields, enums their values, paths strings,
    tuples lists, sets sorted lists, numpy scalars Python numbers. Infinities become the strings
    ``"Infinity"`` and ``"-Infinity"``, which ``float()`` and pydantic read back.

    Args:
        value: The configuration.
        where: The name of ``value`` in error messages.

    Raises:
        NotPlainError: If there is a value of another kind, a NaN, or a key that is not a string.
    """
    if isinstance(value, enum.Enum):
        return to_plain(value.value, where)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _plain_float(float(value), where)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, PurePath):
        return str(value)
    return _plain_container(value, where)


def canonical_json(value: Any) -> str:  # noqa: ANN401 - any configuration object
    """Write a value as the one JSON text that stands for it: keys sorted, no spaces, ASCII only."""
    return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_yaml(value: Any) -> str:  # noqa: ANN401 - any configuration object
    """Write a value as YAML for people, in the order of its keys, such that reading gives the same plain value."""
    import yaml  # here: 7 ms that an import of the package need not take

    plain = to_plain(value)
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    if yaml.safe_load(text) != plain:  # PyYAML loses some line separators unless everything is escaped
        text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=False)
    return text


def digest_config(value: Any) -> str:  # noqa: ANN401 - any configuration object
    """Return the SHA-256 of the canonical JSON of ``value``, in hexadecimal.

    The order of keys does not matter; ``1`` and ``1.0`` differ.
    """
    return digest_bytes(canonical_json(value).encode())


def digest_bytes(data: bytes) -> str:
    """Return the SHA-256 of ``data``, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal, read piece by piece."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_code(files: Iterable[str | os.PathLike[str]]) -> str:
    """Return the SHA-256 of Python sources, in hexadecimal; comments, docstrings, layout and paths do not count.

    Raises:
        SyntaxError: If a file is no Python source.
    """
    parts = []
    for file in files:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):  # texts that stand alone are docstrings
                node.body = [part for part in body if not _is_text(part)] or [ast.Pass()]  # type: ignore[attr-defined]
        parts.append(digest_bytes(ast.unparse(ast.fix_missing_locations(tree)).encode()))
    return digest_bytes("\n".join(sorted(parts)).encode())


def differences(old: Any, new: Any, free: Collection[str] = ()) -> list[str]:  # noqa: ANN401 - any configuration
    """List the fields in which two configurations differ.

    Args:
        old: The configuration of before.
        new: The configuration of now.
        free: Dotted names of fields that may differ; naming a section frees all of it.

    Returns:
        One line per field, such as ``optimiser.lr: 0.001 -> 0.01``, sorted by name.
    """
    before, after = _flatten(to_plain(old)), _flatten(to_plain(new))
    names = sorted(before.keys() | after.keys())
    return [
        f"{name}: {before.get(name, _ABSENT)} -> {after.get(name, _ABSENT)}"
        for name in names
        if before.get(name) != after.get(name) and not _is_free(name, free)
    ]


def _plain_float(value: float, where: str) -> Plain:
    if math.isnan(value):
        raise NotPlainError(f"{where} is NaN", "a configuration must equal itself", "use null for 'not set'")
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _plain_container(value: Any, where: str) -> Plain:  # noqa: ANN401 - see to_plain
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif hasattr(type(value), "model_fields"):  # a pydantic model, without importing pydantic
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {_key(key, where): to_plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, set | frozenset):
        items = [to_plain(item, where) for item in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return to_plain(value.item(), where)
    raise NotPlainError(
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}",
        "a configuration holds numbers, strings, booleans, null, lists and mappings",
        "convert it to one of these",
    )


def _key(key: object, where: str) -> str:
    if type(key) is not str:
        raise NotPlainError(f"{where} has the key {key!r}", "keys must be strings", f"use the string {str(key)!r}")
    return key


def _flatten(value: Plain, prefix: str = "") -> dict[str, str]:
    if isinstance(value, dict) and value:
        nested = (_flatten(item, f"{prefix}.{key}" if prefix else key) for key, item in value.items())
        return {name: text for part in nested for name, text in part.items()}
    return {prefix: json.dumps(value, ensure_ascii=False, sort_keys=True)}


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_free(name: str, free: Collection[str]) -> bool:
    return any(name == field or name.startswith(f"{field}.") for field in free)

"""Finished units, kept for ever, each under a key that digests all that determines its result.

`UnitStore` keeps one small file per unit, which many evaluations may share at once; `UnitLog` keeps one line per unit
in a single file of one writer, which is what runs of thousands of units want. Any evaluation finds the units of any
other in the same place: the worlds of an opponent are played once, whoever is compared with it. A change of the agent's
code gives new names, and the old units are left alone.
"""

from __future__ import annotations

import ast
import functools
import json
import logging
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from apexrl.runs.atomic import ensure_folder, remove_leftovers, write_json
from apexrl.runs.digest import digest_config, digest_file
from apexrl.runs.metrics.jsonl import JsonlFile, read_jsonl
from litaagent_std.arena.worlds import Rules
from litaagent_std.tournament.competitors.integer_offers import original_path
from litaagent_std.world.setup import AgentSpec

__all__ = ["UnitLog", "UnitStore", "Units", "code_version", "unit_key"]

logger = logging.getLogger(__name__)

_OURS: Final = ("policy", "hrl_xf")
_LIBRARIES: Final = ("scml", "negmas")


def unit_key(rules: Rules, seed: int, agent: AgentSpec) -> str:
    """Names a unit: rules and seed (which determine the setup), the agent, its parameters, and everybody's code."""
    paths = sorted({original_path(path) for path in (agent.path, *rules.opponents)})
    return digest_config(
        {
            "rules": {**_plain(rules), "engine": rules.engine},
            "seed": seed,
            "agent": agent.path,
            "params": dict(agent.params),
            "files": _files(agent.params),
            "code": {path: code_version(path) for path in paths},
            "libraries": {name: version(name) for name in _LIBRARIES},
        }
    )


def _plain(rules: Rules) -> dict[str, Any]:
    return {name: getattr(rules, name) for name in rules.__dataclass_fields__}


def _files(params: Mapping[str, Any]) -> dict[str, str]:
    """Digests of files that parameters name, such as weights, and of the files in folders that they name."""
    named = {name: Path(value) for name, value in params.items() if isinstance(value, str) and value}
    found = {name: digest_file(path) for name, path in named.items() if path.is_file()}
    for name, path in named.items():
        if path.is_dir():
            found |= {f"{name}/{file.name}": digest_file(file) for file in sorted(path.iterdir()) if file.is_file()}
    return found


@functools.cache
def code_version(path: str) -> str:
    """Return a digest of the code of the agent at a class path; the version of a library that comes as a whole."""
    package = path.partition(".")[0]
    if package in (*_LIBRARIES, "scml_agents"):
        return f"{package} {version(package.replace('_', '-'))}"
    if package == "litaagent_std":
        return _digest(_sources(path.rpartition(".")[0]))
    spec = find_spec(path.rpartition(".")[0])
    origin = None if spec is None else spec.origin
    return _digest([Path(origin)]) if origin is not None and Path(origin).is_file() else "unknown"


def _sources(module: str) -> set[Path]:
    """Files of a module of ours and of all that it imports, directly or not, of `_OURS`, read from the source text."""
    root = Path(__file__).parents[2]
    waiting, seen, files = [module], set(), set()
    while waiting:
        name = waiting.pop()
        place = root.joinpath(*name.split("."))
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if name in seen or not file.is_file():
            continue
        seen.add(name)
        files.add(file)
        package = name if place.is_dir() else name.rpartition(".")[0]
        imported = _imported(file, package)
        waiting += [one for one in imported if one.startswith(tuple(f"litaagent_std.{part}" for part in _OURS))]
    return files


def _imported(file: Path, package: str) -> set[str]:
    """Full names of what a file imports; names inside of modules are among them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found


def _digest(files: Iterable[Path]) -> str:
    return digest_config(
        {
            file.name if not file.parent.name else f"{file.parent.name}/{file.name}": digest_file(file)
            for file in sorted(files)
        }
    )


class Units(Protocol):
    """Where finished units are found and go."""

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a finished unit, or None."""

    def put(self, key: str, unit: Mapping[str, Any]) -> None:
        """Keep a finished unit."""


class UnitStore:
    """The finished units of a folder.

    Args:
        folder: The folder; made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = ensure_folder(folder)
        remove_leftovers(self.folder)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a finished unit, or None. A damaged file counts as none, so that it is played again."""
        path = self._path(key)
        try:
            unit = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            logger.warning("%s is damaged and will be played again", path)
            return None
        return unit if isinstance(unit, dict) else None

    def put(self, key: str, unit: Mapping[str, Any]) -> None:
        """Keep a finished unit, whole or not at all."""
        write_json(self._path(key), dict(unit))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key[:32]}.json"


class UnitLog:
    """The finished units of one writer, a line each; whoever is killed loses nothing but the line being written.

    Use it in a ``with`` block, which closes the file.

    Args:
        path: The file; made if it is not there. A last line that a kill cut off is dropped.

    Raises:
        MetricError: If another line of the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        known = read_jsonl(path) if path.is_file() else []
        self._units: dict[str, dict[str, Any]] = {line["key"]: line["unit"] for line in known}
        self._file = JsonlFile(path, after_step=0)

    def __len__(self) -> int:
        return len(self._units)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a finished unit, or None."""
        return self._units.get(key[:32])

    def put(self, key: str, unit: Mapping[str, Any]) -> None:
        """Keep a finished unit, whole or not at all."""
        self._file.append({"step": 0, "key": key[:32], "unit": dict(unit)})
        self._units[key[:32]] = dict(unit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

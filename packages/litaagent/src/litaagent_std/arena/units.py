"""Finished units, each under a key that digests all that determines its result.

`UnitStore` keeps one small file per unit, which many evaluations may share at once; `UnitLog` keeps one line per unit
in a single file of one writer, which is what runs of thousands of units want. Any evaluation finds the units of any
other in the same folder: the worlds of an opponent are played once, whoever is compared with it.

A key names what its world depends on: rules and seed, the competitors by registry name (integer cast included) and
version, our agents by what they do (`behaviour`), classes of users by their code. A world without our agent does not
depend on our code, and moving a file changes no key.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from apexrl.runs.atomic import ensure_folder, remove_leftovers
from apexrl.runs.digest import digest_code, digest_config
from apexrl.runs.errors import ReadFailedError
from apexrl.runs.metrics.jsonl import JsonlFile, read_jsonl
from apexrl.runs.reading import SEAL, read_sealed, write_sealed
from litaagent_std.arena.behaviour import behaviour_digest
from litaagent_std.arena.worlds import Rules
from litaagent_std.tournament.competitors.integer_offers import original_path
from litaagent_std.tournament.competitors.names import digest_named_files, read_agent
from litaagent_std.tournament.competitors.registry import OURS, registry_name
from litaagent_std.world.isolated import open_path
from litaagent_std.world.setup import AgentSpec

__all__ = ["UnitLog", "UnitStore", "Units", "code_version", "unit_key"]

logger = logging.getLogger(__name__)

_OURS: Final = ("litaagent_std", "benchmarks")
_LIBRARIES: Final = ("scml", "negmas")


def unit_key(rules: Rules, seed: int, agent: AgentSpec, code: str | None = None) -> str:
    """Name a unit by all that determines its result.

    Args:
        rules: What all worlds of the evaluation share.
        seed: The seed of the world.
        agent: The agent in the focal seat.
        code: What to take for the version of the agent's code; `code_version` if None.
    """
    facts = {name: getattr(rules, name) for name in rules.__dataclass_fields__ if name != "opponents"}
    return digest_config(
        {
            "rules": facts | {"opponents": [_competitor(read_agent(text)) for text in rules.opponents]},
            "seed": seed,
            "agent": _competitor(agent, code),
            "libraries": {name: _version(name) for name in _LIBRARIES},
        }
    )


def code_version(agent: AgentSpec) -> str:
    """Return what tells versions of an agent's code apart.

    That is the version of a library that comes as a whole, the digest of what an agent of ours does, and the digest of
    the code of any other class; one that is derived from our agent carries both.
    """
    is_isolated = open_path(agent.path) != agent.path
    agent = replace(agent, path=open_path(agent.path))
    path = original_path(agent.path)
    package = path.partition(".")[0]
    if package in (*_LIBRARIES, "scml_agents"):
        return f"{package} {_version(package.replace('_', '-'))}"
    if package in _OURS:
        return behaviour_digest(agent)
    source = _source_digest(path.rpartition(".")[0])
    if is_isolated:  # its module is not imported here, so whether it is derived from our agent is not known
        return f"{source} {behaviour_digest(AgentSpec(OURS['lita']))}"
    derived = any(base.__module__.partition(".")[0] == "litaagent_std" for base in agent.load().__mro__)
    return f"{source} {behaviour_digest(agent)}" if derived else source


def _competitor(agent: AgentSpec, code: str | None = None) -> dict[str, Any]:
    """Describe a competitor by what does not change when files move: a named file counts by its content."""
    files = digest_named_files(agent.params)
    named = {name.partition("/")[0] for name in files}
    return {
        "name": registry_name(agent.path),
        "params": {name: value for name, value in agent.params.items() if name not in named},
        "files": files,
        "code": code_version(agent) if code is None else code,
    }


@functools.cache
def _version(distribution: str) -> str:
    return version(distribution)


@functools.cache
def _source_digest(module: str) -> str:
    """Digest the code of a user's module, with all of the package that it is in."""
    spec = find_spec(module.partition(".")[0])
    if spec is not None and spec.submodule_search_locations:
        return digest_code(file for folder in spec.submodule_search_locations for file in Path(folder).rglob("*.py"))
    file = None if spec is None else spec.origin
    return digest_code([Path(file)]) if file is not None and Path(file).is_file() else "unknown"


class Units(Protocol):
    """A store of finished units."""

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
        try:
            return read_sealed(self._path(key))
        except FileNotFoundError:
            return None
        except ReadFailedError as error:
            logger.warning("a unit is played again: %s", error)
            return None

    def put(self, key: str, unit: Mapping[str, Any]) -> None:
        """Keep a finished unit, whole or not at all."""
        write_sealed(self._path(key), unit)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key[:32]}.json"


def _is_sound(line: Mapping[str, Any]) -> bool:
    """Whether a line is what was written; lines of an earlier release have no digest."""
    content = {name: value for name, value in line.items() if name != SEAL}
    has_form = content.keys() == {"step", "key", "unit"} and isinstance(content["unit"], dict)
    return has_form and isinstance(content["key"], str) and line.get(SEAL) in (None, digest_config(content))


class UnitLog:
    """The finished units of one writer, a line each; a kill loses nothing but the line being written.

    Use it in a ``with`` block, which closes the file.

    Args:
        path: The file; made if it is not there. A last line that a kill cut off is dropped.

    Raises:
        MetricError: If another line of the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        known = read_jsonl(path) if path.is_file() else []
        sound = [line for line in known if _is_sound(line)]
        if len(sound) < len(known):
            logger.warning("%d units of %s are damaged and will be played again", len(known) - len(sound), path)
        self._units: dict[str, dict[str, Any]] = {line["key"]: line["unit"] for line in sound}
        self._file = JsonlFile(path, after_step=0)

    def __len__(self) -> int:
        return len(self._units)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a finished unit, or None."""
        return self._units.get(key[:32])

    def put(self, key: str, unit: Mapping[str, Any]) -> None:
        """Keep a finished unit, whole or not at all."""
        line = {"step": 0, "key": key[:32], "unit": dict(unit)}
        self._file.append({**line, SEAL: digest_config(line)})
        self._units[key[:32]] = dict(unit)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

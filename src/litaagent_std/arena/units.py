"""Finished units, kept for ever: one small file per world and agent, named by all that determines its result.

Any evaluation finds the units of any other: the worlds of an opponent are played once, whoever is compared with it. A
change of the agent's code gives new names, and the old files are left alone.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from apexrl.runs.atomic import ensure_folder, remove_leftovers, write_json
from apexrl.runs.digest import digest_config, digest_file
from litaagent_std.arena.worlds import Rules
from litaagent_std.market.integer_offers import original_path
from litaagent_std.market.world.setup import AgentSpec

__all__ = ["UnitStore", "code_version", "unit_key"]

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
    """Digests of files that parameters name, such as weights."""
    named = {name: Path(value) for name, value in params.items() if isinstance(value, str) and value}
    return {name: digest_file(path) for name, path in named.items() if path.is_file()}


@functools.cache
def code_version(path: str) -> str:
    """A digest of the code of the agent at a class path; the version of a library that comes as a whole."""
    package = path.partition(".")[0]
    if package in (*_LIBRARIES, "scml_agents"):
        return f"{package} {version(package.replace('_', '-'))}"
    if package == "litaagent_std":
        root = Path(__file__).parents[1]
        return _digest(file for part in _OURS for file in (root / part).rglob("*.py"))
    spec = find_spec(path.rpartition(".")[0])
    origin = None if spec is None else spec.origin
    return _digest([Path(origin)]) if origin is not None and Path(origin).is_file() else "unknown"


def _digest(files: Iterable[Path]) -> str:
    return digest_config(
        {
            file.name if not file.parent.name else f"{file.parent.name}/{file.name}": digest_file(file)
            for file in sorted(files)
        }
    )


class UnitStore:
    """The finished units of a folder.

    Args:
        folder: The folder; made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = ensure_folder(folder)
        remove_leftovers(self.folder)

    def get(self, key: str) -> dict[str, Any] | None:
        """Returns a finished unit, or None. A damaged file counts as none, so that it is played again."""
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
        """Keeps a finished unit, whole or not at all."""
        write_json(self._path(key), dict(unit))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key[:32]}.json"

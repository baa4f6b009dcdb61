"""Isolation of worlds in one process: agents' modules are restored to their first state before every world.

Some agents keep state in their modules or classes: LitaAgentYR tunes a module-level object while it plays. In a
process that runs several worlds, the second would depend on the first. So the module globals and class attributes of
an agent's package are saved when the package is first loaded, and restored before every world. Within a world, seats
of the same class still share them.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final, Protocol

import numpy as np

__all__ = ["load_fresh", "package_of"]

_SIMPLE: Final = (int, float, complex, str, bytes, bool, tuple, frozenset, type(None))
_MAPPINGS: Final = (dict, defaultdict, OrderedDict, Counter)
_SEQUENCES: Final = (list, deque)
_FRAMEWORKS: Final = ("scml", "negmas", "litaagent_std")
_snapshots: dict[str, _Snapshot] = {}


class AgentLoader(Protocol):
    """Anything that names an agent's class, such as `setup.AgentSpec`."""

    def load(self) -> type:
        """Import the class."""
        ...


def load_fresh(agents: Iterable[AgentLoader]) -> list[type]:
    """Import the agents' classes and restore their packages to the state of the first import."""
    classes: list[type] = [agent.load() for agent in agents]
    # The bases too: an agent may be wrapped in a class of ours, or derived from another team's.
    # Isolated agents live in processes that end with their world.
    here = [agent_type for agent_type in classes if not getattr(agent_type, "is_isolated", False)]
    packages = dict.fromkeys(package_of(base.__module__) for agent_type in here for base in agent_type.__mro__)
    for package in packages:
        if package in _snapshots:
            _snapshots[package].restore()
        elif package not in _FRAMEWORKS and package not in sys.stdlib_module_names:
            _snapshots[package] = _Snapshot(package)
    return classes


def package_of(module: str) -> str:
    """Return the package whose modules belong to an agent: its team's folder, or the top-level package."""
    parts = module.split(".")
    return ".".join(parts[:4]) if parts[0] == "scml_agents" else parts[0]


class _Snapshot:
    """The state of a package's modules and classes.

    Args:
        package: The package.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._bindings: list[tuple[Any, str, Any]] = []  # owner, name, value
        self._contents: list[tuple[Any, Any]] = []  # a mutable object, and a copy of it
        seen: set[int] = set()
        for name, module in list(sys.modules.items()):
            if self._is_inside(name):
                self._save(module, seen)

    def _is_inside(self, module: str) -> bool:
        return module == self._package or module.startswith(f"{self._package}.")

    def _save(self, owner: Any, seen: set[int]) -> None:  # noqa: ANN401  # a module or a class
        for name, value in list(vars(owner).items()):
            if name.startswith("__") or id(value) in seen:
                continue
            if type(value) in _SIMPLE:
                self._bindings.append((owner, name, value))
            elif isinstance(value, type):
                if self._is_inside(value.__module__):
                    seen.add(id(value))
                    self._save(value, seen)
            elif self._is_mutable(value):
                seen.add(id(value))
                self._bindings.append((owner, name, value))
                self._save_contents(value)

    def _is_mutable(self, value: object) -> bool:
        plain = (*_MAPPINGS, *_SEQUENCES, set, np.ndarray)
        ours = self._is_inside(type(value).__module__) and hasattr(value, "__dict__")
        return type(value) in plain or (ours and not isinstance(value, ModuleType))

    def _save_contents(self, value: object) -> None:
        try:
            self._contents.append((value, copy.deepcopy(value)))
        except TypeError:
            return  # it cannot be copied, because it holds a lock, an open file or the like

    def restore(self) -> None:
        """Restore the saved state; objects keep their identities."""
        for owner, name, value in self._bindings:
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
        for current, saved in self._contents:
            _refill(current, copy.deepcopy(saved))


def _refill(current: Any, saved: Any) -> None:  # noqa: ANN401  # any mutable object
    if isinstance(current, np.ndarray):
        current[...] = saved
    elif isinstance(current, _SEQUENCES):
        current.clear()
        current.extend(saved)
    elif isinstance(current, (*_MAPPINGS, set)):
        current.clear()
        current.update(saved)
    else:
        vars(current).clear()
        vars(current).update(vars(saved))

"""Agents' modules as they were when first imported, for every world.

Some agents keep state in their modules or classes: LitaAgentYR tunes a module-level object while it plays. In a
process that runs several worlds, the second would depend on the first. So what an agent's package holds in
module globals and class attributes is noted when the package is first loaded, and put back before every world.
Within a world, seats of the same class go on sharing what they share.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

import numpy as np

from litaagent_std.world.setup import AgentSpec

__all__ = ["load_fresh"]

_SIMPLE: Final = (int, float, complex, str, bytes, bool, tuple, frozenset, type(None))
_MAPPINGS: Final = (dict, defaultdict, OrderedDict, Counter)
_SEQUENCES: Final = (list, deque)
_FRAMEWORKS: Final = ("scml", "negmas", "litaagent_std")
_known: dict[str, _Memory] = {}


def load_fresh(specs: Iterable[AgentSpec]) -> list[type]:
    """Import the agents' classes and puts back the state that their packages had at first."""
    classes: list[type] = [spec.load() for spec in specs]
    # The bases too: an agent may come wrapped in a class of ours, or be built on another team's.
    homes = dict.fromkeys(_home(base.__module__) for one in classes for base in one.__mro__)
    for home in homes:
        if home in _known:
            _known[home].restore()
        elif home not in _FRAMEWORKS and home not in sys.stdlib_module_names:
            _known[home] = _Memory(home)
    return classes


def _home(module: str) -> str:
    """Return the package whose modules belong to an agent: its team's folder, or the top-level package."""
    parts = module.split(".")
    return ".".join(parts[:4]) if parts[0] == "scml_agents" else parts[0]


class _Memory:
    """What a package's modules and classes held when it was noted.

    Args:
        home: The package.
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._bindings: list[tuple[Any, str, Any]] = []  # owner, name, value
        self._contents: list[tuple[Any, Any]] = []  # an object that can change, and a copy of it
        seen: set[int] = set()
        for name, module in list(sys.modules.items()):
            if self._is_inside(name):
                self._note(module, seen)

    def _is_inside(self, module: str) -> bool:
        return module == self._home or module.startswith(f"{self._home}.")

    def _note(self, owner: Any, seen: set[int]) -> None:  # noqa: ANN401  # a module or a class
        for name, value in list(vars(owner).items()):
            if name.startswith("__") or id(value) in seen:
                continue
            if type(value) in _SIMPLE:
                self._bindings.append((owner, name, value))
            elif isinstance(value, type):
                if self._is_inside(value.__module__):
                    seen.add(id(value))
                    self._note(value, seen)
            elif self._can_change(value):
                seen.add(id(value))
                self._bindings.append((owner, name, value))
                self._remember(value)

    def _can_change(self, value: object) -> bool:
        plain = (*_MAPPINGS, *_SEQUENCES, set, np.ndarray)
        ours = self._is_inside(type(value).__module__) and hasattr(value, "__dict__")
        return type(value) in plain or (ours and not isinstance(value, ModuleType))

    def _remember(self, value: object) -> None:
        try:
            self._contents.append((value, copy.deepcopy(value)))
        except TypeError:
            return  # it holds something that cannot be copied, such as a lock or an open file

    def restore(self) -> None:
        """Put everything back, keeping the objects' identities."""
        for owner, name, value in self._bindings:
            if vars(owner).get(name) is not value:
                setattr(owner, name, value)
        for current, saved in self._contents:
            _refill(current, copy.deepcopy(saved))


def _refill(current: Any, saved: Any) -> None:  # noqa: ANN401  # any object that can change
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

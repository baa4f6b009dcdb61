"""Isolated seats: agents that nobody vouches for play in a process of their own, and the world does not notice.

For an agent class ``a.b.C``, the path ``litaagent_std.world.isolated.a/b/C`` names a class that stands for it in the
world: it forwards every call to a process that holds the agent itself, under limits of time, memory and files, without
network. As with `competitors.integer_offers`, that path can be used wherever a class path can. The world's process
never imports the agent's module.

Modules:
    agent: The class that stands for an isolated agent in the world.
    process: Starts the processes, asks them, and ends them.
    zygote: The process that forks them, with scml and negmas imported.
    sandbox: Limits and namespaces of such a process.
    mirror: What the agent sees there: the engine's own classes, filled with what the world sends.
    codec: Messages: plain data as JSON, of bounded size.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Final

__all__ = ["IncompleteIsolationWarning", "isolated_path", "open_path", "warn_unless_whole"]

_PREFIX: Final = f"{__name__}."
_DOT: Final = "/"  # no part of a Python path, or of a path of integer_offers


def isolated_path(path: str) -> str:
    """Return the path of the class that stands for the class at ``path``; of such a path, itself."""
    return path if path.startswith(_PREFIX) else _PREFIX + path.replace(".", _DOT)


def open_path(path: str) -> str:
    """Return the path that `isolated_path` was given; any other path is returned as it is."""
    return path.removeprefix(_PREFIX).replace(_DOT, ".") if path.startswith(_PREFIX) else path


class IncompleteIsolationWarning(UserWarning):
    """This system cannot keep isolated agents from files and the network."""


def warn_unless_whole(paths: Iterable[str]) -> None:
    """Warn if some of the agents at these paths are isolated and this system cannot isolate them wholly."""
    if all(open_path(path) == path for path in paths):
        return
    from litaagent_std.world.isolated.process import missing_isolation

    if missing := missing_isolation():
        warnings.warn(
            f"isolated agents are limited in time and memory only: this system lacks {missing}. They can read and "
            "change your files and use the network; play only agents that you trust, or use Linux with namespaces",
            IncompleteIsolationWarning,
            stacklevel=2,
        )


def __getattr__(name: str) -> type:
    if _DOT not in name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from litaagent_std.world.isolated.agent import stand_in

    return stand_in(name.replace(_DOT, "."))

"""The CPU time of one agent's decisions.

For an agent class at ``path``, `timed_path` names a subclass that is the same agent with its decisions timed. As in
`competitors.integer_offers`, it can be imported by that path in any process. The agent in the focal seat is of such a
class; `start` and `stop` enclose its world.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from litaagent_std.world.reproducible.streams import install
from litaagent_std.world.setup import AgentSpec

install()  # negmas is imported below, and it must bind the dispatching functions

from negmas.sao import SAOSyncController  # noqa: E402

__all__ = ["Reading", "start", "stop", "timed_path"]

_PREFIX: Final = f"{__name__}."
_DOT: Final = "!"  # no part of a Python path or of a path of integer_offers
_DAILY: Final = ("init", "before_step", "step")
_DECISIONS: Final = ("first_proposals", "counter_all", "propose", "respond")


@dataclass(slots=True)
class Reading:
    """What the stopwatch shows.

    Attributes:
        calls: Decisions: calls of ``first_proposals``, ``counter_all``, ``propose`` or ``respond``.
        seconds: CPU seconds in them.
        longest: CPU seconds of the longest.
        daily_seconds: CPU seconds in ``init``, ``before_step`` and ``step``.
        agent: The timed agent.
    """

    calls: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    daily_seconds: float = 0.0
    agent: Any = None


_reading = Reading()
_depth = 0


def start() -> None:
    """Set the stopwatch to zero."""
    global _reading, _depth
    _reading, _depth = Reading(), 0


def stop() -> Reading:
    """Return what the stopwatch shows, and let go of the agent."""
    shown = _reading
    start()
    return shown


def timed_path(path: str) -> str:
    """Return the path of the timed subclass of the class at ``path``."""
    return _PREFIX + path.replace(".", _DOT)


def __getattr__(name: str) -> type:
    if _DOT not in name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    agent: type = AgentSpec(name.replace(_DOT, ".")).load()
    return _timed(agent)


@functools.cache
def _timed(agent: type) -> type:
    """Make the subclass; its name and module stay those of the agent."""
    names = [name for name in (*_DAILY, *_DECISIONS) if _is_own(agent, name)]
    methods = {name: _around(getattr(agent, name), name in _DECISIONS) for name in names}
    identity = {"__module__": agent.__module__, "__qualname__": agent.__qualname__, "__doc__": agent.__doc__}
    return type(agent)(agent.__name__, (agent,), methods | identity)


def _is_own(agent: type, name: str) -> bool:
    """Whether a method is the agent's: how engines ask a synchronous agent depends on what it leaves to negmas."""
    method = getattr(agent, name, None)
    return callable(method) and getattr(SAOSyncController, name, None) is not method


def _around(method: Callable[..., Any], decides: bool) -> Callable[..., Any]:
    @functools.wraps(method)
    def timed(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passes through
        global _depth
        if _depth:
            return method(self, *args, **kwargs)
        _depth += 1
        began = time.process_time()
        try:
            return method(self, *args, **kwargs)
        finally:
            _depth -= 1
            _note(self, time.process_time() - began, decides)

    return timed


def _note(agent: Any, seconds: float, decides: bool) -> None:  # noqa: ANN401 - an agent of any class
    _reading.agent = agent
    if decides:
        _reading.calls += 1
        _reading.seconds += seconds
        _reading.longest = max(_reading.longest, seconds)
    else:
        _reading.daily_seconds += seconds

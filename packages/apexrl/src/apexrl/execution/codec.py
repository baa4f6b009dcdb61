"""How calls are sent to workers: pickled, with functions named by their import path.

A script's own functions and classes live in ``__main__``, which is another module in a worker. As the standard
library's spawned processes do, a worker runs the script once under the name ``__mp_main__``, but only when it meets
such a name: a script whose tasks live in modules needs no guard.
"""

from __future__ import annotations

import functools
import importlib
import io
import pickle
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

_PROTOCOL = 5
_MAIN_IN_WORKER = "__mp_main__"


def main_module() -> dict[str, str]:
    """Return where this program's ``__main__`` comes from: a module's name or a file; empty if it is interactive."""
    from multiprocessing.spawn import get_preparation_data

    data = get_preparation_data("worker")
    return {key: data[key] for key in ("init_main_from_name", "init_main_from_path") if key in data}


def _load_main(main: Mapping[str, str]) -> None:
    """Run the parent's main module in this worker, once, guarded by its ``if __name__ == "__main__"``."""
    from multiprocessing.spawn import prepare

    if not main:
        raise ModuleNotFoundError("the parent's __main__ is interactive: move its functions and classes to a module")
    prepare(dict(main))


class _WorkerUnpickler(pickle.Unpickler):
    """Loads the parent's main module when, and only when, something in it is asked for."""

    def __init__(self, file: io.BytesIO, main: Mapping[str, str]) -> None:
        super().__init__(file)
        self._main = main

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - a pickle may name anything
        if module in ("__main__", _MAIN_IN_WORKER):
            _load_main(self._main)
            module = _MAIN_IN_WORKER
        return super().find_class(module, name)


def encode(value: object, what: str) -> bytes:
    """Pickle a value for the other side.

    Args:
        value: The value.
        what: What it is, for the message.

    Raises:
        TypeError: If it can't be pickled.
    """
    try:
        return pickle.dumps(value, _PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise TypeError(f"{what} can't be pickled, so it can't pass between processes: {error}") from error


def decode(payload: bytes | memoryview, main: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - what was encoded
    """Unpickle what `encode` made.

    Args:
        payload: The pickled value.
        main: In a worker process, the parent's `main_module`. None in the parent itself.
    """
    if main is None:
        return pickle.loads(payload)
    return _WorkerUnpickler(io.BytesIO(payload), main).load()


def require_portable(function: Callable[..., Any]) -> None:
    """Check that a worker can import a callable.

    Args:
        function: A function or class at the top level of a module, or a ``functools.partial`` of one.

    Raises:
        TypeError: For lambdas, functions inside functions, functions typed into an interactive session, and anything
            else that can't be reached by ``module.name``.
    """
    if not callable(function):
        raise TypeError(f"a task's function must be callable, got {function!r} of type {type(function).__name__}")
    while isinstance(function, functools.partial):
        function = function.func
    if not isinstance(function, FunctionType | type):
        encode(function, f"the function {function!r}")
        return
    module, name = function.__module__, function.__qualname__
    reason = ""
    if "<lambda>" in name:
        reason = "it is a lambda"
    elif "<locals>" in name:
        reason = "it is defined inside another function"
    elif module == "__main__" and not main_module():
        reason = "it was defined in an interactive session"
    elif _resolve(module, name) is not function:
        reason = f"importing {module}.{name} gives something else"
    if reason:
        raise TypeError(
            f"{module}.{name} can't be sent to a worker because {reason}; "
            "workers import functions by name, so define it with `def` at the top level of a module "
            "and pass what varies as arguments (or with functools.partial)"
        )


def _resolve(module: str, name: str) -> object:
    try:
        value: object = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError):
        return None
    return value

"""What a worker does with a request, whatever carried it there: run it, time it, answer.

A request is a pickled tuple made by `call_request`, `build_request` or `invoke_request`. What stands for a shared value
in it is replaced by the value; those that a worker does not have yet come along (`carry`). A reply is a status byte,
the seconds that the function took, and the pickled value or `Failure`.
"""

from __future__ import annotations

import struct
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from apexrl.execution.codec import decode, encode
from apexrl.execution.report import Failure, FailureKind
from apexrl.execution.shared import Shared, SharedKey, latest
from apexrl.runs.errors import safe_text

_REPLY = struct.Struct("!Bd")
_SUCCEEDED, _FAILED = 1, 0


def call_request(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
    """Return a request to call a function; among its arguments may be shared values."""
    positional = tuple(map(_key_of, args))
    named = {name: _key_of(value) for name, value in kwargs.items()}
    return encode(("call", function, positional, named), f"a call of {function!r} with its arguments")


def _key_of(value: object) -> object:
    return value.key if isinstance(value, Shared) else value


def build_request(key: Hashable, factory: Callable[..., Any], kwargs: Mapping[str, Any]) -> bytes:
    """Return a request to build the actor `key` by ``factory(key, **kwargs)`` and keep it."""
    return encode(("build", key, factory, dict(kwargs)), f"the key {key!r} of an actor")


def invoke_request(key: Hashable, method: str, arguments: Shared[Any] | bytes) -> bytes:
    """Return a request to call a method of the actor `key`; `arguments` is (args, kwargs), encoded or shared."""
    return encode(("invoke", key, method, _key_of(arguments)), f"the key {key!r} of an actor")


def carry(request: bytes, shared: Iterable[Shared[Any]]) -> bytes:
    """Return a request together with shared values that its worker does not have."""
    payloads = {value.key.digest: value.payload for value in shared}
    return encode(("carry", payloads, request), "shared values") if payloads else request


def read_reply(reply: bytes) -> tuple[float, Any, Failure | None]:
    """Take a reply apart.

    Returns:
        The seconds that the function took, its value, and its failure; one of the last two is None.
    """
    status, seconds = _REPLY.unpack_from(reply)
    try:
        content = decode(memoryview(reply)[_REPLY.size :])
    except Exception as error:  # unpickling runs the result's own code, which may raise anything
        message = f"the result can't be unpickled: {_one_line(error)}"
        return seconds, None, Failure(kind=FailureKind.RAISED, message=message)
    return (seconds, content, None) if status == _SUCCEEDED else (seconds, None, content)


class Server:
    """Answers requests one at a time and keeps the actors that were built here.

    Args:
        main: The parent's `codec.main_module` when this is another process; None in the parent itself.
    """

    def __init__(self, main: Mapping[str, str] | None = None) -> None:
        self._main = main
        self._actors: dict[Hashable, Any] = {}
        self._shared: dict[str, bytes] = {}

    def handle(self, request: bytes) -> bytes:
        """Carry out a request and encode its result. Never raises for what the task does."""
        started = time.perf_counter()
        try:
            value = self._carry_out(decode(request, self._main))
            seconds = time.perf_counter() - started
            return _REPLY.pack(_SUCCEEDED, seconds) + encode(value, "the result")
        except (Exception, SystemExit) as error:  # a task may raise anything; it is recorded, not swallowed
            seconds = time.perf_counter() - started
            return _REPLY.pack(_FAILED, seconds) + encode(_failure_of(error), "the failure")

    def keep(self, payloads: Mapping[str, bytes]) -> None:
        """Keep shared values, by their digests, for this request and later ones."""
        self._shared |= payloads

    def _carry_out(self, request: tuple[Any, ...]) -> Any:  # noqa: ANN401 - whatever the task returns
        kind = request[0]
        if kind == "carry":
            _, payloads, carried = request
            self.keep(payloads)
            return self._carry_out(decode(carried, self._main))
        if kind == "call":
            _, function, args, kwargs = request
            values = self._values([*args, *kwargs.values()])
            return function(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True)))
        if kind == "invoke":
            _, key, method, arguments = request
            [pair] = self._values([arguments])
            args, kwargs = decode(pair, self._main) if isinstance(pair, bytes) else pair
            return getattr(self._actors[key], method)(*args, **kwargs)
        if kind == "build":
            _, key, factory, kwargs = request
            self._actors[key] = factory(key, **kwargs)
            return None
        raise ValueError(f"unknown request {kind!r}: this worker runs another version of apexrl than its parent")

    def _values(self, arguments: list[Any]) -> list[Any]:
        """Return arguments with shared values in the places of their keys, and forget values that are long unused."""
        used = [argument.digest for argument in arguments if isinstance(argument, SharedKey)]
        if not used:
            return arguments
        self._shared = {digest: self._shared[digest] for digest in latest(list(self._shared), used)}
        return [
            decode(self._shared[argument.digest], self._main) if isinstance(argument, SharedKey) else argument
            for argument in arguments
        ]


def _failure_of(error: BaseException) -> Failure:
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename != __file__]
    text = "".join(traceback.format_list(inside)) + "".join(traceback.format_exception_only(error))
    writable = text.encode(errors="backslashreplace").decode()
    return Failure(kind=FailureKind.RAISED, message=_one_line(error), traceback=writable)


def _one_line(error: BaseException) -> str:
    lines = safe_text(error).splitlines()
    return type(error).__name__ + (f": {lines[0]}" if lines else "")

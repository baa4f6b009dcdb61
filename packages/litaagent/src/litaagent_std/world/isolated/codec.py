"""Messages between a world and an isolated agent: plain data as JSON behind its length, of bounded size.

Nothing is pickled in either direction. What JSON has no form for is tagged: ``{"t": […]}`` is a tuple, ``{"d": …}`` a
dictionary as pairs, ``{"f": …}`` and ``{"i": …}`` numpy's scalars, ``{"a": …}`` an array, ``{"r": …}`` a response,
``{"s": …}`` a response with an offer. Any other object arrives as `Opaque`.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from negmas.sao import ResponseType, SAOResponse

__all__ = ["Opaque", "decode", "encode", "receive", "send"]

_HEADER: Final = struct.Struct(">I")
_ARRAYS: Final = frozenset({"<f8", "<i8"})


class Opaque:
    """Something that an agent returned and that has no form in a message; it is no offer and no response."""

    __slots__ = ()


def encode(value: Any) -> Any:  # noqa: ANN401 - agents return anything
    """Turn a value into what JSON can hold."""
    kind = type(value)
    if value is None or kind is int or kind is str or kind is bool or kind is float:
        return value
    if kind is tuple:
        return {"t": [encode(item) for item in value]}
    if kind is list:
        return [encode(item) for item in value]
    if kind is np.float64:
        return {"f": float(value)}
    if isinstance(value, ResponseType):
        return {"r": int(value)}
    if kind is SAOResponse:
        return {"s": [encode(value.response), encode(value.outcome)]}
    return _encode_rare(value)


def _encode_rare(value: Any) -> Any:  # noqa: ANN401 - agents return anything
    if isinstance(value, dict):
        return {"d": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.str in _ARRAYS and value.ndim == 1:
        return {"a": [value.dtype.str, value.tolist()]}
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return {"i": int(value)}
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, int | str):  # of classes derived from them
        return int(value) if isinstance(value, int) else str.__str__(value)
    if isinstance(value, tuple):
        return {"t": [encode(item) for item in value]}
    if isinstance(value, list | set | frozenset):
        return [encode(item) for item in value]
    return {"o": None}


def decode(plain: Any) -> Any:  # noqa: ANN401 - whatever was encoded
    """Turn what `encode` made into values.

    Raises:
        ValueError: If it is something else.
    """
    if isinstance(plain, list):
        return [decode(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if len(plain) != 1:
        raise ValueError(f"a tagged value has one key, not {len(plain)}")
    [(tag, content)] = plain.items()
    make = _TAGS.get(tag)
    if make is None:
        raise ValueError("a tagged value has an unknown tag")
    return make(content)


def _decode_dict(content: Any) -> dict[Any, Any]:  # noqa: ANN401 - from JSON
    return {decode(key): decode(item) for key, item in content}


def _decode_response(content: Any) -> SAOResponse:  # noqa: ANN401 - from JSON
    response, outcome = content
    return SAOResponse(decode(response), decode(outcome))


_TAGS: Final[dict[str, Callable[[Any], Any]]] = {
    "t": lambda content: tuple([decode(item) for item in content]),
    "d": _decode_dict,
    "f": lambda content: np.float64(content),
    "i": lambda content: np.int64(content),
    "a": lambda content: np.array(content[1], dtype=content[0] if content[0] in _ARRAYS else "<f8"),
    "r": lambda content: ResponseType(content),
    "s": _decode_response,
    "o": lambda content: Opaque(),
}


def send(connection: socket.socket, message: Any, seconds: float | None = None) -> None:  # noqa: ANN401 - encoded
    """Send an encoded message.

    Raises:
        OSError: If the other side is gone, or does not take it in time.
    """
    data = json.dumps(message, separators=(",", ":")).encode()
    connection.settimeout(seconds)
    connection.sendall(_HEADER.pack(len(data)) + data)


def receive(
    connection: socket.socket,
    limit: int,
    seconds: float | None = None,
    more: Callable[[], float] | None = None,
) -> Any:  # noqa: ANN401 - from JSON
    """Receive a message; decode its values with `decode`.

    Args:
        connection: The connection.
        limit: Most bytes.
        seconds: Most seconds; None for any.
        more: Asked when they are over: how many seconds more.

    Raises:
        EOFError: If the other side is gone.
        TimeoutError: If it takes longer.
        ValueError: If the message is larger, or no JSON.
    """
    patience = _Patience(seconds, more)
    [size] = _HEADER.unpack(_receive_bytes(connection, _HEADER.size, patience))
    if size > limit:
        raise ValueError(f"a message of {size} bytes, but {limit} is the most")
    data = _receive_bytes(connection, size, patience)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a message that is no JSON: {type(error).__name__}") from error


class _Patience:
    """How long to wait for a message."""

    def __init__(self, seconds: float | None, more: Callable[[], float] | None) -> None:
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._more = more

    def left(self) -> float | None:
        """Return the seconds that are left; None for any number.

        Raises:
            TimeoutError: If none are left.
        """
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0 and self._more is not None:
            left = self._more()
            self._deadline = time.monotonic() + left
        if left <= 0:
            raise TimeoutError("no answer in time")
        return left


def _receive_bytes(connection: socket.socket, size: int, patience: _Patience) -> bytes:
    parts, missing = [], size
    while missing:
        connection.settimeout(patience.left())
        try:
            part = connection.recv(min(missing, 1 << 16))
        except TimeoutError:
            continue
        if not part:
            raise EOFError("the other side is gone")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)

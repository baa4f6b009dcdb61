"""Values that many tasks take, such as the weights of a policy: sent to each worker once, not with every task.

On Ray a shared value is one object of the object store, which a node fetches once. A worker keeps the latest few, and
its parent knows which by the same rule (`latest`), so neither has to ask.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from apexrl.execution.codec import decode, encode

T = TypeVar("T")

_KEPT = 2


@dataclass(frozen=True, slots=True)
class SharedKey:
    """Stands for a shared value in a request."""

    digest: str


class Shared(Generic[T]):
    """A value among the arguments of many tasks; their function gets the value itself, each time a new copy.

    >>> weights = Shared(policy)                            # doctest: +SKIP
    >>> tasks = [Task(play, (world, weights)) for world in worlds]            # doctest: +SKIP

    Args:
        value: The value, pickled at once: later changes of it are not seen.
        what: What it is, for the message.

    Attributes:
        payload: The pickled value.
        key: What stands for it in a request.

    Raises:
        TypeError: If it cannot be pickled.
    """

    __slots__ = ("__weakref__", "key", "payload")

    def __init__(self, value: T, what: str = "a shared value") -> None:
        self.payload = encode(value, what)
        self.key = SharedKey(hashlib.sha256(self.payload).hexdigest())

    @property
    def value(self) -> T:
        """A copy of the value."""
        return cast(T, decode(self.payload))

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Shared value is an argument of a task itself, not a part of one")


def latest(kept: Sequence[str], used: Sequence[str]) -> list[str]:
    """Return which values a worker keeps after a request that used some, by their digests; the newest last."""
    order = [digest for digest in kept if digest not in used] + list(dict.fromkeys(used))
    return order[-max(_KEPT, len(set(used))) :]

"""One random stream for the world and one per seat, switched in constant time.

scml and its agents draw from two global generators, :mod:`random` and the legacy :mod:`numpy.random`. With a shared
generator, one agent's draw changes the draws of all other agents. Here the two global generators become dispatchers:
they pass every draw to the *active* :class:`Stream`. An engine activates the stream of a seat around each call of its
agent::

    previous = switch(stream)
    try:
        agent.step()
    finally:
        switch(previous)

Switching is one assignment, and nested calls restore the previous stream. While no world runs, the active stream is
the pair of generators that Python and numpy started with, so everything outside worlds behaves as usual.

A stream belongs to the thread that activated it. Any other thread, such as one that an agent of an earlier world left
behind, draws from a stream of its own while a world runs, and so cannot change what the world draws.

Three more sources of randomness use the active stream: ``random.Random()`` and
``numpy.random.default_rng()`` (and every other numpy generator) created without a seed, and ``uuid.uuid4``.
Code that asks for the operating system's entropy explicitly (``os.urandom``, ``secrets``, ``random.SystemRandom``)
still gets it.

The dispatchers are process-wide: only one world runs per process at any moment. Use processes to run worlds in
parallel.
"""

from __future__ import annotations

import hashlib
import random
import secrets
import sys
import uuid
from collections.abc import Callable
from threading import current_thread, get_ident
from typing import Any, Final

import numpy as np
from numpy.random import bit_generator, mtrand

__all__ = ["Stream", "WorldStreams", "active", "admit", "install", "is_installed", "numpy_stream", "switch"]

_SEED_BITS: Final = 128


class Stream:
    """One independent source of randomness: a ``Random``, a numpy ``RandomState`` and a source of seeds.

    Attributes:
        name: Name of the stream, such as ``seat/3``; part of its key.
        python: Serves the functions of :mod:`random`.
        numpy: Serves the legacy functions of :mod:`numpy.random`.
        seeds: Seeds generators that are created without a seed, and makes identifiers. If None, the operating
            system does.
        parts: The seeds of the three, from which another process makes the same stream; None outside worlds.
        world: Something that all streams of a world share; None outside worlds.
    """

    __slots__ = ("name", "numpy", "parts", "python", "seeds", "world")

    def __init__(
        self, name: str, python: random.Random, numpy: np.random.RandomState, seeds: random.Random | None
    ) -> None:
        self.name = name
        self.python = python
        self.numpy = numpy
        self.seeds = seeds
        self.parts: tuple[int, ...] | None = None
        self.world: object | None = None

    @classmethod
    def from_key(cls, seed: int, name: str) -> Stream:
        """Make the stream that ``(seed, name)`` determines, on any machine and in any process."""
        return cls.from_parts(name, tuple(_stream_seed(seed, name, part) for part in ("python", "numpy", "seeds")))

    @classmethod
    def from_parts(cls, name: str, parts: tuple[int, ...]) -> Stream:
        """Make a stream from the seeds of its parts, which tell nothing of other streams."""
        python, numpy, seeds = parts
        stream = cls(name, random.Random(python), _numpy_part(numpy), random.Random(seeds))
        stream.parts = parts
        return stream

    def __repr__(self) -> str:
        return f"Stream({self.name!r})"


def _stream_seed(seed: int, name: str, part: str) -> int:
    key = f"{seed}/{name}/{part}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=_SEED_BITS // 8).digest(), "big")


def numpy_stream(seed: int, name: str) -> np.random.RandomState:
    """Make the numpy part of the stream that ``(seed, name)`` determines."""
    return _numpy_part(_stream_seed(seed, name, "numpy"))


def _numpy_part(seed: int) -> np.random.RandomState:
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))


class _World:
    """What the streams of a world share, and nothing else does."""


class WorldStreams:
    """The streams of one world: one for the world itself and one per seat.

    A seat's stream depends only on the world's seed and the number of the seat, so replacing the agent of one seat
    does not change the draws of the others.

    Args:
        seed: The world's seed.
        n_seats: The number of factories.
    """

    def __init__(self, seed: int, n_seats: int) -> None:
        self.world = Stream.from_key(seed, "world")
        self.seats = tuple(Stream.from_key(seed, f"seat/{index}") for index in range(n_seats))
        world = _World()
        for stream in (self.world, *self.seats):
            stream.world = world

    def __getitem__(self, seat: int) -> Stream:
        return self.seats[seat]


class _DispatchingRandomState(np.random.RandomState):
    """Replaces numpy's global ``RandomState``; its methods are set on the instance."""


_outside = Stream("outside any world", random._inst, mtrand._rand, None)
_stray = Stream("threads beside a world", random.Random(), np.random.RandomState(), None)
_active: Stream = _outside
_owner = get_ident()  # the thread that made it active
_admitted = ""
_installed = False


def switch(stream: Stream) -> Stream:
    """Make ``stream`` the active one of this thread and return the one that was active before."""
    global _active, _owner
    previous = _active
    _active = stream
    if not _admitted or not current_thread().name.startswith(_admitted):
        _owner = get_ident()
    return previous


def active() -> Stream:
    """Return the active stream of this thread."""
    is_own = _owner == get_ident() or _active is _outside
    return _active if is_own or (_admitted and current_thread().name.startswith(_admitted)) else _stray


def admit(name: str) -> None:
    """Let threads whose names begin so, those that negmas hands limited calls to, draw as the world's own thread."""
    global _admitted
    _admitted = name


def is_installed() -> bool:
    """Return whether the global generators dispatch to the active stream."""
    return _installed


def install() -> None:
    """Turn the global generators into dispatchers; calling it again does nothing.

    ``from random import choice`` binds a function when a module is imported. Modules imported later bind
    the dispatching functions; in modules imported earlier, globals that hold the original functions are
    replaced. Only objects that hold numpy's global ``RandomState`` itself cannot be reached, such as the
    distributions of ``scipy.stats``.
    """
    global _installed
    if _installed:
        return
    _installed = True
    replaced: dict[int, tuple[Any, Any]] = {}  # by id of the original, kept alive here

    def rebind(module: Any, name: str, replacement: Any) -> None:  # noqa: ANN401  # modules, functions
        original = getattr(module, name)
        replaced[id(original)] = (original, replacement)
        setattr(module, name, replacement)

    _install_python(rebind)
    _install_numpy(rebind)
    rebind(uuid, "uuid4", _uuid4)
    _rebind_importers(replaced)


def _install_python(rebind: Callable[[Any, str, Any], None]) -> None:
    original = random._inst
    names = [name for name, value in vars(random).items() if getattr(value, "__self__", None) is original]
    dispatcher = random.Random(0)
    for name in names:
        function = _python_dispatch(name)
        setattr(dispatcher, name, function)
        rebind(random, name, function)
    rebind(random, "_inst", dispatcher)
    random.Random.seed = _seeded_by_stream(random.Random.seed)  # type: ignore[method-assign]  # replaced on purpose


def _install_numpy(rebind: Callable[[Any, str, Any], None]) -> None:
    dispatcher = _DispatchingRandomState(0)
    names = [name for name in dir(np.random.RandomState) if not name.startswith("_")]
    for name in names:
        setattr(dispatcher, name, _numpy_dispatch(name))
    aliases = {"ranf": "random_sample", "sample": "random_sample"}
    for name in (*names, *aliases):
        for module in (mtrand, np.random):
            if hasattr(module, name):
                rebind(module, name, getattr(dispatcher, aliases.get(name, name)))
    for module in (mtrand, np.random):
        rebind(module, "get_bit_generator", _get_bit_generator)
        rebind(module, "set_bit_generator", _set_bit_generator)
    mtrand._rand = dispatcher
    bit_generator.randbits = _randbits  # type: ignore[attr-defined]  # where numpy gets the entropy of unseeded generators


def _get_bit_generator() -> Any:  # noqa: ANN401  # as numpy's function
    """Return the bit generator of the active stream."""
    return active().numpy._bit_generator  # numpy has no public access to it


def _set_bit_generator(bitgen: Any) -> None:  # noqa: ANN401  # as numpy's function
    """Set the bit generator of the active stream."""
    active().numpy = np.random.RandomState(bitgen)


def _python_dispatch(name: str) -> Callable[..., Any]:
    def dispatch(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as the original function
        return getattr(active().python, name)(*args, **kwargs)

    dispatch.__name__ = name
    dispatch.__doc__ = getattr(random.Random, name).__doc__
    return dispatch


def _numpy_dispatch(name: str) -> Callable[..., Any]:
    def dispatch(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as the original function
        return getattr(active().numpy, name)(*args, **kwargs)

    dispatch.__name__ = name
    dispatch.__doc__ = getattr(np.random.RandomState, name).__doc__
    return dispatch


def _seeded_by_stream(original: Callable[..., None]) -> Callable[..., None]:
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:  # noqa: ANN401  # as random.Random.seed
        if a is None and (seeds := active().seeds) is not None:
            a = seeds.getrandbits(_SEED_BITS)
        original(self, a, version)

    seed.__doc__ = original.__doc__
    return seed


def _randbits(k: int) -> int:
    seeds = active().seeds
    return secrets.randbits(k) if seeds is None else seeds.getrandbits(k)


def _uuid4() -> uuid.UUID:
    """Generate a random UUID, from the active stream while a world runs."""
    return uuid.UUID(int=_randbits(128), version=4)


def _rebind_importers(replaced: dict[int, tuple[Any, Any]]) -> None:
    for module in list(sys.modules.values()):
        namespace = getattr(module, "__dict__", None)
        if namespace is None or module in (random, mtrand, np.random, uuid):
            continue
        bound = [(name, replaced[id(value)]) for name, value in namespace.items() if id(value) in replaced]
        for name, (original, replacement) in bound:
            if namespace[name] is original:
                namespace[name] = replacement

"""Structured snapshots of Python objects: the state of an environment as tensors and plain values.

A snapshot is made of tensors, scalars, strings, dicts and lists only, so it goes into a checkpoint that is
read with ``weights_only=True``. It is restored *onto* an object of the same structure (a freshly built
environment after a reset): nothing is constructed from names in a file. Whatever can't be captured faithfully
raises `apexrl.envs.vec_env.StateNotSupportedError` with the path to it, instead of resuming almost exactly.
"""

import collections
import enum
import functools
import itertools
import random
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Space

from apexrl.arrays import Array
from apexrl.envs.vec_env import Opaque, StateNotSupportedError

_STATIC = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MappingProxyType,
    functools.partial,
    enum.Enum,
    np.dtype,
    torch.dtype,
    torch.device,
    EnvSpec,
)
"""What does not change while an environment runs; the restored object keeps its own."""

_DRAWING_LIBRARIES = ("pygame", "pyglet")
"""Windows, surfaces and fonts only show a state; they do not hold it."""

_SEQUENCES: dict[str, type] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": collections.deque,
}


def capture(root: object) -> dict[str, Any]:
    """Capture everything reachable from an object's attributes.

    Raises:
        StateNotSupportedError: If something in it has a state that cannot be read, such as a C++ physics
            engine.
    """
    encoder = _Encoder()
    snapshot: dict[str, Any] = encoder.encode(root, type(root).__name__)
    encoder.refuse_overlapping_arrays()
    return snapshot


def restore(root: object, snapshot: dict[str, Any]) -> None:
    """Put a snapshot back onto an object of the same structure.

    Raises:
        StateNotSupportedError: If the object differs in structure from the one that was captured.
    """
    _Decoder(root).decode(snapshot, root, type(root).__name__)


class _Encoder:
    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self.visited: list[object] = []  # ids stay unique only while the objects live
        self._arrays: list[tuple[str, Array]] = []

    def encode(self, value: Opaque, path: str) -> Opaque:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, _STATIC) or type(value).__module__.split(".")[0] in _DRAWING_LIBRARIES:
            return {"kind": "static"}
        if id(value) in self._seen:
            return {"kind": "ref", "ref": self._seen[id(value)]}
        number = len(self.visited)
        self._seen[id(value)] = number
        self.visited.append(value)
        return {"id": number, **self._encode_new(value, path)}

    def _encode_new(self, value: Opaque, path: str) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            self._arrays.append((path, value))
            return {"kind": "array", **_array_to_plain(value, path)}
        if isinstance(value, np.generic):
            return {"kind": "scalar", **_array_to_plain(np.asarray(value), path)}
        if isinstance(value, torch.Tensor):
            return {"kind": "tensor", "data": value.detach().clone()}
        if isinstance(value, np.random.Generator):
            return {"kind": "generator", "state": self.encode(value.bit_generator.state, path)}
        if isinstance(value, types.MethodType):
            return {"kind": "method", "self": self.encode(value.__self__, path), "name": value.__name__}
        if isinstance(value, np.random.RandomState):
            return {"kind": "random_state", "state": self.encode(value.get_state(legacy=False), path)}
        if isinstance(value, random.Random):
            return {"kind": "random", "state": self.encode(value.getstate(), path)}
        if type(value) in _SEQUENCES.values():
            items = [self.encode(item, f"{path}[{i}]") for i, item in enumerate(value)]
            return {"kind": type(value).__name__, "items": items, "maxlen": getattr(value, "maxlen", None)}
        if isinstance(value, dict):
            keys = [self.encode(key, f"{path} key") for key in value]
            items = [self.encode(item, f"{path}[{key!r}]") for key, item in value.items()]
            return {"kind": "dict", "type": _type_name(value), "keys": keys, "items": items}
        return self._encode_object(value, path)

    def _encode_object(self, value: Opaque, path: str) -> dict[str, Any]:
        if isinstance(value, Space):
            # Bounds are part of the construction; only the sampling streams move.
            rngs = [getattr(space, "_np_random", None) for space in _spaces_within(value)]
            return {"kind": "space", "rngs": [self.encode(rng, f"{path}.np_random") for rng in rngs]}
        if callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None)):
            return {"kind": "hook", "state": value.state_dict()}
        if not _is_plain_python(type(value)):
            raise StateNotSupportedError(
                f"The state of {path} ({_type_name(value)}) cannot be read. Give its owner state_dict() and "
                "load_state_dict() to resume exactly; otherwise a resumed run starts fresh episodes."
            )
        names = _attribute_names(value)
        attributes = {name: self.encode(getattr(value, name), f"{path}.{name}") for name in names}
        return {"kind": "object", "type": _type_name(value), "attributes": attributes}

    def refuse_overlapping_arrays(self) -> None:
        """Refuse two arrays over the same memory, which would come back as independent ones."""
        bounds = sorted((*np.lib.array_utils.byte_bounds(array), path) for path, array in self._arrays if array.size)
        for (_, end, first), (start, _, second) in itertools.pairwise(bounds):
            if start < end:
                raise StateNotSupportedError(
                    f"{first} and {second} share memory (one is a view of the other), which a snapshot "
                    f"cannot keep. "
                    "Store a copy in one of them, or give the environment state_dict() and load_state_dict()."
                )


class _Decoder:
    def __init__(self, root: object) -> None:
        encoder = _Encoder()
        encoder.encode(root, type(root).__name__)
        self._known = encoder.visited  # kept, so that ids stay unique
        self._examples = {_type_name(value): value for value in reversed(self._known)}
        self._claimed: set[int] = set()
        self._restored: dict[int, Any] = {}

    def decode(self, code: Opaque, target: Opaque, path: str) -> Opaque:
        if not isinstance(code, dict):
            return code
        kind = code["kind"]
        if kind == "static":
            if target is None:
                raise StateNotSupportedError(f"{path} was set in the snapshot and is missing now.")
            return target
        if kind == "ref":
            if code["ref"] not in self._restored:
                raise StateNotSupportedError(f"{path} is a container that holds itself: it cannot be restored.")
            return self._restored[code["ref"]]
        if kind == "object":
            return self._decode_object(code, target, path)
        value = self._decode_value(kind, code, target, path)
        self._restored[code["id"]] = value
        return value

    def _decode_value(self, kind: str, code: dict[str, Any], target: Opaque, path: str) -> Opaque:
        if kind == "array":
            return _plain_to_array(code)
        if kind == "scalar":
            return _plain_to_array(code)[()]
        if kind == "tensor":
            return code["data"].clone()
        if kind in ("generator", "random_state", "random"):
            return _decode_random(kind, self.decode(code["state"], None, path))
        if kind == "method":
            owner = self.decode(code["self"], getattr(target, "__self__", None), path)
            return getattr(owner, code["name"])
        if kind == "dict":
            keys = [self.decode(key, None, path) for key in code["keys"]]
            old = target if isinstance(target, dict) else {}
            items = [
                self.decode(item, old.get(key), f"{path}[{key!r}]")
                for key, item in zip(keys, code["items"], strict=True)
            ]
            return _fill_dict(code["type"], target, dict(zip(keys, items, strict=True)), path)
        if kind in _SEQUENCES:
            return self._decode_sequence(kind, code, target, path)
        if target is None:
            raise StateNotSupportedError(f"{path} was set in the snapshot and is missing now.")
        if kind == "space":
            for space, rng in zip(_spaces_within(target), code["rngs"], strict=True):
                space._np_random = self.decode(rng, None, path)
            return target
        target.load_state_dict(code["state"])
        return target

    def _decode_sequence(self, kind: str, code: dict[str, Any], target: Opaque, path: str) -> Opaque:
        is_ordered = isinstance(target, list | tuple | collections.deque)
        fits = is_ordered and len(target) == len(code["items"])
        old = list(target) if fits else [None] * len(code["items"])
        items = [
            self.decode(item, known, f"{path}[{i}]")
            for i, (item, known) in enumerate(zip(code["items"], old, strict=True))
        ]
        if kind == "deque":
            return collections.deque(items, maxlen=code["maxlen"])
        return _SEQUENCES[kind](items)

    def _decode_object(self, code: dict[str, Any], target: Opaque, path: str) -> Opaque:
        pattern = target
        if target is None or _type_name(target) != code["type"] or id(target) in self._claimed:
            pattern = self._examples.get(code["type"])
            target = _blank_like(pattern, code["type"], path)
        self._claimed.add(id(target))
        self._restored[code["id"]] = target
        for name, item in code["attributes"].items():
            value = self.decode(item, getattr(pattern, name, None), f"{path}.{name}")
            if getattr(target, name, self) is not value:
                object.__setattr__(target, name, value)
        for name in set(_attribute_names(target)) - set(code["attributes"]):
            object.__delattr__(target, name)
        return target


def _blank_like(pattern: Opaque, type_name: str, path: str) -> Opaque:
    """Return an empty object of a class that the environment itself has instances of; its constructor does not run."""
    if pattern is None:
        raise StateNotSupportedError(
            f"The snapshot holds a {type_name} at {path}, but the environment has none to take after. "
            "Restore onto an environment that was built in the same way, or give it state_dict() and load_state_dict()."
        )
    try:
        return object.__new__(type(pattern))
    except TypeError as error:
        raise StateNotSupportedError(f"The {type_name} at {path} cannot be made again: {error}.") from error


def _spaces_within(space: Opaque) -> Iterator[Any]:
    yield space
    children = getattr(space, "spaces", ())
    for child in children.values() if isinstance(children, dict) else children:
        yield from _spaces_within(child)


def _is_plain_python(cls: type) -> bool:
    """Return whether instances hold nothing but attributes: no list, exception or C++ engine underneath."""
    try:
        blank: object = object.__new__(cls)
    except TypeError:
        return False  # a base class in C has a memory layout of its own
    return hasattr(blank, "__dict__") or any("__slots__" in base.__dict__ for base in cls.__mro__)


def _attribute_names(value: object) -> Iterator[str]:
    yield from getattr(value, "__dict__", {})
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name


def _fill_dict(type_name: str, target: Opaque, content: dict[Any, Any], path: str) -> dict[Any, Any]:
    if type_name == "builtins.dict":
        return content
    if not isinstance(target, dict) or _type_name(target) != type_name:
        raise StateNotSupportedError(f"The snapshot holds a {type_name} at {path}, which is missing now.")
    target.clear()  # a subclass keeps what it was built with, such as a default factory
    target.update(content)
    return target


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _array_to_plain(array: Array, path: str) -> dict[str, Any]:
    if array.dtype.hasobject:
        raise StateNotSupportedError(f"{path} is an array of Python objects, which a snapshot cannot keep.")
    # Bytes keep every dtype exactly, also those that torch does not know.
    data = torch.from_numpy(np.frombuffer(array.tobytes(), np.uint8).copy())
    return {"data": data, "dtype": array.dtype.str, "shape": list(array.shape)}


def _plain_to_array(code: dict[str, Any]) -> Array:
    flat = np.frombuffer(code["data"].cpu().numpy().tobytes(), np.dtype(code["dtype"]))
    return flat.reshape(code["shape"]).copy()


def _decode_random(kind: str, state: Opaque) -> np.random.Generator | np.random.RandomState | random.Random:
    if kind == "random":
        stream = random.Random()
        stream.setstate(state)
        return stream
    if kind == "random_state":
        legacy = np.random.RandomState()
        legacy.set_state(state)
        return legacy
    bit_generators: dict[str, type[np.random.BitGenerator]] = {
        "PCG64": np.random.PCG64,
        "PCG64DXSM": np.random.PCG64DXSM,
        "MT19937": np.random.MT19937,
        "Philox": np.random.Philox,
        "SFC64": np.random.SFC64,
    }
    bits = bit_generators[state["bit_generator"]]()
    bits.state = state
    return np.random.Generator(bits)

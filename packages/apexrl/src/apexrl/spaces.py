"""A Dict or Tuple of observations as one vector that remembers its parts.

Everything between an environment and a network carries one tensor per observation; a network that treats the parts
differently (a camera by convolutions, joint angles by an MLP) takes them apart again with `PackedBox.split`.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from apexrl.arrays import Floats32

__all__ = ["PackedBox", "is_image", "observation_array", "pack_space"]


class PackedBox(spaces.Box):
    """A vector of float32 that holds named parts one after the other.

    Args:
        parts: Spaces of the parts, in order.

    Attributes:
        parts: The same.
    """

    def __init__(self, parts: Mapping[str, spaces.Box]) -> None:
        low = np.concatenate([part.low.ravel() for part in parts.values()]).astype(np.float32)
        high = np.concatenate([part.high.ravel() for part in parts.values()]).astype(np.float32)
        super().__init__(low, high, dtype=np.float32)
        self.parts = dict(parts)

    def split(self, values: Tensor) -> dict[str, Tensor]:
        """Take vectors ``[*batch, n]`` apart: each part ``[*batch, *part]``, as views."""
        sizes = [prod(part.shape) for part in self.parts.values()]
        pieces = torch.split(values, sizes, dim=-1)
        batch = values.shape[:-1]
        return {
            name: piece.reshape(*batch, *part.shape)
            for (name, part), piece in zip(self.parts.items(), pieces, strict=True)
        }

    def pack(self, observation: Any) -> Floats32:  # noqa: ANN401 - dicts and tuples of arrays, nested
        """Make vectors ``[*batch, n]`` of an environment's own Dict or Tuple observation, or of a batch of them.

        Bytes of pictures are scaled to 0…1; an integer beside a vector part is its one-hot index.

        Raises:
            ValueError: A part is missing or has another shape.
        """
        given = {name: np.asarray(_look_up(observation, name)) for name in self.parts}
        choices = [v.ndim for v in given.values() if v.dtype.kind in "iu"]
        others = [v.ndim - len(self.parts[name].shape) for name, v in given.items() if v.dtype.kind == "f"]
        lead = others[0] if others else min(choices)  # dimensions of the batch
        packed = []
        for name, part in self.parts.items():
            values = given[name]
            if values.dtype.kind in "iu" and values.ndim == lead and len(part.shape) == 1:
                values = np.eye(part.shape[0])[values]
            if values.shape[lead:] != part.shape:
                raise ValueError(f"The part {name!r} has shape {values.shape}; it must end with {part.shape}.")
            scale = 1.0 / 255.0 if values.dtype == np.uint8 and len(part.shape) == 3 else 1.0
            packed.append((values * scale).reshape(*values.shape[:lead], -1).astype(np.float32))
        return np.concatenate(packed, axis=-1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedBox) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]  # as Box: spaces are mutable

    def __repr__(self) -> str:
        return f"PackedBox({', '.join(f'{name}: {part}' for name, part in self.parts.items())})"


def _look_up(observation: Any, name: str) -> Any:  # noqa: ANN401 - nested dicts and tuples
    """Return a part by its name: keys of nested dicts and indices of tuples, joined by dots."""
    value = observation
    for key in name.split("."):
        try:
            value = value[int(key) if isinstance(value, tuple | list) else key]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ValueError(f"The observation has no part {name!r}.") from error
    return value


def observation_array(space: spaces.Space[Any], observation: Any) -> Any:  # noqa: ANN401 - see below
    """Return an environment's own observation as networks take it: an array or a tensor of the space's shape.

    Dicts and tuples are packed, a single integer beside a vector space is its one-hot index, lists become arrays, and
    arrays and tensors are returned as they are.
    """
    if isinstance(space, PackedBox) and isinstance(observation, Mapping | tuple):
        return space.pack(observation)
    if isinstance(observation, int | np.integer) and space.shape is not None and len(space.shape) == 1:
        return np.eye(space.shape[0], dtype=np.float32)[int(observation)]
    return observation if isinstance(observation, Tensor) else np.asarray(observation)


def is_image(space: spaces.Space[Any]) -> bool:
    """Return whether observations are pictures: bytes of three dimensions, one of which are the channels."""
    return isinstance(space, spaces.Box) and len(space.shape) == 3 and space.dtype == np.uint8


def pack_space(space: "spaces.Dict | spaces.Tuple[Any]") -> tuple[PackedBox, Floats32]:
    """Return the packed form of a composite space, and what its flattened vectors are multiplied by.

    Parts are named by their keys, nested ones with a dot. Pictures are scaled from 0…255 to 0…1; what is no Box is
    flattened by Gymnasium's rules (one-hot for Discrete).

    Raises:
        TypeError: A part has no fixed size.
    """
    parts: dict[str, spaces.Box] = {}
    scales = []
    for name, part in _leaves(space, ""):
        flat = part if isinstance(part, spaces.Box) else spaces.flatten_space(part)
        if not isinstance(flat, spaces.Box):
            raise TypeError(f"The part {name!r} of the observation has no fixed size: {part}.")
        scale = 1.0 / 255.0 if is_image(part) else 1.0
        low, high = flat.low.astype(np.float32) * scale, flat.high.astype(np.float32) * scale
        parts[name] = spaces.Box(low, high, flat.shape, np.float32)
        scales.append(np.full(prod(flat.shape), scale, np.float32))
    return PackedBox(parts), np.concatenate(scales)


def _leaves(space: spaces.Space[Any], prefix: str) -> Iterator[tuple[str, spaces.Space[Any]]]:
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        yield prefix, space
        return
    children = space.spaces if isinstance(space.spaces, dict) else dict(enumerate(space.spaces))
    for key, child in children.items():
        yield from _leaves(child, f"{prefix}.{key}" if prefix else str(key))

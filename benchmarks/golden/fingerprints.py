"""Fingerprints of numbers and tensors: equal bits, and they alone, give equal text."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

Row = dict[str, Any]


def text_of(value: object) -> str:
    """Write a number so that equal bits, and they alone, give equal text."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return float(value).hex()
    return str(value)


class Fingerprint:
    """SHA-256 over lines of values, and their number."""

    def __init__(self) -> None:
        self._known = hashlib.sha256()
        self.count = 0

    def add(self, *values: object) -> None:
        """Take one line in."""
        self._known.update(("|".join(text_of(value) for value in values) + "\n").encode())
        self.count += 1

    @property
    def digest(self) -> str:
        """The hexadecimal digits so far."""
        return self._known.hexdigest()


def tensors_digest(tensors: Mapping[str, Any]) -> Row:
    """Fingerprint tensors or arrays.

    Returns:
        ``weights``: over name, type, shape and bytes of each, by name. ``values``: the same without names, in the
        order of their own digests, so that an attribute's new name changes the first alone. ``tensors``: their number.
    """
    lines = {}
    for name, tensor in tensors.items():
        array = np.ascontiguousarray(tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor)
        content = hashlib.sha256(array.tobytes()).hexdigest()
        lines[name] = f"{array.dtype.str} {tuple(np.shape(tensor))} {content}"
    named = "".join(f"{name} {line}\n" for name, line in sorted(lines.items()))
    unnamed = "".join(f"{line}\n" for line in sorted(lines.values()))
    return {
        "weights": hashlib.sha256(named.encode()).hexdigest(),
        "values": hashlib.sha256(unnamed.encode()).hexdigest(),
        "tensors": len(lines),
    }


def report(options: argparse.Namespace, text: str) -> None:
    """Print a line of progress, unless quiet is asked for."""
    if not options.quiet:
        print(text, file=sys.stderr, flush=True)

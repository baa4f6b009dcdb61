"""Types of numpy arrays, each name with one meaning; shapes stand in the docstrings of those who use them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "Bools",
    "Floats",
    "Floats32",
    "Indices",
    "Ints",
    "Ints8",
    "Ints32",
    "every_term",
    "matmul_rows",
    "true_rows",
]

Array = NDArray[Any]
"""An array of any type, where a function works for several."""
Floats = NDArray[np.float64]
"""Double precision: money, statistics and whatever the heuristics compute."""
Floats32 = NDArray[np.float32]
"""Single precision: features, inputs and outputs of networks, and their weights."""
Ints = NDArray[np.int64]
"""Whole numbers: quantities, days, row numbers."""
Ints32 = NDArray[np.int32]
"""Whole numbers as the records store them."""
Ints8 = NDArray[np.int8]
"""Small codes, such as operations and directions."""
Bools = NDArray[np.bool_]
"""Masks."""
Indices = NDArray[np.intp]
"""Indices as numpy's ``argsort`` and ``nonzero`` return them."""


def matmul_rows(x: Array, weight: Array) -> Array:
    """Return ``x @ weight`` with every row ``[…, in]`` rounded as if it were alone.

    A product of two matrices rounds a row by how many rows there are, so that a decision would depend in its last bit
    on who shares the batch.
    """
    return np.asarray(np.matmul(x[..., None, :], weight)[..., 0, :])


def every_term(mask: Bools) -> Bools:
    """Return whether all three terms of offers hold, ``[M]`` from ``[M, 3]``; a third of the time of ``all(1)``."""
    return np.asarray(mask[:, 0] & mask[:, 1] & mask[:, 2])


def true_rows(mask: Bools) -> Indices:
    """Return the indices of the true entries of a mask ``[M]``; a third of the time of ``np.flatnonzero``."""
    return mask.nonzero()[0]

"""Names for numpy array types, the same in every module; shapes stand beside the names where they are used."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Bools", "Floats", "Floats32", "Indices", "Ints"]

Array = NDArray[Any]
"""An array of any type."""
Floats = NDArray[np.float64]
"""Real numbers in double precision."""
Floats32 = NDArray[np.float32]
"""Real numbers in single precision: observations and network inputs."""
Ints = NDArray[np.int64]
"""Counts and codes."""
Bools = NDArray[np.bool_]
"""Masks."""
Indices = NDArray[np.intp]
"""Positions in another array."""

"""The rules of Alice_and_Bob as arrays: a 10 × 10 board with a wall around 8 × 8 free cells.

Keys lie in the two top corners and goals in the two bottom corners. Goal ``g`` latches when one agent stands on it
while the other stands on key ``g``, which lies in the same column. Both goals latched is success.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

SIDE: Final = 10
N_AGENTS: Final = 2
N_ACTIONS: Final = 5
"""Up, down, left, right, stay."""

MOVES: Final[NDArray[np.int64]] = np.array([(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)], dtype=np.int64)
"""Change of (row, column) for each action."""

KEYS: Final[NDArray[np.int64]] = np.array([1 * SIDE + 1, 1 * SIDE + SIDE - 2], dtype=np.int64)
GOALS: Final[NDArray[np.int64]] = np.array([(SIDE - 2) * SIDE + 1, (SIDE - 2) * SIDE + SIDE - 2], dtype=np.int64)

# What stands in a cell, as the number that an observation shows. One scale from 0 to 1 keeps inputs normalised;
# an agent hides what it stands on.
FREE: Final = 0.0
WALL: Final = 1.0
KEY: Final = 0.3
GOAL: Final = 0.5
LATCHED: Final = 0.15
AGENT: Final[NDArray[np.float32]] = np.array([0.7, 0.85], dtype=np.float32)


def empty_board() -> NDArray[np.float32]:
    """Cell codes of a board without agents and with nothing latched, ``(100,)``."""
    board = np.full((SIDE, SIDE), WALL, dtype=np.float32)
    board[1:-1, 1:-1] = FREE
    flat = board.reshape(-1)
    flat[KEYS] = KEY
    flat[GOALS] = GOAL
    return flat


def _successors() -> NDArray[np.int64]:
    """Cell reached from each cell by each action, ``(100, 5)``; walls hold an agent where it is."""
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    next_rows = np.clip(rows[:, None] + MOVES[:, 0], 1, SIDE - 2)
    next_columns = np.clip(columns[:, None] + MOVES[:, 1], 1, SIDE - 2)
    return next_rows * SIDE + next_columns


def _inside() -> NDArray[np.int64]:
    """Return the 64 cells that an agent may stand on."""
    return (np.arange(1, SIDE - 1)[:, None] * SIDE + np.arange(1, SIDE - 1)).reshape(-1)


def _coordinates() -> NDArray[np.float32]:
    """(row, column) of each cell scaled to [-1, 1] over the free cells, ``(100, 2)``."""
    middle = (SIDE - 1) / 2
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    scaled = (np.stack([rows, columns], axis=1) - middle) / (middle - 1)
    return scaled.astype(np.float32)


SUCCESSOR: Final = _successors()
INSIDE: Final = _inside()
COORDINATES: Final = _coordinates()
WINDOW: Final[NDArray[np.int64]] = np.array([-SIDE - 1, -SIDE, -SIDE + 1, -1, 0, 1, SIDE - 1, SIDE, SIDE + 1])
"""Offsets of the 3 × 3 cells around an agent."""

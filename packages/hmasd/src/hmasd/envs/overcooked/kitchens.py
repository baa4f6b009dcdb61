"""The rules of Overcooked (Carroll et al., 2019; package ``overcooked-ai`` 1.1.0) for a batch of kitchens.

A cook picks onions and dishes up at dispensers, puts onions into a pot, starts the cooking with an empty hand, takes
the soup with a dish after 20 steps and delivers it. A soup of three onions is worth 20; one of fewer can be cooked
and is worth nothing. With ``old_dynamics`` a pot starts by itself with the third onion and in no other way, which the
package does not offer. Anything can be put down on a counter. Interactions come before movements, the first cook's
before the second's. Cooks that would collide or swap places stay where they are.

Cells are numbered row by row, and every cell has a content: floor, dispenser, counter with what lies on it, pot with
its onions. What an interaction does follows from the content of the cell in front and the hand, by a table, so the
whole batch moves with a few array operations and nothing loops over kitchens.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from apexrl.arrays import Floats32, Ints

N_COOKS: Final = 2
N_ACTIONS: Final = 6
"""North, south, east, west, stay, interact."""
STAY: Final = 4
INTERACT: Final = 5

NOTHING: Final = 0
ONION: Final = 1
DISH: Final = 2
SOUP: Final = 2
"""Codes of things in hands and on counters; a soup of m onions is ``SOUP + m``."""
FULL: Final = 3
"""Onions of a soup that is ordered, and the most that a pot holds."""
COOK_STEPS: Final = 20
SOUP_VALUE: Final = 20.0
POTTING_SHAPED: Final = 3.0
DISH_SHAPED: Final = 3.0
SOUP_SHAPED: Final = 5.0
"""Shaped rewards of the package, which are reported, and part of the reward with ``reward_shaping`` only."""

# Contents of cells.
FLOOR: Final = 0
ONIONS: Final = 1
DISHES: Final = 2
SERVING: Final = 3
COUNTER: Final = 4
"""A counter with thing t on it is ``COUNTER + t``."""
N_THINGS: Final = SOUP + FULL + 1
"""Nothing, onion, dish, and soups of one to three onions."""
IDLE_POT: Final = COUNTER + N_THINGS
"""A pot with m onions that does not cook is ``IDLE_POT + m``; the next two likewise."""
COOKING_POT: Final = IDLE_POT + FULL + 1
READY_POT: Final = COOKING_POT + FULL + 1
N_CONTENTS: Final = READY_POT + FULL + 1
_FIRST_CONTENT: Final = {" ": FLOOR, "O": ONIONS, "D": DISHES, "S": SERVING, "X": COUNTER, "P": IDLE_POT}

GRIDS: Final = {
    "cramped_room": ("XXPXX", "O  2O", "X1  X", "XDXSX"),
    "coordination_ring": ("XXXPX", "X 1 P", "D2X X", "O   X", "XOSXX"),
}
"""X counter, O onions, D dishes, P pot, S serving; digits are the cooks' first cells."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A kitchen's plan; W is its width and C its number of cells."""

    name: str
    width: int
    terrain: Ints
    """Character code of each cell, ``(C,)``; a space is floor."""
    starts: Ints
    """First cell of each cook, ``(2,)``."""
    floor: Ints
    """Cells that cooks can stand on."""
    counters: Ints
    """Cells of counters."""
    pots: Ints
    """Cells of pots."""

    @classmethod
    def of(cls, name: str) -> "Layout":
        """Return a layout by name."""
        rows = GRIDS[name]
        text = "".join(rows)
        terrain = np.array([ord(" " if mark.isdigit() else mark) for mark in text], dtype=np.int64)
        return cls(
            name=name,
            width=len(rows[0]),
            terrain=terrain,
            starts=np.array([text.index(str(cook + 1)) for cook in range(N_COOKS)], dtype=np.int64),
            floor=np.flatnonzero(terrain == ord(" ")),
            counters=np.flatnonzero(terrain == ord("X")),
            pots=np.flatnonzero(terrain == ord("P")),
        )

    @property
    def steps(self) -> Ints:
        """Change of the cell for each direction, ``(4,)``."""
        return np.array([-self.width, self.width, 1, -1], dtype=np.int64)


LAYOUTS: Final = {name: Layout.of(name) for name in GRIDS}


class _Rules(NamedTuple):
    """What an interaction does, by ``content · N_THINGS + hand``; each ``(N_CONTENTS · N_THINGS,)``."""

    content: Ints
    hand: Ints
    value: Floats32
    shaped: Floats32


def _rules(*, old_dynamics: bool) -> _Rules:
    """Write the rules of interactions down, case by case; a case that is not named changes nothing."""
    content, hand = np.divmod(np.arange(N_CONTENTS * N_THINGS), N_THINGS)
    value, shaped = np.zeros((2, content.size), dtype=np.float32)

    def rule(front: int, held: int, front_after: int, held_after: int) -> int:
        case = front * N_THINGS + held
        content[case], hand[case] = front_after, held_after
        return case

    for thing in range(ONION, N_THINGS):
        rule(COUNTER, thing, COUNTER + thing, NOTHING)  # put down
        rule(COUNTER + thing, NOTHING, COUNTER, thing)  # pick up
    rule(ONIONS, NOTHING, ONIONS, ONION)
    rule(DISHES, NOTHING, DISHES, DISH)
    for m in range(FULL + 1):
        if m < FULL:
            starts = old_dynamics and m + 1 == FULL
            filled = (COOKING_POT if starts else IDLE_POT) + m + 1
            shaped[rule(IDLE_POT + m, ONION, filled, NOTHING)] = POTTING_SHAPED
        if m > 0:
            if not old_dynamics:
                rule(IDLE_POT + m, NOTHING, COOKING_POT + m, NOTHING)
            shaped[rule(READY_POT + m, DISH, IDLE_POT, SOUP + m)] = SOUP_SHAPED
            value[rule(SERVING, SOUP + m, SERVING, NOTHING)] = SOUP_VALUE if m == FULL else 0.0
    return _Rules(content, hand, value, shaped)


RULES: Final = {old_dynamics: _rules(old_dynamics=old_dynamics) for old_dynamics in (False, True)}
"""What an interaction does, by ``old_dynamics``."""
_CONTENTS: Final = np.arange(N_CONTENTS)
_IS_COOKING: Final = (_CONTENTS >= COOKING_POT) & (_CONTENTS < READY_POT)
_WANTS_DISH: Final = (_CONTENTS > IDLE_POT) & (_CONTENTS != IDLE_POT + FULL)
"""Pots whose soup may soon need a dish: the package does not count a full pot that is not cooking."""


class Outcome(NamedTuple):
    """Rewards of one step for each cook, ``(E, 2)``."""

    delivered: Floats32
    """Value of soups delivered, which is the reward."""
    shaped: Floats32
    """The package's shaped reward."""


class Kitchens:
    """E kitchens of one layout.

    Args:
        layout: Plan of the kitchens.
        num_envs: E.
        old_dynamics: Whether a pot starts by itself with the third onion, and in no other way.
    """

    def __init__(self, layout: Layout, num_envs: int, *, old_dynamics: bool = False) -> None:
        self.layout = layout
        self._rules = RULES[old_dynamics]
        self._rows = np.arange(num_envs)
        self._first = np.array([_FIRST_CONTENT[chr(code)] for code in layout.terrain], dtype=np.int64)
        self._walkable = self._first == FLOOR
        self._steps = layout.steps
        self.cells = np.zeros((num_envs, N_COOKS), dtype=np.int64)
        """Cell of each cook."""
        self.facing = np.zeros((num_envs, N_COOKS), dtype=np.int64)
        """Direction of each cook: north, south, east, west."""
        self.held = np.zeros((num_envs, N_COOKS), dtype=np.int64)
        """What each cook holds."""
        self.contents = np.zeros((num_envs, layout.terrain.size), dtype=np.int64)
        """Content of each cell."""
        self.cooked = np.zeros((num_envs, layout.pots.size), dtype=np.int64)
        """Steps that each pot has cooked; ``COOK_STEPS`` when it is ready, 0 before it starts."""
        self.reset(self._rows)

    def reset(self, envs: Ints) -> None:
        """Empty these kitchens and put the cooks on their first cells, facing north."""
        self.cells[envs] = self.layout.starts
        self.facing[envs] = 0
        self.held[envs] = NOTHING
        self.contents[envs] = self._first
        self.cooked[envs] = 0

    def step(self, actions: Ints) -> Outcome:
        """Interact, move, cook; ``actions (E, 2)``."""
        delivered, shaped = np.zeros((2, *actions.shape), dtype=np.float32)
        interacting = actions == INTERACT
        if interacting.any():
            targets = self.cells + self._steps[self.facing]  # (E, 2) cells in front
            pots = self.contents[:, self.layout.pots]
            for cook in range(N_COOKS):
                envs = interacting[:, cook].nonzero()[0]  # (M,)
                delivered[envs, cook], shaped[envs, cook] = self._interact(envs, cook, targets[envs, cook], pots)
        self._move(actions)
        self._cook()
        return Outcome(delivered, shaped)

    def _interact(self, envs: Ints, cook: int, target: Ints, pots: Ints) -> tuple[Floats32, Floats32]:
        """Let one cook interact with the cells in front ``(M,)``; returns value and shaped reward ``(M,)``."""
        held, front = self.held[envs, cook], self.contents[envs, target]
        case = front * N_THINGS + held
        shaped = self._rules.shaped[case]
        takes_dish = (front == DISHES) & (held == NOTHING)
        if takes_dish.any():
            # rewarded if no dish lies around and hands hold fewer than pots want, which counts from before the step
            no_dish_lies = (self.contents[envs] != COUNTER + DISH).all(axis=1)
            dishes = (self.held[envs] == DISH).sum(axis=1)
            shaped[takes_dish & no_dish_lies & (dishes < _WANTS_DISH[pots[envs]].sum(axis=1))] = DISH_SHAPED
        self.contents[envs, target] = self._rules.content[case]
        self.held[envs, cook] = self._rules.hand[case]
        return self._rules.value[case], shaped

    def _move(self, actions: Ints) -> None:
        """Turn and walk; cooks that would meet or swap stay."""
        moving = actions < STAY
        self.facing = np.where(moving, actions, self.facing)
        ahead = self.cells + self._steps[self.facing]
        wanted = np.where(moving & self._walkable[ahead], ahead, self.cells)  # (E, 2)
        meet = wanted[:, 0] == wanted[:, 1]
        swap = (wanted == self.cells[:, ::-1]).all(axis=1)
        self.cells = np.where((meet | swap)[:, None], self.cells, wanted)

    def _cook(self) -> None:
        """Let pots cook; they are ready after ``COOK_STEPS``."""
        cells = self.layout.pots
        pots = self.contents[:, cells]  # (E, P)
        is_cooking = _IS_COOKING[pots]
        # a pot that was emptied starts from 0 again
        self.cooked = np.where(pots < COOKING_POT, 0, self.cooked + is_cooking)
        done = is_cooking & (self.cooked == COOK_STEPS)
        self.contents[:, cells] = pots + done * (READY_POT - COOKING_POT)

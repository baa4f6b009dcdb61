"""Seeds by purpose, so that no world that served to choose an agent is used to judge it.

Every seed is a pure function of its block and an index, and the blocks share none:

========  =======================================================================================
tuning    for experiments of every kind, as often as one likes
gate      ``gate:NAME``, a block of its own for each name: a candidate is judged on it once
verdict   for the final table alone; opened by an explicit flag. ``verdict:NAME`` is a block of its own for each
          name, for a later agent whose forerunners were chosen after a look at the earlier blocks
========  =======================================================================================
"""

from __future__ import annotations

import hashlib
from typing import Final

from apexrl.runs.errors import ConfigurationError

__all__ = ["MAX_INDEX", "SeedBlock", "seed_block"]

_INDEX_BITS: Final = 24
_NAME_BITS: Final = 38
_GATE: Final = 1 << (_INDEX_BITS + _NAME_BITS)  # bit 62: seeds stay below 2**63, where every store can hold them
_BASES: Final = {"tuning": 1 << _INDEX_BITS, "verdict": 2 << _INDEX_BITS}
MAX_INDEX: Final = (1 << _INDEX_BITS) - 1
"""Largest index of a block."""


class SeedBlock:
    """Seeds of one purpose.

    Args:
        name: ``tuning``, ``gate:NAME``, ``verdict`` or ``verdict:NAME``; see `seed_block`, which also asks for the
            flag of the last two.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        kind, _, label = name.partition(":")
        if kind in {"gate", "verdict"} and label:
            person = b"" if kind == "gate" else kind.encode()  # equal names of both kinds are different blocks
            digest = hashlib.blake2b(label.encode(), digest_size=8, person=person).digest()
            number = int.from_bytes(digest, "big") >> (64 - _NAME_BITS)
            self._base = _GATE | (number << _INDEX_BITS)
        elif name in _BASES:
            self._base = _BASES[name]
        else:
            raise ConfigurationError(
                f"there is no seed block {name!r}",
                "a block is tuning, gate:NAME (a fresh one for every name), verdict or verdict:NAME",
                "name one of these",
            )

    def seed(self, index: int) -> int:
        """Return the seed at an index.

        Raises:
            ValueError: If the block has no such index.
        """
        if not 0 <= index <= MAX_INDEX:
            raise ValueError(f"index {index} is outside of the block {self.name!r}; it must be 0 to {MAX_INDEX}")
        return self._base | index


def seed_block(name: str, *, open_verdict: bool = False) -> SeedBlock:
    """Return a block of seeds.

    Args:
        name: ``tuning``, ``gate:NAME``, ``verdict`` or ``verdict:NAME``.
        open_verdict: Whether the verdict's seeds may be used.

    Raises:
        ConfigurationError: If there is no such block, or the verdict is asked for without the flag.
    """
    block = SeedBlock(name)
    if name.partition(":")[0] == "verdict" and not open_verdict:
        raise ConfigurationError(
            f"the block {name!r} is closed",
            "its worlds judge the final agent; whoever looks at them while choosing has no judge left",
            "use --block gate:NAME with a new name, or add --open-verdict for the final table",
        )
    return block

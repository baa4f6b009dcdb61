"""Names of what policies see and put out, as options give them."""

from __future__ import annotations

from collections.abc import Sequence

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.online.acting import NAMES
from litaagent_std.agents.online.steering import Layer

__all__ = ["check_names", "columns_of"]


def columns_of(layer: Layer, names: Sequence[str]) -> list[int]:
    """Places of a layer's numbers, by name; all of them when there are no names.

    Raises:
        ConfigurationError: If the layer has no such number.
    """
    known = NAMES[layer]
    check_names(layer.upper(), "output", names, known)
    return [known.index(name) for name in names or known]


def check_names(owner: str, kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuses names that do not exist.

    Raises:
        ConfigurationError: If there is one.
    """
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ConfigurationError(
            f"{owner} has no {kind} named {', '.join(unknown)}",
            f"the names of {owner}'s {kind}s are {', '.join(known)}",
            "correct the name",
        )

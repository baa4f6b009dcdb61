"""The agent that online training makes: the heuristic agent under trained steering, for arena and league."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.acting import PolicySet
from litaagent_std.hrl_xf.online.seat import SteeredAgent

__all__ = ["SHIPPED", "LitaOnline", "weights_file"]

SHIPPED: Final = Path(__file__).parent / "shipped"
"""Folder of the trained weights that come with the package. A file there never changes: better ones get a new name."""


def weights_file(name: str | Path) -> Path:
    """Finds the weights that a name stands for: a file, or one that comes with the package.

    Raises:
        ConfigurationError: If there is none.
    """
    for path in (Path(name), SHIPPED / f"{name}.npz"):
        if path.is_file():
            return path
    names = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.npz"))) or "there are none yet"
    raise ConfigurationError(
        f"there is no file of weights {str(name)!r}",
        f"weights come from a file, or by the name of one of the package: {names}",
        "correct the name, or train some with lita train-online",
    )


class LitaOnline(SteeredAgent):
    """Plays by weights that ``lita train-online`` wrote, without exploration; numpy is all it needs to decide.

    Args:
        *args: Passed to scml.
        weights: The ``.npz`` file, or the name of one that comes with the package; zeros (the heuristic agent) without.
        label: A name for tables of results.
        **kwargs: Passed on, such as ``parameters``.
    """

    def __init__(self, *args: Any, weights: str | Path | None = None, label: str = "", **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        policies = PolicySet() if weights is None else PolicySet.load(weights_file(weights))
        super().__init__(*args, rounds=policies.rounds, pilot=policies, **kwargs)
        self.label = label

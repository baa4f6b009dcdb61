"""The agent that online training makes: the heuristic agent with trained residuals, for arena and league."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.seat import PolicySteeredAgent
from litaagent_std.agents.online.weights import weights_file

__all__ = ["LitaOnline"]


class LitaOnline(PolicySteeredAgent):
    """Play with weights that ``lita train-online`` wrote, without exploration; inference needs numpy alone.

    Args:
        *args: Passed to scml.
        weights: The ``.npz`` file, or the name of one that comes with the package. If None, all residuals are zero,
            which is the heuristic agent.
        label: A name for tables of results.
        **kwargs: Passed on. ``l3`` and ``parameters`` are by default those that the weights were trained with.
    """

    def __init__(self, *args: Any, weights: str | Path | None = None, label: str = "", **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        policies = PolicySet() if weights is None else PolicySet.load(weights_file(weights))
        super().__init__(*args, rounds=policies.rounds, policy=policies, **{**policies.base, **kwargs})
        self.label = label

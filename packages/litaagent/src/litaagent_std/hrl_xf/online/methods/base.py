"""The protocol of training methods, and the names of inputs and outputs that options give.

A method says which worlds to play under the present version, and updates itself when all of them are finished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.rollout import WorldRollout
from litaagent_std.hrl_xf.online.worlds import WorldPlan

__all__ = ["Method", "check_names"]


class Method(Protocol):
    """A training method."""

    @property
    def version(self) -> int:
        """Updates so far; the version of the next rollouts."""

    def policies(self) -> Hierarchy:
        """Return the present networks, without perturbations of the search."""

    def jobs(self, plans: Sequence[WorldPlan]) -> list[Job]:
        """Return the worlds to play under the present version."""

    def update(self, jobs: Sequence[Job], rollouts: Sequence[WorldRollout]) -> dict[str, float]:
        """Learn from all rollouts and return metrics; the version rises by one."""

    def set_version(self, version: int) -> None:
        """Give the present policies another version after a roll-back, so that no version is used twice."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides later updates."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""


def check_names(owner: str, kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Reject unknown names.

    Raises:
        ConfigurationError: If there is one.
    """
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ConfigurationError(
            f"{owner} has no {kind} named {', '.join(unknown)}",
            f"the names of {owner}'s {kind}s are {', '.join(known)}" if known else f"all {kind}s of {owner} are used",
            "correct the name" if known else "leave the option out",
        )

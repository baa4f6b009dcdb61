"""Shifts of L2's residuals that are linear in a few inputs: what a search without gradients changes.

A shift is added to the bias of the network's last layer and to its skip connection, so that the result is an L2 like
any other: the same class, the same file, and PPO can train it further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from litaagent_std.hrl_xf.l2_manager import initial_log_std
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.methods.base import check_names
from litaagent_std.policy.arrays import Array, Floats
from litaagent_std.policy.buckets import n_buckets
from litaagent_std.policy.features import DAY_FEATURES
from litaagent_std.policy.l2.residual import goal_names
from litaagent_std.policy.parameters import Level

__all__ = ["INPUTS", "GoalShifts"]

INPUTS: Final = (*DAY_FEATURES["x_static"], *DAY_FEATURES["x_role"])
"""Inputs by name; they are the first of the network's skip connection, in this order."""


class GoalShifts:
    """An L2 and the shifts of its residuals.

    Args:
        start: Networks to start from, L2 among them.
        inputs: Names of the inputs that shifts depend on, see `INPUTS`.
        outputs: Names of the residual's components that are shifted; all if empty.
        levels: Levels of the chain at which the networks act.

    Attributes:
        columns: Columns of the shifted components.

    Raises:
        ConfigurationError: If there is no such input or output.
    """

    def __init__(
        self, start: Hierarchy, inputs: Sequence[str], outputs: Sequence[str], levels: tuple[Level, ...]
    ) -> None:
        count = n_buckets(int(start.nets["l2"].meta["horizon"]))
        names = goal_names(count)
        check_names("L2", "output", outputs, names)
        check_names("L2", "input", inputs, INPUTS)
        self._start, self._levels = start, levels
        self._inputs = [INPUTS.index(name) for name in inputs]
        self.columns = [names.index(name) for name in outputs or names]
        # [K] a unit of a shift is a step of its component, as in exploration
        self._steps = np.exp(initial_log_std(count, 0.0).numpy())[self.columns]

    def hierarchy(self, bias: Floats, slopes: Floats, version: int) -> Hierarchy:
        """Return the networks with L2 shifted.

        Args:
            bias: ``[K]``, in steps.
            slopes: Per unit of each input, ``[inputs, K]``.
            version: Version of the result.
        """
        l2 = self._start.nets["l2"]
        arrays: dict[str, Array] = dict(l2.arrays)
        head, skip = arrays["head.bias"].copy(), arrays["skip.weight"].copy()
        head[self.columns] += (bias * self._steps).astype(np.float32)
        skip[np.ix_(self.columns, self._inputs)] += (slopes * self._steps).T.astype(np.float32)  # [K, inputs]
        arrays |= {"head.bias": head, "skip.weight": skip}
        return Hierarchy({**self._start.nets, "l2": replace(l2, arrays=arrays)}, version, self._levels)

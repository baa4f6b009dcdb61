"""The search: CMA-ES in the box [0, 1]ⁿ, fed with ranks, and rebuilt from a log of them.

The state of the search is a function of its options and of the ranks of every generation, so no state is stored: a
resumed search replays the log and is then in the same state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import cma
import numpy as np

from apexrl.runs.errors import RunDirError

__all__ = ["Search"]


class Search:
    """CMA-ES with ask and tell: ask for a generation of points, tell their ranks.

    Args:
        origin: Where it starts, a number from 0 to 1 for each dimension.
        step: Initial standard deviation.
        population: Points per generation; 4 + 3 ln n when None.
        covariance: ``diagonal`` or ``full``.
        seed: Seed of the points.
    """

    def __init__(
        self,
        origin: Sequence[float],
        step: float,
        population: int | None = None,
        covariance: Literal["diagonal", "full"] = "diagonal",
        seed: int = 0,
    ) -> None:
        # One dimension alone has no covariance, and the library refuses it: a second one that does nothing helps.
        self._width = len(origin)
        padded = [*origin, *([0.5] if self._width == 1 else [])]
        options: dict[str, Any] = {
            "bounds": [0.0, 1.0],
            "randn": np.random.RandomState(seed).randn,  # a stream of its own, and the global one stays as it is
            "seed": np.nan,
            "CMA_diagonal": covariance == "diagonal",
            "verbose": -9,
        }
        if population is not None:
            options["popsize"] = population
        self._strategy = cma.CMAEvolutionStrategy(padded, step, options)
        self._asked: list[Any] = []
        self.generation = 0

    def ask(self) -> list[list[float]]:
        """Return the points of the next generation; the same ones until their ranks are given."""
        if not self._asked:
            self._asked = self._strategy.ask()
        return [[float(value) for value in point[: self._width]] for point in self._asked]

    def tell(self, ranks: Sequence[int]) -> None:
        """Take the ranks of the points that were asked for, 0 for the best."""
        self._strategy.tell(self._asked, [float(rank) for rank in ranks])
        self._asked = []
        self.generation += 1

    def replay(self, entry: Mapping[str, Any]) -> None:
        """Take a generation from the log.

        Raises:
            RunDirError: If it is not what this search asks for.
        """
        if entry["step"] != self.generation or entry["points"] != self.ask():
            raise RunDirError(
                f"the log's generation {entry['step']} is not generation {self.generation} of this search",
                "a search is resumed only with the options, and with the version of cma, that it was started with",
                "restore them, or start a new run in another folder",
            )
        self.tell(entry["ranks"])

    @property
    def center(self) -> list[float]:
        """The middle of the distribution: the search's estimate of the optimum, less noisy than any single point."""
        return [float(value) for value in self._strategy.result.xfavorite[: self._width]]

    @property
    def spread(self) -> float:
        """The present step relative to the box."""
        return float(self._strategy.sigma)

"""Monitoring of a run: gain and health over a window of updates, roll-back and early stopping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np

from litaagent_std.hrl_xf.online.config import MonitorConfig
from litaagent_std.hrl_xf.online.rollout import WorldRollout

__all__ = ["Monitor", "WindowStatistics", "window_statistics"]

MonitorDecision = Literal["continue", "roll back", "stop"]


@dataclass(frozen=True, slots=True)
class WindowStatistics:
    """Statistics of our seats in the worlds of one update, or their means over a window.

    Attributes:
        gain: Mean score less the reference's in the same world and seat (if there is no reference, the score less 1).
        error: Its standard error.
        score: Mean score.
        breach_rate: Share of units sold that were not delivered.
        bankruptcies: Share of seats that went bankrupt.
        overstock: Share of days with more than three days of production in stock.
    """

    gain: float
    error: float
    score: float
    breach_rate: float
    bankruptcies: float
    overstock: float


def window_statistics(
    rollouts: Sequence[WorldRollout], reference: Mapping[int, Mapping[int, float]]
) -> WindowStatistics:
    """Compute the statistics of one update's worlds.

    Args:
        rollouts: Worlds under our policies.
        reference: Scores of the reference policy by seed and seat; 1 for missing worlds.
    """
    seats = [(rollout.seed, seat) for rollout in rollouts for seat in rollout.seats]
    # [seats of all worlds] score less the reference's
    gains = np.array([seat.score - reference.get(seed, {}).get(seat.seat, 1.0) for seed, seat in seats])
    health = [seat.health for _, seat in seats]
    return WindowStatistics(
        gain=float(gains.mean()),
        error=float(gains.std(ddof=1) / sqrt(len(gains))) if len(gains) > 1 else float("inf"),
        score=float(np.mean([seat.score for _, seat in seats])),
        breach_rate=sum(seat.missing for seat in health) / max(1, sum(seat.sold for seat in health)),
        bankruptcies=float(np.mean([seat.bankrupt for seat in health])),
        overstock=sum(seat.overstocked for seat in health) / max(1, sum(seat.days for seat in health)),
    )


def _mean(window: Sequence[WindowStatistics]) -> WindowStatistics:
    """Average a window; standard errors of independent worlds add in squares."""
    names = WindowStatistics.__slots__
    columns = {name: float(np.mean([getattr(update, name) for update in window])) for name in names}
    columns["error"] = sqrt(sum(update.error**2 for update in window)) / len(window)
    return WindowStatistics(**columns)


class Monitor:
    """Compare windows of updates and decide whether to continue, roll back or stop.

    Args:
        cfg: Thresholds.

    Attributes:
        best: The best window so far; None before the first is full.
        is_new_best: Whether the latest update completed a window that is the best so far.
    """

    def __init__(self, cfg: MonitorConfig) -> None:
        self.cfg = cfg
        self.best: WindowStatistics | None = None
        self.is_new_best = False
        self._window: list[WindowStatistics] = []
        self._since_best = 0

    def update(self, statistics: WindowStatistics) -> MonitorDecision:
        """Add the statistics of one update and return the decision."""
        cfg = self.cfg
        self._window = [*self._window, statistics][-cfg.window :]
        self._since_best += 1
        self.is_new_best = False
        exhausted = self.best is not None and self._since_best >= cfg.patience
        if len(self._window) < cfg.window:  # patience counts through roll-backs, which empty the window
            return "stop" if exhausted else "continue"
        now = _mean(self._window)
        if self.best is None or now.gain > self.best.gain:
            self.best, self.is_new_best, self._since_best = now, True, 0
            return "continue"
        if self._is_worse(now, self.best):
            self._window = []
            return "roll back"
        return "stop" if exhausted else "continue"

    def _is_worse(self, now: WindowStatistics, best: WindowStatistics) -> bool:
        cfg = self.cfg
        return (
            now.gain < best.gain - cfg.errors * sqrt(now.error**2 + best.error**2)
            or now.breach_rate > best.breach_rate + cfg.breach_rate
            or now.bankruptcies > best.bankruptcies + cfg.bankruptcies
            or now.overstock > best.overstock + cfg.overstock
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides later decisions."""
        return {
            "best": None if self.best is None else asdict(self.best),
            "window": [asdict(update) for update in self._window],
            "since_best": self._since_best,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        self.best = None if state["best"] is None else WindowStatistics(**state["best"])
        self._window = [WindowStatistics(**update) for update in state["window"]]
        self._since_best = int(state["since_best"])

"""Watching a run: is it getting better, is it healthy, and when to go back or to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np

from litaagent_std.hrl_xf.online.config import MonitorConfig
from litaagent_std.hrl_xf.online.rollout import WorldRollout

__all__ = ["Monitor", "WindowStatistics", "window_statistics"]

Advice = Literal["go on", "roll back", "stop"]


@dataclass(frozen=True, slots=True)
class WindowStatistics:
    """What one update's worlds showed of our seats.

    Attributes:
        gain: Mean score less the reference's in the same world and seat (the score less 1 without a reference).
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
    """Sum worlds up.

    Args:
        rollouts: Worlds under our policies.
        reference: Scores of the reference policy by seed and seat; worlds that are missing count with 1.
    """
    seats = [(rollout.seed, seat) for rollout in rollouts for seat in rollout.seats]
    gains = np.array([seat.score - reference.get(seed, {}).get(seat.seat, 1.0) for seed, seat in seats])
    health = [seat.health for _, seat in seats]
    return WindowStatistics(
        gain=float(gains.mean()),
        error=float(gains.std(ddof=1) / sqrt(len(gains))) if len(gains) > 1 else float("inf"),
        score=float(np.mean([seat.score for _, seat in seats])),
        breach_rate=sum(one.missing for one in health) / max(1, sum(one.sold for one in health)),
        bankruptcies=float(np.mean([one.bankrupt for one in health])),
        overstock=sum(one.overstocked for one in health) / max(1, sum(one.days for one in health)),
    )


def _mean(sights: Sequence[WindowStatistics]) -> WindowStatistics:
    """Return a window as one sight; errors of independent worlds add in squares."""
    columns = {name: float(np.mean([getattr(sight, name) for sight in sights])) for name in WindowStatistics.__slots__}
    columns["error"] = sqrt(sum(sight.error**2 for sight in sights)) / len(sights)
    return WindowStatistics(**columns)


class Monitor:
    """Judges windows of updates.

    Args:
        cfg: When to go back and when to stop.

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

    def look(self, sight: WindowStatistics) -> Advice:
        """Take one update in and says what to do."""
        cfg = self.cfg
        self._window = [*self._window, sight][-cfg.window :]
        self._since_best += 1
        self.is_new_best = False
        if len(self._window) < cfg.window:
            return "go on"
        now = _mean(self._window)
        if self.best is None or now.gain > self.best.gain:
            self.best, self.is_new_best, self._since_best = now, True, 0
            return "go on"
        if self._is_worse(now, self.best):
            self._window = []
            return "roll back"
        return "stop" if self._since_best >= cfg.patience else "go on"

    def _is_worse(self, now: WindowStatistics, best: WindowStatistics) -> bool:
        cfg = self.cfg
        return (
            now.gain < best.gain - cfg.errors * sqrt(now.error**2 + best.error**2)
            or now.breach_rate > best.breach_rate + cfg.breach_rate
            or now.bankruptcies > best.bankruptcies + cfg.bankruptcies
            or now.overstock > best.overstock + cfg.overstock
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides later advice."""
        return {
            "best": None if self.best is None else asdict(self.best),
            "window": [asdict(sight) for sight in self._window],
            "since_best": self._since_best,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state_dict`."""
        self.best = None if state["best"] is None else WindowStatistics(**state["best"])
        self._window = [WindowStatistics(**sight) for sight in state["window"]]
        self._since_best = int(state["since_best"])

"""Options of a dataset: with the records, they determine its content."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError

__all__ = ["DEFAULT_AGENT", "DEFAULT_RATIOS", "SPLITS", "DatasetOptions", "Decisions", "Labels", "Split"]

Labels = Literal["intention", "deals"]
Decisions = Literal["taken", "reasons"]
Split = Literal["train", "val", "test"]

SPLITS: Final[tuple[Split, ...]] = ("train", "val", "test")
DEFAULT_AGENT: Final = "PenguinAgent"
"""The agent that is imitated by default."""

DEFAULT_RATIOS: Final = (0.85, 0.10, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetOptions:
    """Which samples a dataset holds.

    Attributes:
        agent_name: Prefix of the agents' class names; "" selects every factory.
        top: Only the best agents of each tournament by mean score, this many; None for all.
        min_score: Only factories that ended with at least this score; None for all.
        labels: L2's goals from intentions (first proposals, within needs) or from the day's deals.
        decisions: L3's labels: the decisions that were taken, or those that the recorded reasons name (of a teacher).
        horizon: Delivery days after today that the arrays hold; default: the league's horizon.
        split_seed: Seed of the assignment of configurations to splits.
        ratios: Shares of configurations in train, val and test.
        reasons: Whether actions hold the recorded reasons of their agents, too.
    """

    agent_name: str = DEFAULT_AGENT
    top: int | None = None
    min_score: float | None = None
    labels: Labels = "intention"
    decisions: Decisions = "taken"
    horizon: int | None = None
    split_seed: int = 0
    ratios: tuple[float, float, float] = field(default=DEFAULT_RATIOS)
    reasons: bool = False

    def __post_init__(self) -> None:
        if self.labels not in ("intention", "deals"):
            raise DatasetError(f"labels={self.labels!r}", "L2's labels are 'intention' or 'deals'", "choose one")
        if self.decisions not in ("taken", "reasons"):
            raise DatasetError(f"decisions={self.decisions!r}", "L3's labels are 'taken' or 'reasons'", "choose one")
        if self.top is not None and self.top < 1:
            raise DatasetError(f"top={self.top}", "it counts agents from the best", "give 1 or more, or leave it out")
        total = sum(self.ratios)
        if len(self.ratios) != 3 or min(self.ratios) < 0 or self.ratios[0] <= 0 or abs(total - 1.0) > 1e-6:
            raise DatasetError(
                f"ratios={self.ratios} sum to {total:g}",
                "there are three shares, of train, val and test; they are not negative, sum to 1, and train has one",
                "give for example 0.85 0.10 0.05",
            )

    def plain(self) -> dict[str, Any]:
        """Return the options as plain values."""
        plain = {**asdict(self), "ratios": list(self.ratios)}
        for name, default in (("reasons", False), ("decisions", "taken")):  # as before there were such options
            if plain[name] == default:
                del plain[name]
        return plain

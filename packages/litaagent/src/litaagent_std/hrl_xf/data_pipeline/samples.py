"""Samples one by one: sequences over a dataset on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar, overload

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.build import OnProgress, build_dataset
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData, Part
from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError
from litaagent_std.hrl_xf.data_pipeline.options import (
    DEFAULT_AGENT,
    DEFAULT_RATIOS,
    DatasetOptions,
    Decisions,
    Labels,
    Split,
)
from litaagent_std.policy.arrays import Floats32, Ints, Ints32

__all__ = ["MacroDataset", "MacroSample", "MicroDataset", "MicroSample", "load_tournament_data"]

S = TypeVar("S")


def _no_context() -> Floats32:
    return np.zeros(0, np.float32)


def _ones(n: int) -> Floats32:
    return np.ones(n, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class MacroSample:
    """A day of a factory: its state at day start, and the goal that the day showed.

    Attributes:
        day: The day.
        state_macro: Features at day start, [n].
        goal: Q_buy, P_buy, Q_sell and P_sell by delivery bucket, [4, buckets]; prices are 0 where the quantity is.
        scale: Unit of each row of the goal: lines, input's price, lines, output's price; [4].
    """

    day: int
    state_macro: Floats32
    goal: Floats32
    scale: Floats32 = field(default_factory=lambda: _ones(4))


@dataclass(frozen=True, slots=True, eq=False)
class MicroSample:
    """An action of a negotiation, with what preceded it.

    Attributes:
        negotiation_id: Names the negotiation; all its actions share it.
        history: Offers strictly before the action, oldest first, [n_offers, n_history].
        action: Operation (0 accept, 1 reject, 2 end), quantity, lead and unit price of the counter-offer; -1 if none.
        baseline: The same of L1's baseline in that situation, always with a counter-offer.
        context: Features of the situation beside its history, [n].
        scale: Units of quantity, lead and price, [3].
    """

    negotiation_id: str
    history: Floats32
    action: Ints32
    baseline: Ints32
    context: Floats32 = field(default_factory=_no_context)
    scale: Floats32 = field(default_factory=lambda: _ones(3))

    @property
    def residual(self) -> Ints32 | None:
        """Quantity, lead and price of the counter-offer minus the baseline's; None if there is none."""
        if self.action[0] != 1:
            return None
        return np.asarray(self.action[1:] - self.baseline[1:], np.int32)


class _RowSequence(Sequence[S]):
    """Rows of a part of a dataset as samples.

    Args:
        data: The dataset.
        rows: Row numbers; default: all.

    Attributes:
        data: The dataset.
    """

    def __init__(self, data: OfflineData, rows: Ints | None = None) -> None:
        self.data = data
        self._rows = rows

    @property
    def _part(self) -> Part:
        """The half of the dataset that rows refer to."""
        raise NotImplementedError

    def _sample(self, row: int) -> S:
        """Return the sample of a row."""
        raise NotImplementedError

    def of(self, split: Split) -> Self:
        """Return the samples of a split."""
        return type(self)(self.data, self._part.rows(split))

    @property
    def rows(self) -> Ints:
        """Row numbers in the dataset's arrays."""
        return np.arange(len(self), dtype=np.int64) if self._rows is None else self._rows

    def __len__(self) -> int:
        return len(self._part) if self._rows is None else len(self._rows)

    @overload
    def __getitem__(self, index: int) -> S: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[S]: ...
    def __getitem__(self, index: int | slice) -> S | Sequence[S]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no sample {index}; there are {len(self)}")
        number = index % len(self)
        return self._sample(number if self._rows is None else int(self._rows[number]))

    def __iter__(self) -> Iterator[S]:
        return (self[index] for index in range(len(self)))


class MacroDataset(_RowSequence[MacroSample]):
    """The days of a dataset."""

    @property
    def _part(self) -> Part:
        return self.data.macro

    def _sample(self, row: int) -> MacroSample:
        arrays = self.data.macro
        state = [arrays[name][row].ravel() for name in ("x_static", "x_temporal", "x_role")]
        quantity, price = arrays["goal_q"][row], arrays["goal_p"][row]
        goal = np.stack([quantity[0], price[0], quantity[1], price[1]])
        lines, trading_price = arrays["lines"][row], arrays["price"][row]
        scale = np.array([lines, trading_price[0], lines, trading_price[1]], np.float32)
        return MacroSample(int(arrays["day"][row]), np.concatenate(state), goal, scale)


class MicroDataset(_RowSequence[MicroSample]):
    """The actions of a dataset."""

    @property
    def _part(self) -> Part:
        return self.data.micro

    def _sample(self, row: int) -> MicroSample:
        arrays = self.data.micro
        history = arrays["history"][row][arrays["history_mask"][row]]
        context = np.concatenate([arrays[name][row] for name in ("x_thread", "ranges", "x_partner")])
        name = f"w{arrays['world'][row]}n{arrays['thread'][row]}"
        day, side = int(arrays["day_row"][row]), int(arrays["side"][row])
        lines, trading_price = self.data.macro["lines"][day], self.data.macro["price"][day, side]
        scale = np.array([lines, max(1, self.data.league_horizon), trading_price], np.float32)
        action, baseline = _act(arrays, row, "op", "offer"), _act(arrays, row, "baseline_op", "baseline")
        return MicroSample(name, history, action, baseline, context, scale)


def _act(arrays: Part, row: int, op: str, offer: str) -> Ints32:
    return np.concatenate([[arrays[op][row]], arrays[offer][row]]).astype(np.int32)


def load_tournament_data(
    data_dir: str | Path | Sequence[str | Path],
    agent_name: str = DEFAULT_AGENT,
    num_workers: int | None = None,
    *,
    top: int | None = None,
    min_score: float | None = None,
    labels: Labels = "intention",
    decisions: Decisions = "taken",
    horizon: int | None = None,
    split_seed: int = 0,
    ratios: tuple[float, float, float] = DEFAULT_RATIOS,
    cache_dir: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[MacroDataset, MicroDataset]:
    """Turn all records under a folder into samples for L2 and L3; a second call opens the same dataset.

    Args:
        data_dir: A tournament's folder, one that holds several at any depth, or a sequence of such.
        agent_name: Prefix of the agents' class names; "" selects every factory.
        num_workers: Worlds to parse at once; default: as many as there are CPUs.
        top: Only the best agents of each tournament, this many.
        min_score: Only factories that ended with at least this score.
        labels: L2's goals from intentions or from deals; see `extraction.labels`.
        decisions: L3's labels: the decisions that were taken, or those of a teacher in the recorded reasons.
        horizon: Delivery days that the arrays hold; those beyond the league's are masked, with a warning.
        split_seed: Seed of the split by configurations.
        ratios: Shares of configurations in train, val and test.
        cache_dir: Folder of the dataset; default: ``datasets/DIGEST`` in the data folder.
        on_progress: Called with each progress message; default: no messages.

    Raises:
        UserFacingError: If the records are missing or damaged, or no factory matches; see `build.build_dataset`.
    """
    options = DatasetOptions(
        agent_name=agent_name,
        top=top,
        min_score=min_score,
        labels=labels,
        decisions=decisions,
        horizon=horizon,
        split_seed=split_seed,
        ratios=ratios,
    )
    data = build_dataset(data_dir, cache_dir, options, num_workers=num_workers, on_progress=on_progress)
    if not len(data.macro):
        raise BadSampleError(
            f"the dataset {str(data.folder)!r} has no day on which its agents had a partner to trade with",
            "a sample needs a side that is negotiable",
            "collect worlds in which partners survive, or select another agent",
        )
    return MacroDataset(data), MicroDataset(data)

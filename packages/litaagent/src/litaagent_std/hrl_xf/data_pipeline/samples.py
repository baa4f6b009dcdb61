"""Samples one by one, over a dataset on disk: documents 000 and 001's view of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np

from litaagent_std.hrl_xf.data_pipeline.build import Say, build_dataset
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError
from litaagent_std.hrl_xf.data_pipeline.options import (
    DEFAULT_AGENT,
    DEFAULT_RATIOS,
    DatasetOptions,
    Labels,
    Split,
)
from litaagent_std.policy.arrays import Floats32, Ints, Ints32

__all__ = ["MacroDataset", "MacroSample", "MicroDataset", "MicroSample", "load_tournament_data"]


def _no_context() -> Floats32:
    return np.zeros(0, np.float32)


def _ones(n: int) -> Floats32:
    return np.ones(n, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class MacroSample:
    """A factory's morning and the goal that its day showed.

    Attributes:
        day: The day.
        state_macro: Features of the morning, [n].
        goal: Q_buy, P_buy, Q_sell and P_sell by delivery bucket, [4, buckets]; prices are 0 where the quantity is.
        scale: What makes each row of the goal free of units: lines, input's price, lines, output's price; [4].
    """

    day: int
    state_macro: Floats32
    goal: Floats32
    scale: Floats32 = field(default_factory=lambda: _ones(4))


@dataclass(frozen=True, slots=True, eq=False)
class MicroSample:
    """One action of a negotiation, with what came before it.

    Attributes:
        negotiation_id: Names the negotiation; all its actions share it.
        history: Offers strictly before the action, oldest first, [n_offers, n_history].
        action: Operation (0 accept, 1 reject, 2 end), quantity, lead and unit price of the counter-offer; -1 without.
        baseline: The same of L1's baseline in that situation; its counter-offer stands there always.
        context: Features of the situation beside its history, [n].
        scale: What makes quantity, lead and price free of units, [3].
    """

    negotiation_id: str
    history: Floats32
    action: Ints32
    baseline: Ints32
    context: Floats32 = field(default_factory=_no_context)
    scale: Floats32 = field(default_factory=lambda: _ones(3))

    @property
    def residual(self) -> Ints32 | None:
        """Quantity, lead and price of the counter-offer less the baseline's; None without a counter-offer."""
        if self.action[0] != 1:
            return None
        return np.asarray(self.action[1:] - self.baseline[1:], np.int32)


class MacroDataset(Sequence[MacroSample]):
    """The mornings of a dataset.

    Args:
        data: The dataset.
        rows: Which rows; all when None.

    Attributes:
        data: The dataset.
    """

    def __init__(self, data: OfflineData, rows: Ints | None = None) -> None:
        self.data = data
        self._rows = rows

    def of(self, split: Split) -> MacroDataset:
        """Return the mornings of a split."""
        return MacroDataset(self.data, self.data.macro.rows(split))

    @property
    def rows(self) -> Ints:
        """Numbers of the rows in the dataset's arrays."""
        return np.arange(len(self), dtype=np.int64) if self._rows is None else self._rows

    def __len__(self) -> int:
        return len(self.data.macro) if self._rows is None else len(self._rows)

    @overload
    def __getitem__(self, index: int) -> MacroSample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MacroSample]: ...
    def __getitem__(self, index: int | slice) -> MacroSample | Sequence[MacroSample]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        arrays, row = self.data.macro, _row(index, len(self), self._rows)
        state = [arrays[name][row].ravel() for name in ("x_static", "x_temporal", "x_role")]
        quantity, price = arrays["goal_q"][row], arrays["goal_p"][row]
        goal = np.stack([quantity[0], price[0], quantity[1], price[1]])
        lines, usual = arrays["lines"][row], arrays["price"][row]
        scale = np.array([lines, usual[0], lines, usual[1]], np.float32)
        return MacroSample(int(arrays["day"][row]), np.concatenate(state), goal, scale)

    def __iter__(self) -> Iterator[MacroSample]:
        return (self[index] for index in range(len(self)))


class MicroDataset(Sequence[MicroSample]):
    """The actions of a dataset; arguments and attributes as in `MacroDataset`."""

    def __init__(self, data: OfflineData, rows: Ints | None = None) -> None:
        self.data = data
        self._rows = rows

    def of(self, split: Split) -> MicroDataset:
        """Return the actions of a split."""
        return MicroDataset(self.data, self.data.micro.rows(split))

    @property
    def rows(self) -> Ints:
        """Numbers of the rows in the dataset's arrays."""
        return np.arange(len(self), dtype=np.int64) if self._rows is None else self._rows

    def __len__(self) -> int:
        return len(self.data.micro) if self._rows is None else len(self._rows)

    @overload
    def __getitem__(self, index: int) -> MicroSample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MicroSample]: ...
    def __getitem__(self, index: int | slice) -> MicroSample | Sequence[MicroSample]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        arrays, row = self.data.micro, _row(index, len(self), self._rows)
        history = arrays["history"][row][arrays["history_mask"][row]]
        context = np.concatenate([arrays[name][row] for name in ("x_thread", "ranges", "x_partner")])
        name = f"w{arrays['world'][row]}n{arrays['thread'][row]}"
        day, side = int(arrays["day_row"][row]), int(arrays["side"][row])
        lines, usual = self.data.macro["lines"][day], self.data.macro["price"][day, side]
        scale = np.array([lines, max(1, self.data.league_horizon), usual], np.float32)
        action, baseline = _act(arrays, row, "op", "offer"), _act(arrays, row, "baseline_op", "baseline")
        return MicroSample(name, history, action, baseline, context, scale)

    def __iter__(self) -> Iterator[MicroSample]:
        return (self[index] for index in range(len(self)))


def _row(index: int, length: int, rows: Ints | None) -> int:
    if not -length <= index < length:
        raise IndexError(f"sample {index} of {length}")
    place = index % length
    return place if rows is None else int(rows[place])


def _act(arrays: Any, row: int, op: str, offer: str) -> Ints32:  # noqa: ANN401 - a part of the dataset
    return np.concatenate([[arrays[op][row]], arrays[offer][row]]).astype(np.int32)


def load_tournament_data(
    data_dir: str | Path | Sequence[str | Path],
    agent_name: str = DEFAULT_AGENT,
    num_workers: int | None = None,
    *,
    top: int | None = None,
    min_score: float | None = None,
    labels: Labels = "intention",
    horizon: int | None = None,
    split_seed: int = 0,
    ratios: tuple[float, float, float] = DEFAULT_RATIOS,
    cache_dir: str | Path | None = None,
    say: Say | None = None,
) -> tuple[MacroDataset, MicroDataset]:
    """Turn all records under a folder into samples for L2 and L3; a second call opens what the first one made.

    Args:
        data_dir: A tournament's folder, one that holds several at any depth, or a sequence of such.
        agent_name: Whose samples: class names begin with it. "" takes every factory.
        num_workers: Worlds to parse at once; as many as there are CPUs when None.
        top: Only the best so many agents of each tournament.
        min_score: Only factories that ended with at least this score.
        labels: L2's goals from intentions or from deals; see `labels`.
        horizon: Delivery days to make room for; larger than the league's is masked, with a warning.
        split_seed: Seed of the split by configurations.
        ratios: Shares of configurations in train, val and test.
        cache_dir: Where the dataset goes; ``datasets/DIGEST`` in the data folder when None.
        say: Is told about progress.

    Raises:
        UserFacingError: If the records are missing or damaged, or nobody fits; see `build.build_dataset`.
    """
    options = DatasetOptions(
        agent_name=agent_name,
        top=top,
        min_score=min_score,
        labels=labels,
        horizon=horizon,
        split_seed=split_seed,
        ratios=ratios,
    )
    data = build_dataset(data_dir, cache_dir, options, num_workers=num_workers, say=say)
    if not len(data.macro):
        raise BadSampleError(
            f"the dataset {str(data.folder)!r} has no morning on which its agents had anybody to trade with",
            "a sample needs a side that is negotiable",
            "collect worlds in which partners survive, or choose another agent",
        )
    return MacroDataset(data), MicroDataset(data)

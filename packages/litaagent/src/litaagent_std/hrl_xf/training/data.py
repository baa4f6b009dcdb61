"""Batches from a dataset's arrays, in an order determined by the seed.

Arrays may be memory-mapped and larger than memory; a batch reads its own rows. The order of an epoch depends on seed,
phase and epoch alone, and batches do not depend on the process that prepares them, so a resumed run does exactly what
an uninterrupted one would have done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from apexrl.runs.errors import UserFacingError
from litaagent_std.hrl_xf.data_pipeline.errors import EmptySplitError
from litaagent_std.hrl_xf.data_pipeline.options import Split
from litaagent_std.hrl_xf.l2_manager import DayBatch
from litaagent_std.hrl_xf.l3_executor import ThreadBatch
from litaagent_std.policy.arrays import Array, Ints
from litaagent_std.policy.buckets import n_buckets
from litaagent_std.policy.networks.inputs import baseline_inputs, goal_inputs, offer_inputs

__all__ = [
    "Batches",
    "DataError",
    "GoalHat",
    "MacroBatch",
    "MacroRows",
    "MicroBatch",
    "MicroRows",
    "Split",
    "Table",
    "TrainingData",
    "batch_order",
    "rows_of",
]

_DAY = ("x_static", "x_temporal", "x_role", "mask", "lines", "price", "base")
_THREAD = ("history", "history_mask", "ranges", "x_thread", "x_partner")
_ACTION = ("op", "offer", "issue_low", "issue_high", "taken", "side", "base_op", "base_offer", "received")


class DataError(UserFacingError):
    """A dataset cannot be trained on."""


class Table(Protocol):
    """Arrays of the same length by name, and the rows of each split."""

    def __getitem__(self, name: str) -> Array: ...

    def rows(self, split: Split) -> Ints:
        """Return the row numbers of a split."""


class TrainingData(Protocol):
    """What training needs of a dataset; `data_pipeline.dataset.OfflineData` implements it."""

    @property
    def macro(self) -> Table:
        """A row per day of a factory."""

    @property
    def micro(self) -> Table:
        """A row per decision."""

    @property
    def horizon(self) -> int:
        """Delivery days after today that the arrays hold."""

    @property
    def league_horizon(self) -> int:
        """The league's horizon, which defines buckets and scales."""

    @property
    def digest(self) -> str:
        """Digest of everything that the dataset depends on."""

    @property
    def features_digest(self) -> str:
        """Digest of the features."""

    @property
    def l1_digest(self) -> str:
        """Digest of the L1 that computed the baselines."""


@dataclass(frozen=True)
class GoalHat:
    """Backfilled goals of every day, each ``[N, 2, B]`` in raw units."""

    quantity: Array
    price: Array


@dataclass(frozen=True)
class MacroBatch:
    """Days, their recorded goals ``[N, 2, B]`` and normalised returns ``[N]``."""

    day: DayBatch
    goal_q: Tensor
    goal_p: Tensor
    goal_p_mask: Tensor
    returns: Tensor


@dataclass(frozen=True)
class MicroBatch:
    """Decisions: the thread before each, the action, and its outcome.

    Attributes:
        rows: Row numbers ``[M]``.
        thread: Inputs.
        op: Operation ``[M]``.
        offer: Counter-offer (quantity, lead, unit price) ``[M, 3]``; valid where ``op == 1``.
        offer_inputs: The same without units ``[M, 4]``.
        low: Least legal values ``[M, 3]``.
        high: Greatest legal values ``[M, 3]``.
        taken: Whether the partner accepted the counter-offer ``[M]``; −1 where that is unknown.
        weight: Weight of each decision in the loss ``[M]``.
    """

    rows: Tensor
    thread: ThreadBatch
    op: Tensor
    offer: Tensor
    offer_inputs: Tensor
    low: Tensor
    high: Tensor
    taken: Tensor
    weight: Tensor


def rows_of(table: Table, split: Split) -> Ints:
    """Return the rows of a split; an empty array if validation or test has none.

    Raises:
        EmptySplitError: If there is nothing to train on.
    """
    try:
        return table.rows(split)
    except EmptySplitError:
        if split == "train":
            raise
        return np.zeros(0, np.int64)


def _take(table: Table | Mapping[str, Array], names: tuple[str, ...], rows: Ints) -> dict[str, Array]:
    return {name: np.asarray(table[name][rows]) for name in names}


def _tensors(arrays: Mapping[str, Array]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


class MacroRows(Dataset[dict[str, Tensor]]):
    """Days by row numbers.

    Args:
        data: The dataset.
    """

    def __init__(self, data: TrainingData) -> None:
        self._macro = data.macro

    def __getitem__(self, rows: Ints) -> dict[str, Tensor]:
        return _tensors(_take(self._macro, (*_DAY, "goal_q", "goal_p", "goal_p_mask", "return_norm"), np.sort(rows)))

    @staticmethod
    def batch(t: Mapping[str, Tensor]) -> MacroBatch:
        """Return the tensors of a batch as its dataclass."""
        return MacroBatch(_day(t), t["goal_q"], t["goal_p"], t["goal_p_mask"], t["return_norm"])


class MicroRows(Dataset[dict[str, Tensor]]):
    """Decisions by row numbers, with their days and the goals of L2.

    Args:
        data: The dataset.
        goal_hat: Goals of all days; default: zeros, for networks that do not read them.
        weights: Weight of each decision; default: ones.
        pre_tensorize: Copy the arrays into memory now.
        workers: Threads that copy them.
    """

    def __init__(
        self,
        data: TrainingData,
        goal_hat: GoalHat | None = None,
        *,
        weights: Array | None = None,
        pre_tensorize: bool = False,
        workers: int = 1,
    ) -> None:
        self._macro: Table | Mapping[str, Array] = data.macro
        self._micro: Table | Mapping[str, Array] = data.micro
        self._goal_hat, self._weights, self._horizon = goal_hat, weights, data.league_horizon
        self._n_buckets = n_buckets(data.league_horizon)
        if pre_tensorize:
            with ThreadPoolExecutor(workers) as pool:
                names = (*_THREAD, *_ACTION, "day_row")
                self._micro = dict(zip(names, pool.map(lambda name: np.array(data.micro[name]), names), strict=True))
                self._macro = dict(zip(_DAY, pool.map(lambda name: np.array(data.macro[name]), _DAY), strict=True))

    def __getitem__(self, rows: Ints) -> dict[str, Tensor]:
        rows = np.sort(rows)
        a = _take(self._micro, (*_THREAD, *_ACTION, "day_row"), rows)
        a |= _take(self._macro, _DAY, a["day_row"])  # the day of each decision
        longest = max(1, int(a["history_mask"].sum(1).max(initial=0)))  # padding is at the end
        a["history"], a["history_mask"] = a["history"][:, :longest], a["history_mask"][:, :longest]
        a["goal"] = self._goal(a)  # [M, 4·B]
        a["decision"] = baseline_inputs(
            a["base_op"], a["base_offer"], a["issue_low"], a["issue_high"], a["lines"], self._horizon
        )
        a["log_alpha"] = np.zeros(len(rows), np.float32)  # a record has no L4: its threads are neutral
        trading_price = a["price"][np.arange(len(rows)), a["side"].astype(np.int64)]  # [M]
        a["offer_inputs"] = offer_inputs(
            a["offer"], a["issue_low"], a["issue_high"], a["lines"], trading_price, a["side"], self._horizon
        )
        a["weight"] = np.ones(len(rows), np.float32) if self._weights is None else self._weights[rows]
        return _tensors(a) | {"rows": torch.from_numpy(rows)}

    def _goal(self, a: Mapping[str, Array]) -> Array:
        if self._goal_hat is None:
            return np.zeros((len(a["day_row"]), 4 * self._n_buckets), np.float32)
        quantity, price = self._goal_hat.quantity[a["day_row"]], self._goal_hat.price[a["day_row"]]
        return goal_inputs(quantity, price, a["lines"], a["price"])

    @staticmethod
    def batch(t: Mapping[str, Tensor]) -> MicroBatch:
        """Return the tensors of a batch as its dataclass."""
        names = ("history", "history_mask", "ranges", "x_thread", "x_partner", "goal", "decision", "log_alpha")
        thread = ThreadBatch(_day(t), *(t[name] for name in names))
        op, offer, low, high, taken = (t[name].long() for name in ("op", "offer", "issue_low", "issue_high", "taken"))
        weight = t["weight"].float()
        return MicroBatch(t["rows"], thread, op, offer, t["offer_inputs"], low, high, taken, weight)


def _day(t: Mapping[str, Tensor]) -> DayBatch:
    return DayBatch(*(t[name] for name in _DAY))


def batch_order(rows: Ints, size: int, seed: int, phase: str, epoch: int | None) -> list[Ints]:
    """Return the rows of each batch of an epoch.

    Args:
        rows: The rows of the epoch.
        size: Maximal rows of a batch.
        seed: Seed of the run.
        phase: Name of the phase.
        epoch: Number of the epoch; None keeps the rows in order, for evaluation.
    """
    if epoch is not None:
        text = f"{seed} {phase} {epoch}".encode()
        generator = np.random.default_rng(int.from_bytes(hashlib.sha256(text).digest()[:8], "little"))
        rows = generator.permutation(rows)
    return [rows[start : start + size] for start in range(0, len(rows), size)]


class _EpochOrder(Sampler[Ints]):
    def __init__(self) -> None:
        self.batches: list[Ints] = []

    def __iter__(self) -> Iterator[Ints]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


class Batches:
    """Loader of batches, in the main process or in worker processes.

    Args:
        dataset: `MacroRows` or `MicroRows`.
        workers: Worker processes; 0 uses the main process.
        pin_memory: Keep prepared batches in page-locked memory.
        persistent_workers: Keep the processes from epoch to epoch.
        prefetch_factor: Batches that each process prepares in advance.
    """

    def __init__(
        self,
        dataset: Dataset[dict[str, Tensor]],
        *,
        workers: int = 0,
        pin_memory: bool = False,
        persistent_workers: bool = False,
        prefetch_factor: int = 2,
    ) -> None:
        self._order = _EpochOrder()
        self._loader = DataLoader(
            dataset,
            sampler=self._order,
            batch_size=None,
            num_workers=workers,
            pin_memory=pin_memory,
            persistent_workers=persistent_workers and workers > 0,
            prefetch_factor=prefetch_factor if workers else None,
        )

    def __call__(self, batches: list[Ints], device: torch.device) -> Iterator[dict[str, Tensor]]:
        """Yield the batches of these rows, on a device."""
        self._order.batches = batches
        for batch in self._loader:
            yield {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}

"""The loop of a phase: epochs, checkpoints, validation, early stopping, exact resume.

Files of a phase called ``l2_bc`` in its folder::

    l2_bc_epoch3.pt        weights after epoch 3
    l2_bc_epoch3.ckpt.pt   checkpoint: everything that epoch 4 needs
    l2_bc.pt               weights of the epoch with the best validation loss, when the phase is done
    metrics/l2_bc/         metrics.jsonl, timings.jsonl: a line for each epoch

All of them load with ``torch.load(…, weights_only=True)``.
"""

from __future__ import annotations

import copy
import io
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from apexrl.runs.atomic import write_bytes
from apexrl.runs.checkpoints.checkpoint import Checkpoint, CheckpointStore, Retention, Schema, load_checkpoint
from apexrl.runs.errors import SchemaMismatchError
from apexrl.runs.metrics.jsonl import JsonlSink
from apexrl.runs.signals import StopRequest
from litaagent_std.hrl_xf.training.data import DataError, batch_order
from litaagent_std.policy.arrays import Ints

__all__ = ["Interrupted", "Losses", "PhaseResult", "PhaseSpec", "load_state", "run_phase", "save_weights"]

logger = logging.getLogger(__name__)

Losses = Callable[[Mapping[str, Tensor]], tuple[Tensor, dict[str, Tensor]]]
"""Maps the tensors of a batch to the loss and its parts."""
Loader = Callable[[list[Ints], torch.device], Iterator[dict[str, Tensor]]]
_SCHEMA_VERSION = 1


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """A signal asked to stop; the same command resumes."""


@dataclass(frozen=True, kw_only=True)
class PhaseSpec:
    """Specification of a phase: network, loss, data, options.

    Attributes:
        name: Prefix of its files.
        folder: Folder of its files.
        model: The network.
        losses: The loss of a batch.
        loader: Prepares batches.
        rows: Rows to train on.
        val_rows: Rows to validate on; may be empty.
        epochs: Epochs in total.
        batch_size: Rows of a step.
        lr: Learning rate of each epoch, counted from 1.
        line: Log line of an epoch, from the mean parts of the loss.
        seed: Seed of the batch order.
        device: Device of training.
        weight_decay: Of AdamW.
        max_grad_norm: Maximal norm of the gradient.
        save_every: Epochs between checkpoints.
        patience: Epochs without a better validation loss before it stops; 0 never stops early.
        batch_log_every: Batches between log lines; 0 for none.
        resume_path: Checkpoint to resume from; default: the newest.
        config: Stored in every checkpoint.
        meta: Stored in every weights file beside the arrays.
        companions: Networks that are trained with it (a critic) and saved in checkpoints only.
        label: Prefix of its log lines.
        stop: Set by a signal.
    """

    name: str
    folder: Path
    model: nn.Module
    losses: Losses
    loader: Loader
    rows: Ints
    val_rows: Ints
    epochs: int
    batch_size: int
    lr: Callable[[int], float]
    line: Callable[[Mapping[str, float]], str]
    seed: int
    device: torch.device
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    save_every: int = 1
    patience: int = 0
    batch_log_every: int = 0
    resume_path: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    companions: Mapping[str, nn.Module] = field(default_factory=dict)
    label: str = ""
    stop: StopRequest | None = None


@dataclass(frozen=True)
class PhaseResult:
    """Result of a phase.

    Attributes:
        epochs: Epochs done in all.
        best_epoch: The epoch whose weights the model holds now.
        losses: Parts of the last epoch, ``train/…`` and ``val/…``.
        stopped_early: Whether validation ended it.
        rows_per_second: Rows per CPU second of this process, independent of other load on the machine; 0 if nothing
            was left to do.
    """

    epochs: int
    best_epoch: int
    losses: dict[str, float]
    stopped_early: bool
    rows_per_second: float


class _Progress:
    """What changes from epoch to epoch."""

    def __init__(self, spec: PhaseSpec) -> None:
        self.modules = {"model": spec.model, **spec.companions}
        parameters = [p for module in self.modules.values() for p in module.parameters()]
        self.optimizer = torch.optim.AdamW(parameters, lr=spec.lr(1), weight_decay=spec.weight_decay)
        self.epoch, self.best_epoch, self.best_loss = 0, 0, float("inf")
        self.best: dict[str, Tensor] = _copied(spec.model)
        self.losses: dict[str, float] = {}

    def state(self) -> dict[str, Any]:
        return {
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best_loss": self.best_loss,
            "best": self.best,
            "losses": self.losses,
        }

    def load(self, state: Mapping[str, Any], source: str) -> None:
        try:
            for name, module in self.modules.items():
                module.load_state_dict(state["modules"][name])
            self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        except (RuntimeError, ValueError, KeyError) as error:
            raise SchemaMismatchError(
                f"checkpoint {source} does not fit the networks: {error}",
                "sizes must be those that were saved",
                "train with the same options, or choose another folder",
            ) from error
        self.epoch, self.best_epoch, self.best_loss = state["epoch"], state["best_epoch"], state["best_loss"]
        self.best, self.losses = dict(state["best"]), dict(state["losses"])

    def update_best(self, loss: float, model: nn.Module) -> None:
        if loss < self.best_loss:
            self.best_loss, self.best_epoch, self.best = loss, self.epoch, _copied(model)


def _copied(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}


def run_phase(spec: PhaseSpec) -> PhaseResult:
    """Train a phase to its end, resuming from its newest checkpoint; the model then holds the best epoch's weights.

    Raises:
        Interrupted: If a signal asked to stop.
    """
    for module in (spec.model, *spec.companions.values()):
        module.to(spec.device)
    store = CheckpointStore(
        spec.folder,
        Schema(name=f"litaagent.{spec.name}", version=_SCHEMA_VERSION),
        pattern=f"{spec.name}_epoch{{step}}.ckpt.pt",
        config=dict(spec.config),
        retention=Retention(keep_last=None),
    )
    progress = _Progress(spec)
    checkpoint = _checkpoint(spec, store)
    if checkpoint is not None:
        progress.load(checkpoint.state, f"{spec.name} epoch {checkpoint.step}")
        logger.info("%s: resuming from epoch %d", spec.name, progress.epoch)
    sink = JsonlSink(spec.folder / "metrics" / spec.name / "metrics.jsonl", progress.epoch if progress.epoch else None)
    seen, seconds = 0, 0.0
    try:
        while progress.epoch < spec.epochs and not _stops_early(spec, progress):
            began = time.process_time()
            _epoch(spec, progress)
            seconds, seen = seconds + time.process_time() - began, seen + len(spec.rows)
            _report(spec, progress, sink, time.process_time() - began)
            if progress.epoch % spec.save_every == 0 or progress.epoch == spec.epochs or _stops_early(spec, progress):
                sink.flush()
                save_weights(spec.folder / f"{spec.name}_epoch{progress.epoch}.pt", spec.model, spec.meta)
                store.save(progress.epoch, progress.state(), metrics=progress.losses)
    finally:
        sink.close()
    # The phase ends with the weights of the best epoch.
    spec.model.load_state_dict(progress.best)
    save_weights(spec.folder / f"{spec.name}.pt", spec.model, spec.meta)
    early = progress.epoch < spec.epochs
    return PhaseResult(progress.epoch, progress.best_epoch, progress.losses, early, seen / seconds if seconds else 0.0)


def _checkpoint(spec: PhaseSpec, store: CheckpointStore) -> Checkpoint | None:
    """Return the checkpoint to resume from: the given one, or the newest."""
    if spec.resume_path is None:
        return store.resume()
    checkpoint = load_checkpoint(spec.resume_path, store.schema)
    store.rewind(checkpoint.step)
    return checkpoint


def _stops_early(spec: PhaseSpec, progress: _Progress) -> bool:
    return bool(spec.patience and progress.epoch - progress.best_epoch >= spec.patience)


def _epoch(spec: PhaseSpec, progress: _Progress) -> None:
    number = progress.epoch + 1
    for group in progress.optimizer.param_groups:
        group["lr"] = spec.lr(number)
    batches = batch_order(spec.rows, spec.batch_size, spec.seed, spec.name, number)
    sums = _Sums()
    parameters = [p for group in progress.optimizer.param_groups for p in group["params"]]
    # One step per batch: loss, gradient, clipping, AdamW.
    for index, tensors in enumerate(spec.loader(batches, spec.device)):
        if spec.stop is not None and spec.stop.requested:
            raise Interrupted(f"{spec.name}: stopped in epoch {number}; run the same command again to resume")
        loss, parts = spec.losses(tensors)
        if not torch.isfinite(loss):
            raise _not_finite(spec.name, number, batches[index], parts)
        progress.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own annotation is missing
        torch.nn.utils.clip_grad_norm_(parameters, spec.max_grad_norm)
        progress.optimizer.step()
        sums.add({"loss": loss} | parts, len(batches[index]))
        if spec.batch_log_every and (index + 1) % spec.batch_log_every == 0:
            logger.info("%s epoch %d batch %d/%d | Loss %.4f", spec.name, number, index + 1, len(batches), loss.item())
    # Mean losses of the epoch, validation, best weights so far.
    progress.epoch = number
    progress.losses = {f"train/{name}": value for name, value in sums.means().items()}
    if len(spec.val_rows):
        progress.losses |= {f"val/{name}": value for name, value in measure(spec, spec.val_rows).items()}
    progress.update_best(progress.losses.get("val/loss", progress.losses["train/loss"]), spec.model)


def _not_finite(phase: str, epoch: int, rows: Ints, parts: Mapping[str, Tensor]) -> DataError:
    bad = [name for name, value in parts.items() if not torch.isfinite(value)] or ["loss"]
    return DataError(
        f"{phase}: {', '.join(bad)} of rows {int(rows.min())} to {int(rows.max())} is not finite in epoch {epoch}",
        "features, goals and returns are finite numbers, and so are losses",
        "check these rows of the dataset (build it again if they hold NaN), or lower the learning rate",
    )


class _Sums:
    """Running means of the parts of the loss, weighted by rows."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._rows = 0

    def add(self, parts: Mapping[str, Tensor], rows: int) -> None:
        for name, value in parts.items():
            total = self._sums.get(name)
            part = value.detach().double() * rows
            self._sums[name] = part if total is None else total + part
        self._rows += rows

    def means(self) -> dict[str, float]:
        return {name: float(value) / max(1, self._rows) for name, value in self._sums.items()}


@torch.no_grad()
def measure(spec: PhaseSpec, rows: Ints) -> dict[str, float]:
    """Return the mean losses of rows, without training."""
    batches = batch_order(rows, 4 * spec.batch_size, spec.seed, spec.name, None)
    sums = _Sums()
    for index, tensors in enumerate(spec.loader(batches, spec.device)):
        loss, parts = spec.losses(tensors)
        sums.add({"loss": loss} | parts, len(batches[index]))
    return sums.means()


def _report(spec: PhaseSpec, progress: _Progress, sink: JsonlSink, seconds: float) -> None:
    train = {name.removeprefix("train/"): v for name, v in progress.losses.items() if name.startswith("train/")}
    logger.info("%sEpoch %d/%d | %s", spec.label, progress.epoch, spec.epochs, spec.line(train))
    speed = len(spec.rows) / max(seconds, 1e-9)
    sink.write(progress.epoch, {**progress.losses, "lr": spec.lr(progress.epoch), "time/rows_per_cpu_second": speed})


def save_weights(path: Path, model: nn.Module, meta: Mapping[str, Any]) -> None:
    """Write a network's arrays and their metadata atomically."""
    buffer = io.BytesIO()
    torch.save({"meta": dict(meta), "model": _copied(model)}, buffer)
    write_bytes(path, buffer.getvalue())


def load_state(path: Path, model: nn.Module) -> dict[str, Any]:
    """Read what `save_weights` wrote into a network.

    Returns:
        The metadata of the weights.

    Raises:
        SchemaMismatchError: If the sizes differ.
    """
    content = torch.load(path, map_location="cpu", weights_only=True)
    try:
        model.load_state_dict(content["model"])
    except (RuntimeError, KeyError) as error:
        raise SchemaMismatchError(
            f"weights {str(path)!r} do not fit the network: {error}",
            "sizes must be those that were saved",
            "build the network with the sizes in the file's meta, or train again",
        ) from error
    meta: dict[str, Any] = content["meta"]
    return meta

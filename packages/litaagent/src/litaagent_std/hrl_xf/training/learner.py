"""A phase of supervised training as a learner of the run loop: an iteration is an epoch.

Files of a phase called ``l2_bc`` in its folder::

    l2_bc_epoch3.pt        weights after epoch 3
    l2_bc_epoch3.ckpt.pt   checkpoint: everything that epoch 4 needs
    l2_bc.pt               weights of the epoch with the best validation loss, when the phase is done
    metrics/l2_bc/         metrics.jsonl, timings.jsonl: a line for each epoch

All of them load with ``torch.load(…, weights_only=True)``.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from apexrl.agent.learner import IterationAbandoned
from apexrl.agent.runner import Runner
from apexrl.runs.checkpoints.tensors import read_tensors, save_tensors
from apexrl.runs.errors import CheckpointDamagedError, DivergedError, SchemaMismatchError
from apexrl.runs.session import Files, Session
from litaagent_std.hrl_xf.epochs import EpochLearner, copy_weights, epoch_runner, run_epochs
from litaagent_std.hrl_xf.training.data import batch_order
from litaagent_std.policy.arrays import Ints

__all__ = [
    "Losses",
    "PhaseLearner",
    "PhaseResult",
    "PhaseSpec",
    "load_state",
    "measure",
    "phase_runner",
    "run_phase",
    "save_weights",
]

logger = logging.getLogger(__name__)

Losses = Callable[[Mapping[str, Tensor]], tuple[Tensor, dict[str, Tensor]]]
"""Maps the tensors of a batch to the loss and its parts."""
Loader = Callable[[list[Ints], torch.device], Iterator[dict[str, Tensor]]]


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
        meta: Stored in every weights file beside the arrays.
        companions: Networks that are trained with it (a critic) and saved in checkpoints only.
        label: Prefix of its log lines.
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
    meta: Mapping[str, Any] = field(default_factory=dict)
    companions: Mapping[str, nn.Module] = field(default_factory=dict)
    label: str = ""


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


class PhaseLearner(EpochLearner):
    """Learns one epoch of a phase per iteration; the best is the one with the smallest validation loss.

    Without rows to validate on, the training loss decides.

    Args:
        spec: The phase.

    Attributes:
        losses: Parts of the last epoch, ``train/…`` and ``val/…``.
        rows: Rows that this process has learned from.
        seconds: CPU seconds that it took.
    """

    def __init__(self, spec: PhaseSpec) -> None:
        self.name = f"litaagent.{spec.name}"
        self.files = Files(
            metrics=f"metrics/{spec.name}/metrics.jsonl",
            has_log=False,
            checkpoints=".",
            checkpoint=f"{spec.name}_epoch{{step}}.ckpt.pt",
        )
        super().__init__(spec.model, spec.patience, spec.seed)
        self.spec = spec
        self._modules = {"model": spec.model, **spec.companions}
        for module in self._modules.values():
            module.to(spec.device)
        parameters = [p for module in self._modules.values() for p in module.parameters()]
        self._optimizer = torch.optim.AdamW(parameters, lr=spec.lr(1), weight_decay=spec.weight_decay)
        self.losses: dict[str, float] = {}
        self.rows, self.seconds = 0, 0.0

    def update(self) -> dict[str, float]:
        """Learn one epoch, validate, and keep the weights if they are the best so far.

        Raises:
            IterationAbandoned: If a stop was requested.
            DivergedError: If a loss is not finite; it names the column and the row.
        """
        spec, number = self.spec, self.epoch + 1
        began = time.process_time()
        means = self._learn(number)
        self.losses = {f"train/{name}": value for name, value in means.items()}
        if len(spec.val_rows):
            self.losses |= {f"val/{name}": value for name, value in measure(spec, spec.val_rows).items()}
        self.end_epoch(self.losses.get("val/loss", self.losses["train/loss"]))
        seconds = time.process_time() - began
        self.rows, self.seconds = self.rows + len(spec.rows), self.seconds + seconds
        logger.info("%sEpoch %d/%d | %s", spec.label, number, spec.epochs, spec.line(means))
        speed = {"time/rows_per_cpu_second": len(spec.rows) / max(seconds, 1e-9)}
        return self.losses | {"lr": spec.lr(number)} | speed

    def _learn(self, number: int) -> dict[str, float]:
        """Learn from all batches of an epoch; return the mean losses."""
        spec, optimizer = self.spec, self._optimizer
        for group in optimizer.param_groups:
            group["lr"] = spec.lr(number)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        batches = batch_order(spec.rows, spec.batch_size, spec.seed, spec.name, number)
        sums = _Sums()
        # One step per batch: loss, gradient, clipping, AdamW.
        for index, tensors in enumerate(spec.loader(batches, spec.device)):
            if self.session is not None and self.session.should_stop:
                raise IterationAbandoned
            loss, parts = spec.losses(tensors)
            if not torch.isfinite(loss):
                raise _not_finite(spec, batches[index], parts)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own annotation is missing
            torch.nn.utils.clip_grad_norm_(parameters, spec.max_grad_norm)
            optimizer.step()
            sums.add({"loss": loss} | parts, len(batches[index]))
            if spec.batch_log_every and (index + 1) % spec.batch_log_every == 0:
                line = "%s epoch %d batch %d/%d | Loss %.4f"
                logger.info(line, spec.name, number, index + 1, len(batches), loss.item())
        return sums.means()

    def before_save(self, step: int) -> None:
        """Write the weights of the epoch."""
        save_weights(self.spec.folder / f"{self.spec.name}_epoch{step}.pt", self.spec.model, self.spec.meta)

    def state_dict(self) -> dict[str, Any]:
        """Return networks, optimiser, and the best epoch so far."""
        return super().state_dict() | {
            "modules": {name: module.state_dict() for name, module in self._modules.items()},
            "optimizer": self._optimizer.state_dict(),
            "losses": self.losses,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        for name, module in self._modules.items():
            module.load_state_dict(state["modules"][name])
        self._optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        self.losses = dict(state["losses"])
        super().load_state_dict(state)


def phase_runner(spec: PhaseSpec, session: Session | None = None) -> Runner:
    """Return the runner of a phase, in its folder; a session around it is of the whole run."""
    return epoch_runner(PhaseLearner(spec), spec.folder, spec.save_every, session)


def run_phase(spec: PhaseSpec, session: Session) -> PhaseResult:
    """Train a phase to its end, resuming from its newest checkpoint; the model then holds the best epoch's weights.

    Raises:
        Interrupted: If a stop was requested.
    """
    runner = phase_runner(spec, session)
    learner = runner.learner
    assert isinstance(learner, PhaseLearner)
    with torch.random.fork_rng(devices=[]):  # checkpoints hold its state, whichever phases this process trained before
        torch.manual_seed(spec.seed)
        run_epochs(runner, spec.epochs, spec.resume_path)
    save_weights(spec.folder / f"{spec.name}.pt", spec.model, spec.meta)
    speed = learner.rows / learner.seconds if learner.seconds else 0.0
    return PhaseResult(learner.epoch, learner.best_epoch, learner.losses, learner.epoch < spec.epochs, speed)


def _not_finite(spec: PhaseSpec, rows: Ints, parts: Mapping[str, Tensor]) -> DivergedError:
    """Return the error for a batch whose loss is not finite: the value that is to blame, or the parts of the loss."""
    alone = spec.loader([row[None] for row in rows], torch.device("cpu"))  # loaders may order the rows of a batch
    for row, tensors in zip(rows, alone, strict=True):
        bad = [name for name, x in tensors.items() if x.is_floating_point() and not bool(torch.isfinite(x).all())]
        if bad:
            return DivergedError(
                f"{spec.name}: {', '.join(bad)} of row {int(row)} of the dataset is NaN or infinite",
                "features, goals and returns are finite numbers",
                "build the dataset again, or leave out this row; the last checkpoint is sound",
            )
    bad = [name for name, value in parts.items() if not torch.isfinite(value)] or ["loss"]
    return DivergedError(
        f"{spec.name}: {', '.join(bad)} of rows {int(rows.min())} to {int(rows.max())} is NaN or infinite",
        "losses are finite numbers",
        "lower the learning rate; the last checkpoint is sound",
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
        if not torch.isfinite(loss):
            raise _not_finite(spec, batches[index], parts)
        sums.add({"loss": loss} | parts, len(batches[index]))
    return sums.means()


def save_weights(path: Path, model: nn.Module, meta: Mapping[str, Any]) -> None:
    """Write a network's arrays and their metadata atomically."""
    save_tensors(path, {"meta": dict(meta), "model": copy_weights(model)})


def load_state(path: Path, model: nn.Module) -> dict[str, Any]:
    """Read what `save_weights` wrote into a network.

    Returns:
        The metadata of the weights.

    Raises:
        CheckpointDamagedError: If the file is not what was written.
        SchemaMismatchError: If the sizes differ.
    """
    content = read_weights_file(path)
    meta: dict[str, Any] = content["meta"]
    held, needed = meta.get("kind"), getattr(model, "kind", None)
    if held != needed and held is not None and needed is not None:
        raise SchemaMismatchError(
            f"weights {str(path)!r} are of kind {held!r}", f"{needed!r} is needed here", "name another file"
        )
    try:
        model.load_state_dict(content["model"])
    except (RuntimeError, AttributeError, TypeError) as error:
        raise SchemaMismatchError(
            f"weights {str(path)!r} do not fit the network: {error}",
            "sizes must be those that were saved",
            "build the network with the sizes in the file's meta, or train again",
        ) from error
    return meta


def read_weights_file(path: Path) -> dict[str, Any]:
    """Read what `save_weights` wrote: ``meta`` and ``model``.

    Raises:
        CheckpointDamagedError: If there is no such file, or it is not what was written.
    """
    try:
        content = read_tensors(path)
    except FileNotFoundError as error:
        raise CheckpointDamagedError(f"there are no weights {str(path)!r}", "training writes them", "train") from error
    is_whole = isinstance(content, dict) and all(isinstance(content.get(part), dict) for part in ("meta", "model"))
    if not is_whole:
        raise CheckpointDamagedError(
            f"{str(path)!r} holds no weights", "weights have a meta and a model", "name another file"
        )
    return dict(content)

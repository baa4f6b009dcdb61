"""Regression of a smaller network on a teacher's outputs.

A student is the same network class with a smaller width. It starts as the heuristic and minimises the squared distance
of its outputs from the teacher's, each in units of what the teacher changes in the heuristic; the weights of the epoch
with the smallest error in the validation worlds are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from apexrl.agent.runner import Runner
from apexrl.collect.env_group import one_thread
from apexrl.runs.errors import DivergedError
from apexrl.runs.session import Files, Session
from litaagent_std.hrl_xf.epochs import EpochLearner, epoch_runner, run_epochs
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.online.config import Layer
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.hrl_xf.online.methods.networks import NETWORKS, OUTPUTS, Network, network_of, weights_of
from litaagent_std.policy.arrays import Floats32
from litaagent_std.policy.l2.residual import goal_names
from litaagent_std.policy.networks.weights import Weights
from litaagent_std.world.setup import HORIZON

__all__ = [
    "Pairs",
    "StudentLearner",
    "errors_of",
    "fit",
    "multiplications",
    "new_student",
    "output_names",
    "pairs_of",
    "student_runner",
]

_SAVE_EVERY: Final = 25
"""Epochs between two checkpoints of a fit."""
_MINIBATCH: Final = 256
_SMALLEST: Final = 1e-3
"""Smallest unit of an output's error: what the teacher changes less is not worth learning."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Inputs of a layer, and what the teacher and the heuristic say to them.

    Attributes:
        inputs: Flat observations [n, in].
        outputs: The teacher's outputs [n, out].
        heuristic: Those of a new network [n, out].
    """

    inputs: Tensor
    outputs: Tensor
    heuristic: Tensor

    def __post_init__(self) -> None:
        """Refuse samples with NaN or infinities."""
        self.check()

    def check(self) -> None:
        """Refuse samples with NaN or infinities.

        Raises:
            DivergedError: It names the sample.
        """
        for name, values in (("inputs", self.inputs), ("outputs", self.outputs)):
            sound = torch.isfinite(values).all(1)
            if not bool(sound.all()):
                raise DivergedError(
                    f"{name} of sample {int((~sound).nonzero()[0, 0])} are NaN or infinite",
                    "a student learns from finite numbers",
                    "check the teacher's weights",
                )

    def __len__(self) -> int:
        return len(self.inputs)


def _sizes(teacher: Weights, dim: int) -> dict[str, Any]:
    """Return the sizes of a student's network."""
    sizes = dict(teacher.meta["sizes"])
    smaller = {"dim": dim, "layers": 1, "ensemble": 1, "row_dim": min(dim, int(sizes.get("row_dim", dim)))}
    return sizes | {name: value for name, value in smaller.items() if name in sizes}


def new_student(teacher: Weights, dim: int, seed: int) -> Network:
    """Return a new network of the teacher's kind with another width: the heuristic, with the teacher's exploration."""
    horizon = {} if teacher.kind == "l4" else {"league_horizon": teacher.meta["horizon"]}
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        network: Network = NETWORKS[teacher.kind](**_sizes(teacher, dim), **horizon)  # type: ignore[index]  # a layer
    network.log_std.data = torch.from_numpy(np.array(teacher.arrays["log_std"]))
    network.log_std.requires_grad_(False)
    return network


@torch.no_grad()
def pairs_of(teacher: Weights, inputs: Floats32) -> Pairs:
    """Return inputs with the outputs of the teacher and of the heuristic."""
    flat = torch.from_numpy(inputs)
    networks = (network_of(teacher), new_student(teacher, 2, 0))
    outputs, heuristic = (_outputs(network, flat) for network in networks)
    return Pairs(flat, outputs, heuristic)


def _outputs(network: Network, flat: Tensor) -> Tensor:
    layer: Layer = network.kind  # type: ignore[assignment]  # one of the layers
    if not len(flat):
        return torch.zeros(0, len(output_names(network)))
    return OUTPUTS[layer](network, flat, HORIZON)


def output_names(network: Network) -> tuple[str, ...]:
    """Return the names of a network's outputs, in order."""
    if isinstance(network, HorizonManagerPPO):
        return goal_names(network.encoder.n_buckets)
    if isinstance(network, TemporalDecisionTransformer):
        leads = (f"lead_{lead}" for lead in range(network.horizon + 1))
        return ("accept", "reject", "end", *leads, "quantity", "price")
    return ("log_alpha",)


def multiplications(weights: Weights) -> int:
    """Return the number of weights of a network's matrices."""
    return sum(array.size for array in weights.arrays.values() if array.ndim == 2)


def fit(
    cfg: DistillConfig,
    teacher: Weights,
    train: Pairs,
    validation: Pairs,
    folder: Path | None = None,
    session: Session | None = None,
) -> tuple[Weights, dict[str, Any]]:
    """Fit the student of one layer; return it and the report of its fit.

    Args:
        cfg: Options of the distillation.
        teacher: The layer's weights.
        train: Samples to learn from.
        validation: Samples that choose the epoch.
        folder: Folder for metrics and checkpoints; None writes none.
        session: The session around it.

    Raises:
        ValueError: If there are no samples.
        Interrupted: If a stop was requested.
    """
    if not len(train) or not len(validation):
        raise ValueError(
            f"{len(train)} samples to learn from and {len(validation)} for validation: the worlds hold no decisions of "
            "this layer; give more or longer worlds"
        )
    with one_thread():
        student = StudentLearner(cfg, teacher, train, validation)
        run_epochs(student_runner(student, folder, session), cfg.epochs)
    report = {"epochs": student.epoch, "best_epoch": student.best_epoch, "validation_loss": student.best_loss}
    meta = {name: value for name, value in teacher.meta.items() if name not in ("sizes", "kind")}
    return weights_of(student.network, meta), report


class StudentLearner(EpochLearner):
    """Regression of a layer by a smaller network; the best epoch is that in the validation worlds.

    Args:
        cfg: Options of the distillation.
        teacher: The layer's weights.
        train: Samples to learn from.
        validation: Samples that choose the epoch.
    """

    name = "litaagent.student"
    files = Files(has_log=False, checkpoints=".")

    def __init__(self, cfg: DistillConfig, teacher: Weights, train: Pairs, validation: Pairs) -> None:
        self.network = new_student(teacher, cfg.dim, cfg.seed)
        self._train, self._validation = train, validation
        # [out] what the teacher changes in the heuristic, root mean square
        self._scale = (train.outputs - train.heuristic).square().mean(0).sqrt().clamp(min=_SMALLEST)
        learned = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        self._optimizer = torch.optim.Adam(learned, lr=cfg.learning_rate)
        super().__init__(self.network, cfg.patience, cfg.seed)

    def update(self) -> dict[str, float]:
        """Learn one epoch and validate."""
        self._train.check()
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        losses = []
        for rows in torch.split(torch.randperm(len(self._train), generator=generator), _MINIBATCH):
            loss = self._loss(self._train, rows)
            self._optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's
            self._optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            error = float(self._loss(self._validation, torch.arange(len(self._validation))))
        self.end_epoch(error)
        return {"train/loss": float(np.mean(losses)), "validation/loss": error}

    def _loss(self, pairs: Pairs, rows: Tensor) -> Tensor:
        gap = _outputs(self.network, pairs.inputs[rows]) - pairs.outputs[rows]
        return (gap / self._scale).square().mean()

    def state_dict(self) -> dict[str, Any]:
        """Return the student, its optimiser, and the best epoch so far."""
        own = {"model": self.network.state_dict(), "optimizer": self._optimizer.state_dict()}
        return super().state_dict() | own

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.network.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        super().load_state_dict(state)


def student_runner(learner: StudentLearner, folder: Path | None, session: Session | None = None) -> Runner:
    """Return the runner of a fit."""
    return epoch_runner(learner, folder, _SAVE_EVERY, session, keep_last=1)


@torch.no_grad()
def errors_of(student: Weights, pairs: Pairs, train: Pairs) -> dict[str, Any]:
    """Return root mean squared errors beside those of two trivial policies.

    Args:
        student: The student.
        pairs: Held-out samples.
        train: Samples that it learned from.

    Returns:
        Over all outputs and by output: ``student``, ``mean`` (always the teacher's mean change of the heuristic) and
        ``zero`` (the heuristic); ``explained`` is the share of the mean's squared error that the student removes, None
        if that error is 0.
    """
    mean = (train.outputs - train.heuristic).mean(0)
    network = network_of(student)
    gaps = {
        "student": _outputs(network, pairs.inputs) - pairs.outputs,
        "mean": pairs.heuristic + mean - pairs.outputs,
        "zero": pairs.heuristic - pairs.outputs,
    }
    squares = {name: gap.double().square() for name, gap in gaps.items()}
    whole = {name: float(square.mean()) for name, square in squares.items()}
    return {
        "rows": len(pairs),
        **{name: value**0.5 for name, value in whole.items()},
        "explained": 1.0 - whole["student"] / whole["mean"] if whole["mean"] > 0.0 else None,
        "outputs": {
            output: {name: float(square[:, column].mean()) ** 0.5 for name, square in squares.items()}
            for column, output in enumerate(output_names(network))
        },
    }

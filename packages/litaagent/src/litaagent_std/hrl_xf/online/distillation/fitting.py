"""Regression of a compact net on a teacher's actions.

A linear student minimises ``Σ |ŷ − y|² + λ n |w|²`` over standardised inputs, which has one solution; λ is chosen by
the error in the validation worlds. A student with hidden layers learns by behaviour cloning (`apexrl.algorithms.bc`)
and keeps the epoch with the smallest validation error. Scales of inputs and outputs are folded into the weights: the
result is a plain `ActingNet`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import nn

from apexrl.agent.runner import Runner
from apexrl.algorithms.bc import BC, BCConfig
from apexrl.collect.env_group import one_thread
from apexrl.runs.errors import DivergedError
from apexrl.runs.session import Files, Session
from apexrl.storage.offline import OfflineDataset
from litaagent_std.agents.online.acting import ActingNet
from litaagent_std.agents.online.steering import LIMIT
from litaagent_std.hrl_xf.epochs import EpochLearner, epoch_runner, run_epochs
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.policy.arrays import Floats, Floats32

__all__ = [
    "Pairs",
    "StudentLearner",
    "constant_net",
    "errors_of",
    "fit",
    "multiplications",
    "pairs_of",
    "student_runner",
]

_RIDGES: Final = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_SAME: Final = 1e-6
"""Inputs with a smaller standard deviation are constants and get no weight."""
_SAVE_EVERY: Final = 25
"""Epochs between two checkpoints of a fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Inputs and clipped actions of a teacher.

    Attributes:
        inputs: [n, in].
        actions: [n, out], within ±`LIMIT`.
    """

    inputs: Floats32
    actions: Floats32

    def __post_init__(self) -> None:
        """Refuse samples with NaN or infinities.

        Raises:
            DivergedError: It names the sample.
        """
        for name, values in (("inputs", self.inputs), ("actions", self.actions)):
            if not np.isfinite(values).all():
                raise DivergedError(
                    f"{name} of sample {int(np.argwhere(~np.isfinite(values))[0, 0])} are NaN or infinite",
                    "a student learns from finite numbers",
                    "check the teacher's weights file",
                )

    def __len__(self) -> int:
        return len(self.inputs)


def pairs_of(teacher: ActingNet, inputs: Floats32) -> Pairs:
    """Return inputs with the teacher's actions."""
    return Pairs(inputs, np.clip(teacher.mean(inputs), -LIMIT, LIMIT))


def multiplications(net: ActingNet) -> int:
    """Return the number of multiplications per decision of a net."""
    return sum(weight.size for weight in net.weights)


def constant_net(like: ActingNet, action: Floats32) -> ActingNet:
    """Return a net of the same inputs and outputs whose action is constant."""
    shape = (like.weights[0].shape[0], like.weights[-1].shape[1])
    return ActingNet((np.zeros(shape, np.float32),), (np.asarray(action, np.float32),), like.log_std)


def fit(
    cfg: DistillConfig,
    teacher: ActingNet,
    train: Pairs,
    validation: Pairs,
    folder: Path | None = None,
    session: Session | None = None,
) -> tuple[ActingNet, dict[str, Any]]:
    """Fit the student of one layer; return it and the report of its fit. Its exploration is the teacher's.

    Args:
        cfg: Options of the distillation.
        teacher: The layer's net.
        train: Samples to learn from.
        validation: Samples that choose λ, or the epoch.
        folder: Folder for metrics and checkpoints of a student with hidden layers; None writes none.
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
        if not cfg.hidden:
            return _linear(teacher, train, validation)
        student = StudentLearner(cfg, teacher, train, validation)
        run_epochs(student_runner(student, folder, session), cfg.epochs)
        report = {"epochs": student.epoch, "best_epoch": student.best_epoch}
        return student.net(), report | {"validation_rmse": student.best_loss**0.5}


# -- linear


def _linear(teacher: ActingNet, train: Pairs, validation: Pairs) -> tuple[ActingNet, dict[str, Any]]:
    solve = _solver(train)
    nets = {ridge: _net(teacher, *solve(ridge)) for ridge in _RIDGES}
    errors = {ridge: float(np.square(_error(net, validation)).mean()) for ridge, net in nets.items()}
    best = min(_RIDGES, key=errors.__getitem__)
    both = Pairs(np.concatenate((train.inputs, validation.inputs)), np.concatenate((train.actions, validation.actions)))
    return _net(teacher, *_solver(both)(best)), {"ridge": best, "validation_rmse": errors[best] ** 0.5}


def _solver(pairs: Pairs) -> Callable[[float], tuple[Floats, Floats]]:
    """Return a function from λ to weights [in, out] and bias [out] for raw inputs; shared parts are computed once."""
    centre, scale = _scales(pairs.inputs)
    z = (pairs.inputs - centre) / scale  # [n, in]
    middle = pairs.actions.mean(0, dtype=np.float64)  # [out]
    square, cross = z.T @ z, z.T @ (pairs.actions - middle)  # [in, in], [in, out]

    def solve(ridge: float) -> tuple[Floats, Floats]:
        inner = np.linalg.solve(square + ridge * len(pairs) * np.eye(len(square)), cross)
        weight = inner / scale[:, None]
        return weight, middle - centre @ weight

    return solve


def _scales(values: Floats32) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column; a constant column gets an infinite scale, thus no effect."""
    centre, deviation = values.mean(0, dtype=np.float64), values.std(0, dtype=np.float64)
    return centre, np.where(deviation > _SAME, deviation, np.inf)


def _net(teacher: ActingNet, weight: Floats, bias: Floats) -> ActingNet:
    return ActingNet((weight.astype(np.float32),), (bias.astype(np.float32),), teacher.log_std)


# -- hidden layers


class StudentLearner(EpochLearner):
    """Behaviour cloning of a layer by a student with hidden layers; the best epoch is that in the validation worlds.

    Args:
        cfg: Options of the distillation.
        teacher: The layer's net.
        train: Samples to learn from.
        validation: Samples that choose the epoch.
    """

    name = "litaagent.student"
    files = Files(has_log=False, checkpoints=".")

    def __init__(self, cfg: DistillConfig, teacher: ActingNet, train: Pairs, validation: Pairs) -> None:
        self._teacher, self._validation = teacher, validation
        self._scales = (*_scales(train.inputs), *_scales(train.actions))
        self._data = _standard(train, *self._scales)
        self._agent = BC(
            Box(-np.inf, np.inf, (train.inputs.shape[1],), np.float32),
            Box(-np.inf, np.inf, (train.actions.shape[1],), np.float32),
            BCConfig(learning_rate=cfg.learning_rate, seed=cfg.seed),
            actor_cfg={"hidden_dims": cfg.hidden, "log_std_init": -1.0, "log_std_range": (-4.0, 1.0)},
            device="cpu",
        )
        super().__init__(self._agent.policy, cfg.patience, cfg.seed)

    def update(self) -> dict[str, float]:
        """Learn one epoch and validate."""
        stats = self._agent.update(self._data)
        error = float(np.square(_error(self.net(), self._validation)).mean())
        self.end_epoch(error)
        return stats | {"validation/rmse": error**0.5}

    def net(self) -> ActingNet:
        """Return the present student, for raw inputs and outputs."""
        return _folded(self._agent, self._teacher, *self._scales)

    def state_dict(self) -> dict[str, Any]:
        """Return the student, and the best epoch so far."""
        return super().state_dict() | {"agent": self._agent.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self._agent.load_state_dict(state["agent"])
        super().load_state_dict(state)


def student_runner(learner: StudentLearner, folder: Path | None, session: Session | None = None) -> Runner:
    """Return the runner of a fit."""
    return epoch_runner(learner, folder, _SAVE_EVERY, session, keep_last=1)


def _standard(pairs: Pairs, centre: Floats, scale: Floats, middle: Floats, size: Floats) -> OfflineDataset:
    return OfflineDataset(
        observations=torch.from_numpy(((pairs.inputs - centre) / scale).astype(np.float32)),
        actions=torch.from_numpy(((pairs.actions - middle) / size).astype(np.float32)),
    )


@torch.no_grad()
def _folded(agent: BC, teacher: ActingNet, centre: Floats, scale: Floats, middle: Floats, size: Floats) -> ActingNet:
    """Return the net for raw inputs and outputs: x' = (x − c) / s in the first layer, y = m + y'·d in the last."""
    linears = [module for module in agent.policy.actor.modules() if isinstance(module, nn.Linear)]
    weights = [linear.weight.numpy().T.astype(np.float64) for linear in linears]
    biases = [linear.bias.numpy().astype(np.float64) for linear in linears]
    weights[0] = weights[0] / scale[:, None]
    biases[0] = biases[0] - centre @ weights[0]
    spread = np.where(np.isfinite(size), size, 0.0)  # a constant output is its mean
    weights[-1], biases[-1] = weights[-1] * spread, biases[-1] * spread + middle
    return ActingNet(
        tuple(weight.astype(np.float32) for weight in weights),
        tuple(bias.astype(np.float32) for bias in biases),
        teacher.log_std,
    )


# -- errors


def _error(net: ActingNet, pairs: Pairs) -> Floats32:
    return np.clip(net.mean(pairs.inputs), -LIMIT, LIMIT) - pairs.actions


def errors_of(net: ActingNet, pairs: Pairs, mean: Floats32, names: tuple[str, ...]) -> dict[str, Any]:
    """Return root mean squared errors beside those of two trivial policies.

    Args:
        net: The student.
        pairs: Held-out samples.
        mean: The teacher's mean action in the training samples [out].
        names: Names of the outputs.

    Returns:
        Over all outputs and by output: ``student``, ``mean`` (always the mean) and ``zero`` (the heuristic agent);
        ``explained`` is the share of the mean's squared error that the student removes, None if that error is 0.
    """
    gaps = {"student": _error(net, pairs), "mean": mean - pairs.actions, "zero": -pairs.actions}
    squares = {name: np.square(gap, dtype=np.float64) for name, gap in gaps.items()}
    whole = {name: float(square.mean()) for name, square in squares.items()}
    return {
        "rows": len(pairs),
        **{name: value**0.5 for name, value in whole.items()},
        "explained": 1.0 - whole["student"] / whole["mean"] if whole["mean"] > 0.0 else None,
        "outputs": {
            output: {name: float(square[:, column].mean()) ** 0.5 for name, square in squares.items()}
            for column, output in enumerate(names)
        },
    }

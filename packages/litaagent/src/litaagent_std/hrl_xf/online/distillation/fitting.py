"""Regression of a compact net on a teacher's actions.

A linear student minimises ``Σ |ŷ − y|² + λ n |w|²`` over standardised inputs, which has one solution; λ is chosen by
the error in the validation worlds. A student with hidden layers learns by behaviour cloning (`apexrl.algorithms.bc`)
and keeps the epoch with the smallest validation error. Scales of inputs and outputs are folded into the weights: the
result is a plain `ActingNet`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import nn

from apexrl.algorithms.bc import BC, BCConfig
from apexrl.collect.env_group import one_thread
from apexrl.storage.offline import OfflineDataset
from litaagent_std.agents.online.acting import ActingNet
from litaagent_std.agents.online.steering import LIMIT
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.policy.arrays import Floats, Floats32

__all__ = ["Pairs", "constant_net", "errors_of", "fit", "multiplications", "pairs_of"]


_RIDGES: Final = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_SAME: Final = 1e-6
"""Inputs with a smaller standard deviation are constants and get no weight."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Inputs and clipped actions of a teacher.

    Attributes:
        inputs: [n, in].
        actions: [n, out], within ±`LIMIT`.
    """

    inputs: Floats32
    actions: Floats32

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


def fit(cfg: DistillConfig, teacher: ActingNet, train: Pairs, validation: Pairs) -> tuple[ActingNet, dict[str, Any]]:
    """Fit the student of one layer; return it and the report of its fit. Its exploration is the teacher's.

    Raises:
        ValueError: If there are no samples.
    """
    if not len(train) or not len(validation):
        raise ValueError(
            f"{len(train)} samples to learn from and {len(validation)} for validation: the worlds hold no decisions of "
            "this layer; give more or longer worlds"
        )
    with one_thread():
        return _network(cfg, teacher, train, validation) if cfg.hidden else _linear(teacher, train, validation)


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


def _network(
    cfg: DistillConfig, teacher: ActingNet, train: Pairs, validation: Pairs
) -> tuple[ActingNet, dict[str, Any]]:
    scales = (*_scales(train.inputs), *_scales(train.actions))
    agent = BC(
        Box(-np.inf, np.inf, (train.inputs.shape[1],), np.float32),
        Box(-np.inf, np.inf, (train.actions.shape[1],), np.float32),
        BCConfig(learning_rate=cfg.learning_rate, seed=cfg.seed),
        actor_cfg={"hidden_dims": cfg.hidden, "log_std_init": -1.0, "log_std_range": (-4.0, 1.0)},
    )
    data = _standard(train, *scales)
    best, best_error, best_epoch, epoch = None, np.inf, 0, 0
    while epoch < cfg.epochs and epoch - best_epoch < cfg.patience:
        epoch += 1
        agent.update(data)
        net = _folded(agent, teacher, *scales)
        error = float(np.square(_error(net, validation)).mean())
        if error < best_error:
            best, best_error, best_epoch = net, error, epoch
    assert best is not None  # the first epoch sets it
    return best, {"epochs": epoch, "best_epoch": best_epoch, "validation_rmse": best_error**0.5}


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

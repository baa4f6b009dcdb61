"""Linear models in numpy: a regression with masked targets and a softmax, trained by Adam on mini-batches.

Inputs are standardised with the mean and standard deviation of the training data, which the model stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from apexrl.runs.errors import ConfigurationError
from litaagent_std.policy.arrays import Bools, Floats, Ints
from litaagent_std.policy.networks.linear import Linear

__all__ = ["Linear", "TrainConfig", "fit_regression", "fit_softmax", "softmax"]

ErrorOf = Callable[[Floats, Ints], Floats]

_LEAST_SPREAD = 1e-6
_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Options of training a linear model.

    Attributes:
        lr: Initial learning rate of Adam; it decays to 0 along a cosine. Raising it learns faster and less steadily.
        epochs: Passes over the samples.
        batch_size: Samples per step.
        weight_decay: Decoupled weight decay; keeps weights of rare inputs small.
        seed: Seed of the sample order.
    """

    lr: float = 1e-2
    epochs: int = 10
    batch_size: int = 256
    weight_decay: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low in (("lr", 0.0), ("epochs", 0), ("batch_size", 0)):
            if not getattr(self, name) > low:
                raise ConfigurationError(f"{name}={getattr(self, name)}", f"it must be more than {low:g}", "raise it")


def fit_regression(x: Floats, y: Floats, known: Bools, config: TrainConfig) -> Linear:
    """Fit known targets by least squares.

    Args:
        x: Inputs, [k, n].
        y: Targets, [k, m].
        known: Which targets count, [k, m].
        config: How to train.
    """
    count = np.maximum(1, known.sum(axis=0))
    start = np.where(known, y, 0.0).sum(axis=0) / count
    return _fit(x, start, config, lambda out, rows: np.where(known[rows], out - y[rows], 0.0))


def fit_softmax(x: Floats, labels: Ints, n_classes: int, config: TrainConfig) -> Linear:
    """Fit classes by maximum likelihood; outputs are logits."""
    share = np.bincount(labels, minlength=n_classes) / len(labels)
    onehot = np.eye(n_classes)[labels]
    return _fit(x, np.log(np.maximum(share, 1e-6)), config, lambda out, rows: softmax(out) - onehot[rows])


def softmax(logits: Floats) -> Floats:
    """Return probabilities, [k, m]."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _fit(x: Floats, start: Floats, config: TrainConfig, error: ErrorOf) -> Linear:
    """Minimise by Adam; `error` returns the derivative of the loss with respect to the outputs."""
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread = np.where(spread > _LEAST_SPREAD, spread, 1.0)
    standard = (x - mean) / spread
    weights = np.zeros((x.shape[1] + 1, len(start)))
    weights[-1] = start
    standard = np.concatenate([standard, np.ones((len(x), 1))], axis=1)  # [k, n + 1], the bias last
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    total = config.epochs * -(-len(x) // config.batch_size)
    for step, rows in enumerate(_batches(len(x), config), start=1):
        inputs = standard[rows]
        gradient = inputs.T @ error(inputs @ weights, rows) / len(rows)  # [n + 1, m]
        first = _BETA1 * first + (1 - _BETA1) * gradient
        second = _BETA2 * second + (1 - _BETA2) * gradient**2
        rate = config.lr * 0.5 * (1 + np.cos(np.pi * (step - 1) / total))
        update = (first / (1 - _BETA1**step)) / (np.sqrt(second / (1 - _BETA2**step)) + _TINY)
        update[:-1] += config.weight_decay * weights[:-1]
        weights -= rate * update
    return Linear(mean, spread, weights[:-1].copy(), weights[-1].copy())


def _batches(n: int, config: TrainConfig) -> Iterator[Ints]:
    rng = np.random.default_rng(config.seed)
    for _ in range(config.epochs):
        order = rng.permutation(n)
        for start in range(0, n, config.batch_size):
            yield order[start : start + config.batch_size]

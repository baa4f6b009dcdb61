"""Linear models on the networks' own inputs: the baselines that every network has to beat.

Both are fitted in closed form or by Newton's method from sums over chunks of rows, so that memory stays flat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from litaagent_std.policy.arrays import Array

__all__ = ["fit_logistic", "fit_ridge", "predict_linear", "predict_logistic"]

Chunks = Callable[[], Iterable[tuple[Array, Array, Array]]]
"""Yields inputs ``[n, d]``, targets ``[n, k]`` and weights ``[n, k]``, from the start at each call."""

_RIDGE = 1.0
_NEWTON_STEPS = 8


def _with_one(x: Array) -> Array:
    return np.concatenate([x.astype(np.float64), np.ones((len(x), 1))], axis=1)


def fit_ridge(chunks: Chunks, penalty: float = _RIDGE) -> Array:
    """Return coefficients ``[d + 1, k]`` that minimise Σ w·(x·c − y)² + penalty·c², each output with its weights."""
    left: Array | None = None
    right: Array | None = None
    for x, y, w in chunks():
        wide = _with_one(x)
        # normal equations of each output: Xᵀ W X [k, d + 1, d + 1] and Xᵀ W y [k, d + 1]
        chunk_left = np.einsum("nk,ni,nj->kij", w, wide, wide, optimize=True)
        chunk_right = np.einsum("nk,ni,nk->ki", w, wide, y, optimize=True)
        left = chunk_left if left is None else left + chunk_left
        right = chunk_right if right is None else right + chunk_right
    if left is None or right is None:
        raise ValueError("there are no rows to fit a linear model to; give at least one")
    size = left.shape[1]
    return np.asarray(np.linalg.solve(left + penalty * np.eye(size), right[..., None])[..., 0].T)


def predict_linear(coefficients: Array, x: Array) -> Array:
    """Return the outputs ``[n, k]``."""
    return np.asarray(_with_one(x) @ coefficients)


def fit_logistic(chunks: Chunks, penalty: float = _RIDGE) -> Array:
    """Return coefficients ``[d + 1, k]`` of independent logistic regressions, by damped Newton steps."""
    coefficients: Array | None = None
    for _ in range(_NEWTON_STEPS):
        coefficients = _newton(chunks(), coefficients, penalty)
    assert coefficients is not None  # there is at least one step
    return coefficients


def _newton(chunks: Iterator[tuple[Array, Array, Array]] | Iterable[Any], now: Array | None, penalty: float) -> Array:
    gradient: Array | None = None
    curvature: Array | None = None
    for x, y, w in chunks:
        wide = _with_one(x)
        if now is None:
            now = np.zeros((wide.shape[1], y.shape[1]))
        chance = _sigmoid(wide @ now)
        # gradient [k, d + 1] and Hessian [k, d + 1, d + 1] of the log-likelihood
        chunk_gradient = (wide.T @ (w * (chance - y))).T
        chunk_curvature = np.einsum("nk,ni,nj->kij", w * chance * (1 - chance), wide, wide, optimize=True)
        gradient = chunk_gradient if gradient is None else gradient + chunk_gradient
        curvature = chunk_curvature if curvature is None else curvature + chunk_curvature
    if now is None or gradient is None or curvature is None:
        raise ValueError("there are no rows to fit a linear model to; give at least one")
    size = curvature.shape[1]
    slope = gradient + penalty * now.T
    step = np.linalg.solve(curvature + penalty * np.eye(size), slope[..., None])[..., 0].T
    length = np.abs(step).max()  # steps beyond 5 are shortened
    return np.asarray(now - step * min(1.0, 5.0 / max(length, 1e-12)))


def predict_logistic(coefficients: Array, x: Array) -> Array:
    """Return probabilities ``[n, k]``."""
    return _sigmoid(_with_one(x) @ coefficients)


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))

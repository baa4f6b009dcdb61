"""Linear models on data made by a known rule."""

import numpy as np
import pytest

from litaagent_std.hrl_xf.training.evaluation.linear import fit_logistic, fit_ridge, predict_linear, predict_logistic
from litaagent_std.hrl_xf.training.evaluation.metrics import auc


def test_linear_models_find_the_rule_that_made_the_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3))
    y = x @ np.array([[1.0], [-2.0], [0.5]]) + 3.0
    parts = [slice(0, 700), slice(700, 2000)]
    fitted = fit_ridge(lambda: ((x[p], y[p], np.ones_like(y[p])) for p in parts), penalty=1e-6)
    assert np.allclose(predict_linear(fitted, x), y, atol=1e-5)
    taken = (rng.random((2000, 1)) < 1 / (1 + np.exp(-2 * x[:, :1] + 1))).astype(float)
    logistic = fit_logistic(lambda: ((x[p], taken[p], np.ones_like(taken[p])) for p in parts))
    assert logistic[:, 0] == pytest.approx([2.0, 0.0, 0.0, -1.0], abs=0.3)
    assert auc(predict_logistic(logistic, x)[:, 0], taken[:, 0]) > 0.85

"""Measures against values computed by hand."""

import numpy as np
import pytest

from litaagent_std.hrl_xf.training.evaluation.metrics import auc, brier, calibration, errors, macro_f1


def test_measures_by_hand():
    measures = errors(np.array([1.0, 4.0]), np.array([0.0, 2.0]))
    assert measures == {"mae": 1.5, "rmse": np.sqrt(2.5), "mean_target": 1.0, "mean_rel_err": 1.0, "count": 2}
    assert macro_f1(np.array([0, 1, 1, 1]), np.array([0, 1, 0, 1]), 3) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])) == pytest.approx(0.75)
    assert auc(np.array([0.5, 0.5]), np.array([0, 1])) == 0.5
    assert brier(np.array([0.5, 1.0]), np.array([1, 1])) == pytest.approx(0.125)
    bins = calibration(np.array([0.05, 0.05, 0.95]), np.array([0, 1, 1]))
    assert [bin_["observed"] for bin_ in bins] == [0.5, 1.0]

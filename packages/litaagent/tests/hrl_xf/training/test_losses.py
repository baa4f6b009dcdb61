"""Losses, measures and linear models against values worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from litaagent_std.hrl_xf.l2_manager import DayBatch
from litaagent_std.hrl_xf.l3_executor import ThreadOutputs
from litaagent_std.hrl_xf.training.config import stage_lr
from litaagent_std.hrl_xf.training.data import batch_order
from litaagent_std.hrl_xf.training.evaluation.linear import (
    fit_logistic,
    fit_ridge,
    predict_linear,
    predict_logistic,
)
from litaagent_std.hrl_xf.training.evaluation.metrics import auc, brier, calibration, errors, macro_f1
from litaagent_std.hrl_xf.training.losses import (
    bounds_penalty,
    effective_sample_size,
    ensemble_mask,
    goal_errors,
    l3_losses,
    transformed,
)
from litaagent_std.policy.networks.inputs import MASKED


def day(role):
    one = torch.ones(1)
    return DayBatch(one, one, torch.tensor([role]), one, torch.tensor([10.0]), torch.tensor([[10.0, 20.0]]))


def test_goal_errors_by_hand():
    predicted = torch.tensor([[[4.0], [8.0]]]), torch.tensor([[[11.0], [21.0]]])
    target = torch.tensor([[[2.0], [9.0]]]), torch.tensor([[[10.0], [20.0]]]), torch.tensor([[[True], [False]]])
    loss, parts = goal_errors(predicted, target, day([1.0, 1.0]), torch.ones(1, 1), "none", 3.0)
    assert parts["q"].item() == pytest.approx((0.2**2 + 0.1**2) / 2)
    assert parts["p"].item() == pytest.approx(1.0)  # one unit of ten is a tenth: error 1 in tenths
    assert loss.item() == pytest.approx((3 * 0.025 + 1.0) / 4)
    assert parts["mse"].item() == pytest.approx((0.04 + 0.01 + 1.0) / 3)


def test_a_side_that_is_not_traded_counts_nowhere_and_nothing_at_all_is_zero():
    predicted = torch.full((1, 2, 1), 4.0), torch.full((1, 2, 1), 11.0)
    target = torch.zeros(1, 2, 1), torch.full((1, 2, 1), 10.0), torch.ones(1, 2, 1, dtype=torch.bool)
    _, parts = goal_errors(predicted, target, day([1.0, 0.0]), torch.ones(1, 1), "none", 1.0)
    assert parts["q"].item() == pytest.approx(0.16)
    loss, _ = goal_errors(predicted, target, day([0.0, 0.0]), torch.ones(1, 1), "none", 1.0)
    assert loss.item() == 0.0


@pytest.mark.parametrize(("name", "value"), [("none", 0.3), ("log1p", np.log(4.0)), ("sqrt", np.sqrt(3.01) - 0.1)])
def test_scales_of_quantities(name, value):
    assert transformed(torch.full((1, 1, 1), 3.0), torch.tensor([10.0]), name).item() == pytest.approx(value, abs=1e-6)


def decision(op, quantity=5, lead=1, price=14, weight=1.0):
    thread = SimpleNamespace(day=SimpleNamespace(lines=torch.tensor([10.0])))
    return SimpleNamespace(
        rows=torch.tensor([3]),
        thread=thread,
        op=torch.tensor([op]),
        offer=torch.tensor([[quantity, lead, price]]),
        low=torch.tensor([[1, 0, 10]]),
        high=torch.tensor([[10, 4, 20]]),
        weight=torch.tensor([weight]),
    )


def outputs(op, lead, quantity, position):
    return ThreadOutputs(torch.tensor([op]), torch.tensor([lead]), torch.tensor([quantity]), torch.tensor([position]))


def test_l3_losses_by_hand():
    said = outputs([0.0, 0.0, MASKED], [0.0, 0.0, MASKED], [0.7], [0.5])
    loss, parts = l3_losses(said, decision(op=1), bounds_weight=1.0, variance_weight=0.0)
    assert parts["op"].item() == pytest.approx(np.log(2))
    assert parts["t"].item() == pytest.approx(np.log(2))
    assert parts["q"].item() == pytest.approx(0.05**2 + 2 * 0.05 * 0.15)  # off by 0.2, linear beyond 0.05
    assert parts["p"].item() == pytest.approx(0.05**2 + 2 * 0.05 * 0.05)  # off by 0.1
    assert loss.item() == pytest.approx(2 * np.log(2) + 5 * 0.0175 + 0.0075)


def test_offers_of_other_operations_and_illegal_leads_do_not_count():
    said = outputs([0.0, 0.0, 0.0], [0.0, 0.0, MASKED], [0.7], [2.0])
    _, accepted = l3_losses(
        said, decision(op=0, quantity=-1, lead=-1, price=-1), bounds_weight=1.0, variance_weight=0.0
    )
    assert accepted["q"].item() == accepted["t"].item() == accepted["bounds"].item() == 0.0
    loss, illegal = l3_losses(said, decision(op=1, lead=2), bounds_weight=1.0, variance_weight=0.0)
    assert illegal["t"].item() == 0.0
    assert torch.isfinite(loss)


def test_the_penalty_grows_outside_the_legal_range_only():
    inside = bounds_penalty(outputs([0.0], [0.0], [0.5], [0.5]), decision(op=1))
    outside = bounds_penalty(outputs([0.0], [0.0], [1.3], [-0.4]), decision(op=1))
    assert inside.item() == 0.0
    assert outside.item() == pytest.approx(0.3**2 + 0.4**2)


def test_members_of_an_ensemble_see_different_two_thirds():
    mask = ensemble_mask(torch.arange(30_000), 3)
    assert torch.allclose(mask.mean(0), torch.full((3,), 2 / 3), atol=0.02)
    assert (mask[:, 0] != mask[:, 1]).float().mean() > 0.2
    assert torch.equal(mask[5:9], ensemble_mask(torch.arange(5, 9), 3))


def test_variance_of_the_ensemble_is_penalised():
    apart, together = ([0.2, 0.8], [0.5, 0.5]), ([0.5, 0.5], [0.5, 0.5])
    losses = [
        l3_losses(outputs([0.0] * 3, [0.0] * 5, *said), decision(op=1), bounds_weight=0.0, variance_weight=10.0)[1]
        for said in (apart, together)
    ]
    assert losses[0]["variance"].item() == pytest.approx(0.18)
    assert losses[1]["variance"].item() == 0.0


def test_effective_sample_size():
    assert effective_sample_size(torch.ones(8)) == pytest.approx(1.0)
    assert effective_sample_size(torch.tensor([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)


def test_stages_of_learning_rates():
    stages = ("40:1e-4", "50:5e-5")
    assert [stage_lr(3e-4, stages, epoch) for epoch in (1, 40, 41, 50, 51)] == [3e-4, 3e-4, 1e-4, 1e-4, 5e-5]
    with pytest.raises(ValueError, match="EPOCH:RATE"):
        stage_lr(1.0, ("40",), 41)


def test_the_order_of_an_epoch_is_a_permutation_that_seed_phase_and_epoch_decide():
    rows = np.arange(100, 131)
    order = batch_order(rows, 8, 1, "l2_bc", 3)
    assert sorted(np.concatenate(order)) == rows.tolist()
    assert [len(batch) for batch in order] == [8, 8, 8, 7]
    for other in ((2, "l2_bc", 3), (1, "l3_bc", 3), (1, "l2_bc", 4)):
        assert np.concatenate(batch_order(rows, 8, *other)).tolist() != np.concatenate(order).tolist()


def test_measures_by_hand():
    found = errors(np.array([1.0, 4.0]), np.array([0.0, 2.0]))
    assert found == {"mae": 1.5, "rmse": np.sqrt(2.5), "mean_target": 1.0, "mean_rel_err": 1.0, "count": 2}
    assert macro_f1(np.array([0, 1, 1, 1]), np.array([0, 1, 0, 1]), 3) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])) == pytest.approx(0.75)
    assert auc(np.array([0.5, 0.5]), np.array([0, 1])) == 0.5
    assert brier(np.array([0.5, 1.0]), np.array([1, 1])) == pytest.approx(0.125)
    bins = calibration(np.array([0.05, 0.05, 0.95]), np.array([0, 1, 1]))
    assert [bin_["observed"] for bin_ in bins] == [0.5, 1.0]


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

"""Losses against values computed by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from litaagent_std.hrl_xf.l2_manager import DayBatch
from litaagent_std.hrl_xf.l3_executor import ThreadOutputs
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
    return DayBatch(one, one, torch.tensor([role]), one, torch.tensor([10.0]), torch.tensor([[10.0, 20.0]]), one)


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
    predicted = outputs([0.0, 0.0, MASKED], [0.0, 0.0, MASKED], [0.7], [0.5])
    loss, parts = l3_losses(predicted, decision(op=1), bounds_weight=1.0, variance_weight=0.0)
    assert parts["op"].item() == pytest.approx(np.log(2))
    assert parts["t"].item() == pytest.approx(np.log(2))
    assert parts["q"].item() == pytest.approx(0.05**2 + 2 * 0.05 * 0.15)  # off by 0.2, linear beyond 0.05
    assert parts["p"].item() == pytest.approx(0.05**2 + 2 * 0.05 * 0.05)  # off by 0.1
    assert loss.item() == pytest.approx(2 * np.log(2) + 5 * 0.0175 + 0.0075)


def test_offers_of_other_operations_and_illegal_leads_do_not_count():
    predicted = outputs([0.0, 0.0, 0.0], [0.0, 0.0, MASKED], [0.7], [2.0])
    _, accepted = l3_losses(
        predicted, decision(op=0, quantity=-1, lead=-1, price=-1), bounds_weight=1.0, variance_weight=0.0
    )
    assert accepted["q"].item() == accepted["t"].item() == accepted["bounds"].item() == 0.0
    loss, illegal = l3_losses(predicted, decision(op=1, lead=2), bounds_weight=1.0, variance_weight=0.0)
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
        l3_losses(outputs([0.0] * 3, [0.0] * 5, *predicted), decision(op=1), bounds_weight=0.0, variance_weight=10.0)[1]
        for predicted in (apart, together)
    ]
    assert losses[0]["variance"].item() == pytest.approx(0.18)
    assert losses[1]["variance"].item() == 0.0


def test_effective_sample_size():
    assert effective_sample_size(torch.ones(8)) == pytest.approx(1.0)
    assert effective_sample_size(torch.tensor([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)

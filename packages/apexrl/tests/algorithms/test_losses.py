import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apexrl.algorithms import losses


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_surrogate_by_hand():
    # ratios 1.5 and 0.5, advantages +1 and −1, ε = 0.2: min(1.5, 1.2) = 1.2; min(−0.5, −0.8) = −0.8.
    loss = losses.ppo_surrogate(tensor(math.log(1.5), math.log(0.5)), tensor(0.0, 0.0), tensor(1.0, -1.0), 0.2)
    assert loss.item() == pytest.approx(-(1.2 - 0.8) / 2)


def test_surrogate_with_negative_advantage_and_large_ratio_is_not_clipped():
    loss = losses.ppo_surrogate(tensor(math.log(3.0)), tensor(0.0), tensor(-1.0), 0.2)
    assert loss.item() == pytest.approx(3.0)  # min(−3, −1.2) = −3


def test_surrogate_mask_counts_only_unmasked_samples():
    log_prob, old, advantage = torch.randn(3, 8, dtype=torch.float64)
    mask = torch.tensor([1, 1, 0, 1, 0, 0, 1, 0])
    masked = losses.ppo_surrogate(log_prob, old, advantage, 0.2, mask)
    chosen = mask.bool()
    torch.testing.assert_close(masked, losses.ppo_surrogate(log_prob[chosen], old[chosen], advantage[chosen], 0.2))


def test_masked_mean_of_nothing_is_zero():
    assert losses.masked_mean(tensor(3.0, 4.0), torch.zeros(2)).item() == 0.0


def test_value_clipping_is_the_mean_of_maxima_not_the_maximum_of_means():
    value, old, target = tensor(1.0, 0.0), tensor(0.0, 0.0), tensor(1.0, 1.0)
    # sample 1: plain 0, clipped (0.2 − 1)² = 0.64; sample 2: plain 1, clipped 1.
    mean_of_maxima = (0.64 + 1.0) / 2
    maximum_of_means = max((0.0 + 1.0) / 2, (0.64 + 1.0) / 2)
    value2, target2 = tensor(1.0, 2.0), tensor(1.0, 0.0)
    # sample 1: plain 0, clipped 0.64; sample 2: plain 4, clipped 0.04. Means 2 and 0.34; maxima 0.64 and 4.
    assert losses.value_loss(value, target, old, 0.2).item() == pytest.approx(mean_of_maxima)
    assert mean_of_maxima == maximum_of_means  # this pair cannot tell them apart, the next one can
    assert losses.value_loss(value2, target2, old, 0.2).item() == pytest.approx((0.64 + 4.0) / 2)


def test_value_loss_without_clipping_is_the_mean_squared_error():
    assert losses.value_loss(tensor(1.0, 3.0), tensor(0.0, 1.0)).item() == pytest.approx((1 + 4) / 2)


def test_value_clipping_without_old_values_is_refused():
    with pytest.raises(ValueError, match="old_value"):
        losses.value_loss(tensor(1.0), tensor(0.0), clip_range=0.2)


def test_huber_is_quadratic_near_and_linear_far():
    error = losses.squared_error(tensor(0.5, 3.0, -3.0), tensor(0.0, 0.0, 0.0), huber_delta=1.0)
    torch.testing.assert_close(error, tensor(0.25, 5.0, 5.0))  # 2·1·3 − 1 = 5


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=20))
def test_approximate_kl_is_never_negative(log_ratios):
    kl = losses.approximate_kl(torch.tensor(log_ratios, dtype=torch.float64), torch.zeros(len(log_ratios)))
    assert kl.item() >= 0.0


def test_approximate_kl_estimates_the_true_divergence():
    generator = torch.Generator().manual_seed(0)
    old, new = torch.tensor([0.2, 0.3, 0.5]).double(), torch.tensor([0.3, 0.3, 0.4]).double()
    sample = torch.multinomial(old, 200_000, replacement=True, generator=generator)
    estimate = losses.approximate_kl(new.log()[sample], old.log()[sample])
    exact = (old * (old / new).log()).sum()
    assert estimate.item() == pytest.approx(exact.item(), rel=0.03)


def test_clip_fraction_counts_both_sides():
    log_prob = torch.log(tensor(1.5, 0.5, 1.1, 0.95))
    assert losses.clip_fraction(log_prob, torch.zeros(4), 0.2).item() == pytest.approx(0.5)


def test_explained_variance_corners():
    target = tensor(1.0, 2.0, 3.0)
    assert losses.explained_variance(target, target).item() == pytest.approx(1.0)
    assert losses.explained_variance(torch.zeros(3).double(), target).item() == pytest.approx(0.0)
    assert losses.explained_variance(target, torch.ones(3).double()).item() == 0.0


def test_standardize_has_mean_zero_and_unit_spread_over_the_mask():
    values, mask = torch.randn(64).double() * 5 + 3, torch.arange(64) % 3 > 0
    chosen = losses.standardize(values, mask)[mask]
    assert chosen.mean().item() == pytest.approx(0.0, abs=1e-12)
    assert chosen.std(unbiased=False).item() == pytest.approx(1.0, abs=1e-6)
    assert losses.standardize(tensor(4.0)).item() == 0.0  # one sample: no division by a missing spread


def test_negative_log_likelihood_weights():
    assert losses.negative_log_likelihood(tensor(-1.0, -3.0)).item() == pytest.approx(2.0)
    assert losses.negative_log_likelihood(tensor(-1.0, -3.0), tensor(2.0, 0.0)).item() == pytest.approx(1.0)


def test_awr_weights_follow_the_advantage_and_stay_finite():
    weights = losses.awr_weights(tensor(-1.0, 0.0, 1.0, 1e6), temperature=0.5, max_weight=20.0)
    torch.testing.assert_close(weights, tensor(math.exp(-2), 1.0, math.exp(2), 20.0))
    with pytest.raises(ValueError, match="temperature=0"):
        losses.awr_weights(tensor(0.0), 0.0, 20.0)


def test_a_mask_that_leaves_nothing_out_is_not_needed():
    assert losses.needed_mask(torch.ones(3, 2)) is None
    mask = torch.tensor([[True, True], [False, True]])
    assert losses.needed_mask(mask) is mask

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributions as reference

from apexrl.models.distributions import (
    Categorical,
    DiagonalGaussian,
    MultiCategorical,
    SquashedGaussian,
    apply_action_mask,
)


def normal(batch=(5,), n=3, seed=0, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    mean = torch.randn(*batch, n, generator=g, dtype=dtype)
    log_std = torch.randn(n, generator=g, dtype=dtype) * 0.3
    return mean, log_std


def test_gaussian_agrees_with_torch():
    mean, log_std = normal()
    other_mean, other_log_std = normal(seed=1)
    ours, theirs = DiagonalGaussian(mean, log_std), reference.Normal(mean, log_std.exp())
    other = DiagonalGaussian(other_mean, other_log_std)
    actions = ours.sample(torch.Generator().manual_seed(2))
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions).sum(-1))
    torch.testing.assert_close(ours.entropy(), theirs.entropy().sum(-1))
    kl = reference.kl_divergence(theirs, reference.Normal(other_mean, other_log_std.exp())).sum(-1)
    torch.testing.assert_close(ours.kl(other), kl)
    assert torch.equal(ours.mode(), mean)


def test_gaussian_with_a_deviation_per_state_agrees_with_torch():
    mean, _ = normal()
    log_std, _ = normal(seed=3)
    ours, theirs = DiagonalGaussian(mean, log_std), reference.Normal(mean, log_std.exp())
    torch.testing.assert_close(ours.log_prob(mean + 1), theirs.log_prob(mean + 1).sum(-1))
    torch.testing.assert_close(ours.entropy(), theirs.entropy().sum(-1))


def test_samples_have_the_stated_moments_and_follow_the_generator():
    mean, log_std = torch.tensor([1.0, -2.0]).expand(20_000, 2), torch.tensor([0.0, -1.0])
    dist = DiagonalGaussian(mean, log_std)
    a, b = (dist.sample(torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(a, b)
    assert not torch.equal(a, dist.sample(torch.Generator().manual_seed(6)))
    torch.testing.assert_close(a.mean(0), mean[0], atol=0.03, rtol=0)
    torch.testing.assert_close(a.std(0), log_std.exp(), atol=0.03, rtol=0)


def test_squashed_log_prob_agrees_with_the_transformed_distribution():
    mean, log_std = normal()
    center, half_range = torch.tensor([0.5, 0.0, -1.0]).double(), torch.tensor([2.0, 1.0, 0.5]).double()
    ours = SquashedGaussian(mean, log_std, center, half_range)
    transforms = [reference.TanhTransform(), reference.AffineTransform(center, half_range)]
    theirs = reference.TransformedDistribution(reference.Normal(mean, log_std.exp()), transforms)
    actions = ours.sample(torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions).sum(-1))


@given(mean=st.floats(-50, 50), log_std=st.floats(-5, 2), seed=st.integers(0, 1000))
@settings(max_examples=60)
def test_squashed_actions_stay_inside_and_their_log_prob_and_gradient_are_finite(mean, log_std, seed):
    parameters = torch.tensor([[mean]], requires_grad=True), torch.tensor([log_std], requires_grad=True)
    dist = SquashedGaussian(*parameters, torch.tensor([1.0]), torch.tensor([3.0]))
    actions = dist.sample(torch.Generator().manual_seed(seed))
    assert (actions >= -2.0).all()
    assert (actions <= 4.0).all()
    value = dist.log_prob(actions) + dist.entropy()
    assert torch.isfinite(value).all()
    value.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in parameters)


def test_squashed_density_integrates_to_one():
    dist = SquashedGaussian(
        torch.tensor([0.3]).double(), torch.tensor([-0.5]).double(), torch.zeros(1), torch.full((1,), 2.0)
    )
    grid = torch.linspace(-2, 2, 20_001, dtype=torch.float64)[1:-1]
    density = dist.log_prob(grid.unsqueeze(-1)).exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1.0, abs=1e-4)


def test_squashed_kl_does_not_depend_on_the_bounds():
    (m1, s1), (m2, s2) = normal(), normal(seed=1)
    one = SquashedGaussian(m1, s1, torch.zeros(3), torch.ones(3))
    two = SquashedGaussian(m2, s2, torch.zeros(3), torch.ones(3))
    torch.testing.assert_close(one.kl(two), DiagonalGaussian(m1, s1).kl(DiagonalGaussian(m2, s2)))


def test_categorical_agrees_with_torch():
    logits, others = torch.randn(6, 4).double(), torch.randn(6, 4).double()
    ours, theirs = Categorical(logits), reference.Categorical(logits=logits)
    actions = torch.tensor([0, 1, 2, 3, 0, 1])
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    kl = reference.kl_divergence(theirs, reference.Categorical(logits=others))
    torch.testing.assert_close(ours.kl(Categorical(others)), kl)
    assert torch.equal(ours.mode(), logits.argmax(-1))


def test_categorical_samples_follow_the_probabilities():
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0])
    samples = Categorical(logits.expand(40_000, 4)).sample(torch.Generator().manual_seed(1))
    frequency = torch.bincount(samples, minlength=4) / 40_000
    torch.testing.assert_close(frequency, logits.softmax(-1), atol=0.01, rtol=0)


@given(data=st.data())
@settings(max_examples=50)
def test_masked_actions_are_never_drawn_and_nothing_becomes_nan(data):
    n = data.draw(st.integers(1, 6))
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any)))
    values = data.draw(st.lists(st.floats(-1e4, 1e4, width=32), min_size=n, max_size=n))
    logits = torch.tensor(values, requires_grad=True)
    dist = Categorical(logits.expand(50, n), mask.expand(50, n))
    actions = dist.sample(torch.Generator().manual_seed(0))
    assert mask[actions].all()
    assert mask[dist.mode()].all()
    total = dist.log_prob(actions).sum() + dist.entropy().sum() + dist.kl(dist).sum()
    assert torch.isfinite(total)
    total.backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~mask] == 0).all()


def test_a_draw_of_exactly_zero_does_not_let_a_masked_action_win(monkeypatch):
    def zero_for_the_masked(tensor, generator=None):
        return tensor.copy_(torch.tensor([1.0, 0.0, 1.0]))

    monkeypatch.setattr(torch.Tensor, "exponential_", zero_for_the_masked)
    mask = torch.tensor([[True, False, False]])
    assert Categorical(torch.tensor([[0.0, 50.0, 50.0]]), mask).sample().tolist() == [0]


def test_masked_entropy_is_that_of_the_legal_actions():
    mask = torch.tensor([[True, False, True]])
    dist = Categorical(torch.tensor([[0.0, 5.0, 0.0]]), mask)
    assert dist.entropy().item() == pytest.approx(math.log(2), abs=1e-6)
    assert dist.log_prob(torch.tensor([0])).item() == pytest.approx(-math.log(2), abs=1e-6)


def test_a_row_without_legal_actions_raises_and_names_the_row():
    mask = torch.tensor([[True, True], [False, False]])
    with pytest.raises(ValueError, match=r"every action in row \[1\]"):
        Categorical(torch.zeros(2, 2), mask)


@pytest.mark.parametrize("mask", [torch.ones(2, 3), torch.ones(2, 4, dtype=torch.bool)])
def test_a_mask_of_the_wrong_kind_raises(mask):
    with pytest.raises(ValueError, match="must be bool with 3 entries"):
        apply_action_mask(torch.zeros(2, 3), mask)


def test_multi_categorical_is_the_sum_of_its_choices():
    logits = torch.randn(4, 5)
    dist = MultiCategorical(logits, [2, 3])
    first, second = Categorical(logits[:, :2]), Categorical(logits[:, 2:])
    actions = dist.sample(torch.Generator().manual_seed(0))
    assert actions.shape == (4, 2)
    torch.testing.assert_close(dist.log_prob(actions), first.log_prob(actions[:, 0]) + second.log_prob(actions[:, 1]))
    torch.testing.assert_close(dist.entropy(), first.entropy() + second.entropy())
    flat = MultiCategorical(logits * 0, [2, 3])
    expected = first.kl(Categorical(logits[:, :2] * 0)) + second.kl(Categorical(logits[:, 2:] * 0))
    torch.testing.assert_close(dist.kl(flat), expected)
    assert torch.equal(dist.mode(), torch.stack([first.mode(), second.mode()], -1))


def test_multi_categorical_masks_each_choice():
    mask = torch.tensor([[True, False, False, True, False]])
    dist = MultiCategorical(torch.zeros(1, 5), [2, 3], mask)
    assert dist.sample().tolist() == [[0, 1]]
    assert dist.entropy().item() == pytest.approx(0.0)


def test_the_ratio_of_a_distribution_to_itself_is_exactly_one():
    for dist in (
        DiagonalGaussian(*normal(dtype=torch.float32)),
        SquashedGaussian(*normal(dtype=torch.float32), torch.zeros(3), torch.ones(3)),
        Categorical(torch.randn(5, 4)),
    ):
        actions = dist.sample()
        assert torch.equal((dist.log_prob(actions) - dist.log_prob(actions.clone())).exp(), torch.ones(5))

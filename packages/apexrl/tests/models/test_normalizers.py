import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrl.models.normalizers import RunningMoments, RunningObservationNormalizer, ValueNormalizer


@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=8), offset=st.floats(-1e4, 1e4))
@settings(max_examples=40)
def test_merged_batches_have_the_moments_of_the_whole(sizes, offset):
    g = torch.Generator().manual_seed(sum(sizes))
    batches = [torch.randn(n, 2, generator=g, dtype=torch.float64) * 3 + offset for n in sizes]
    moments = RunningMoments((2,))
    for batch in batches:
        moments.update(batch)
    whole = torch.cat(batches)
    assert moments.count == len(whole)
    torch.testing.assert_close(moments.mean, whole.mean(0))
    if len(whole) > 1:
        torch.testing.assert_close(moments.var, whole.var(0, correction=0), atol=1e-7, rtol=1e-7)


def test_only_update_changes_the_statistics():
    normalizer = RunningObservationNormalizer((3,))
    normalizer.update(torch.randn(50, 3))
    before = {name: value.clone() for name, value in normalizer.state_dict().items()}
    normalizer(torch.randn(10, 3) * 100)
    normalizer.freeze()
    normalizer.update(torch.randn(50, 3) * 100)
    assert all(torch.equal(value, before[name]) for name, value in normalizer.state_dict().items())
    normalizer.unfreeze()
    normalizer.update(torch.randn(50, 3))
    assert normalizer.moments.count == 100


def test_normalised_observations_are_standard_and_clipped():
    data = torch.randn(4, 1000, 2) * torch.tensor([5.0, 0.1]) + torch.tensor([100.0, -3.0])
    normalizer = RunningObservationNormalizer((2,), clip=2.5)
    normalizer.update(data)
    out = normalizer(data)
    torch.testing.assert_close(out.mean((0, 1)), torch.zeros(2), atol=0.02, rtol=0)
    torch.testing.assert_close(out.std((0, 1)), torch.ones(2), atol=0.05, rtol=0)
    assert out.abs().max() == 2.5


def test_a_mask_leaves_samples_out():
    normalizer = RunningObservationNormalizer((1,))
    data = torch.tensor([[[1.0], [100.0]], [[3.0], [100.0]]])
    normalizer.update(data, torch.tensor([[True, False], [True, False]]))
    assert normalizer.moments.count == 2
    assert normalizer.shift.item() == 2.0


def test_before_the_first_update_it_is_the_identity():
    obs = torch.randn(5, 3)
    assert torch.equal(RunningObservationNormalizer((3,))(obs), obs)


def test_state_comes_back_bit_by_bit():
    a, b = RunningObservationNormalizer((3,)), RunningObservationNormalizer((3,))
    a.update(torch.randn(77, 3))
    b.load_state_dict(a.state_dict())
    more = torch.randn(31, 3)
    a.update(more)
    b.update(more)
    assert torch.equal(a(more), b(more))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_bad_samples_are_refused_and_leave_no_trace(bad):
    for normalizer in (RunningObservationNormalizer((1,)), ValueNormalizer((1,)), ValueNormalizer((1,), decay=0.9)):
        with pytest.raises(ValueError, match="NaN or infinite"):
            normalizer.update(torch.tensor([[1.0], [bad]]))
        assert all(torch.isfinite(value).all() for value in normalizer.state_dict().values())


def test_a_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="Expected samples of shape"):
        RunningObservationNormalizer((3,)).update(torch.zeros(5, 2))


@pytest.mark.parametrize("decay", [None, 0.99])
def test_values_go_there_and_back(decay):
    normalizer = ValueNormalizer(decay=decay)
    for _ in range(3):
        normalizer.update(torch.randn(200) * 7 + 30)
    values = torch.randn(10) * 7 + 30
    torch.testing.assert_close(normalizer.denormalize(normalizer.normalize(values)), values)
    assert abs(normalizer.normalize(values).mean().item()) < 1.0


def test_debiasing_makes_the_first_estimate_right():
    data = torch.randn(500, dtype=torch.float64) * 2 + 10
    right, biased = ValueNormalizer(decay=0.999), ValueNormalizer(decay=0.999, debias=False)
    right.update(data)
    biased.update(data)
    assert right.mean.item() == pytest.approx(data.mean().item(), rel=1e-5)
    assert right.std.item() == pytest.approx(data.std(correction=0).item(), rel=1e-3)
    assert biased.mean.item() == pytest.approx(0.001 * data.mean().item(), rel=1e-3)


def test_decay_forgets():
    normalizer = ValueNormalizer(decay=0.5)
    normalizer.update(torch.full((10,), 100.0))
    for _ in range(40):
        normalizer.update(torch.randn(100))
    assert abs(normalizer.mean.item()) < 0.5


def test_impossible_options_raise():
    with pytest.raises(ValueError, match="decay must lie"):
        ValueNormalizer(decay=1.0)
    with pytest.raises(ValueError, match="clip must be positive"):
        RunningObservationNormalizer((1,), clip=0.0)

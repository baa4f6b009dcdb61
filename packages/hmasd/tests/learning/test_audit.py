import pytest
import torch
from torch import nn

from apexrl.algorithms.losses import REPLAY_TOLERANCE, DivergedError, ReplayMismatchError
from hmasd.learning.audit import audit_transformer


class Sharp(nn.Module):
    """Logits so large that float32 rounds their log-probabilities by more than the usual tolerance."""

    def __init__(self, scale):
        super().__init__()
        torch.manual_seed(0)
        self.weights = nn.Parameter(scale * torch.randn(50, 3))

    def log_probs(self, inputs):
        return torch.log_softmax(inputs @ self.weights, dim=-1)


@pytest.fixture
def inputs():
    return torch.randn(40, 50, generator=torch.Generator().manual_seed(1))


def rounding(network, inputs):
    exact = Sharp(1.0).double()
    exact.load_state_dict(network.state_dict())
    with torch.no_grad():
        return float((exact.log_probs(inputs.double()) - network.log_probs(inputs)).abs().max())


def audit(network, inputs, stored, mask=None):
    with torch.no_grad():
        return audit_transformer("sharp", network, lambda n, convert: n.log_probs(convert(inputs)), stored, mask)


def test_differences_of_the_size_of_rounding_are_accepted_and_larger_ones_are_not(inputs):
    network = Sharp(500.0)
    size = rounding(network, inputs)
    assert size > REPLAY_TOLERANCE, "otherwise this tests nothing"
    stored = network.log_probs(inputs).detach()
    off = stored.clone()
    off[3, 1] += 3.0 * size
    assert audit(network, inputs, off) == pytest.approx(3.0 * size, rel=0.1)
    off[3, 1] = stored[3, 1] + 30.0 * size
    with pytest.raises(ReplayMismatchError, match="sharp"):
        audit(network, inputs, off)
    mask = torch.ones_like(stored)
    mask[3, 1] = 0.0
    assert audit(network, inputs, off, mask) == 0.0


def test_where_rounding_is_small_the_usual_tolerance_holds(inputs):
    network = Sharp(0.1)
    stored = network.log_probs(inputs).detach()
    assert audit(network, inputs, stored) == 0.0
    stored[3, 1] += 5.0 * REPLAY_TOLERANCE
    with pytest.raises(ReplayMismatchError):
        audit(network, inputs, stored)


def test_one_sample_with_much_rounding_does_not_excuse_the_others(inputs):
    network = Sharp(3e4)
    assert rounding(network, inputs) > 1e-2
    stored = network.log_probs(inputs).detach()
    assert audit(network, inputs, stored) == 0.0
    stored[3, 1] += 0.02 * stored[3, 1].abs().clamp(min=1.0)
    with pytest.raises(ReplayMismatchError):
        audit(network, inputs, stored)


def test_nan_is_refused(inputs):
    network = Sharp(1.0)
    stored = network.log_probs(inputs).detach()
    stored[0, 0] = float("nan")
    with pytest.raises(DivergedError):
        audit(network, inputs, stored)

import logging

import pytest
import torch

from apexrl.algorithms.losses import ReplayMismatchError, audit_log_probs
from apexrl.runs.errors import DivergedError

STORED = torch.tensor([-1.0, -2.0, -3.0])


@pytest.mark.parametrize(("shift", "warns"), [(0.0, False), (5e-6, False), (5e-5, True)])
def test_a_warning_comes_from_a_tenth_of_the_tolerance(caplog, shift, warns):
    with caplog.at_level(logging.WARNING):
        error = audit_log_probs("coordinator", STORED, STORED + torch.tensor([0.0, shift, 0.0]))
    assert error == pytest.approx(shift, abs=1e-6)
    assert ("coordinator: recomputed log-probabilities differ" in caplog.text) == warns


def test_a_difference_above_the_tolerance_is_refused_with_the_name_of_the_policy():
    with pytest.raises(ReplayMismatchError, match=r"discoverer: .* tolerance of 0\.0001"):
        audit_log_probs("discoverer", STORED, STORED + torch.tensor([0.0, 0.0, 2e-4]))
    with pytest.raises(ReplayMismatchError, match="tolerance of 1e-10"):
        audit_log_probs("discoverer", STORED.double(), STORED.double() + 1e-9, tolerance=1e-10)


def test_samples_that_do_not_count_are_not_compared():
    recomputed = STORED + torch.tensor([0.0, 7.0, 0.0])
    assert audit_log_probs("actor", STORED, recomputed, torch.tensor([1.0, 0.0, 1.0])) == 0.0


def test_the_right_cause_is_named():
    with pytest.raises(DivergedError, match="recomputed log-probabilities are NaN"):
        audit_log_probs("discoverer", STORED, STORED + torch.tensor([0.0, 0.0, float("nan")]))
    random = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
    with pytest.raises(ReplayMismatchError, match=r"Dropout \(1\), whose output changes from call to call"):
        audit_log_probs("actor", STORED, STORED + 1.0, network=random)
    with pytest.raises(ReplayMismatchError, match="aliased observations"):
        audit_log_probs("actor", STORED, STORED + 1.0, network=torch.nn.Linear(3, 3))

"""Options of training."""

import pytest

from litaagent_std.hrl_xf.training.config import stage_lr


def test_stages_of_learning_rates():
    stages = ("40:1e-4", "50:5e-5")
    assert [stage_lr(3e-4, stages, epoch) for epoch in (1, 40, 41, 50, 51)] == [3e-4, 3e-4, 1e-4, 1e-4, 5e-5]
    with pytest.raises(ValueError, match="EPOCH:RATE"):
        stage_lr(1.0, ("40",), 41)

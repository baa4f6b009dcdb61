"""Options of training."""

import pytest

from apexrl.configuration import from_command_line
from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.training.config import TrainRunConfig, stage_lr


def test_stages_of_learning_rates():
    stages = ("40:1e-4", "50:5e-5")
    assert [stage_lr(3e-4, stages, epoch) for epoch in (1, 40, 41, 50, 51)] == [3e-4, 3e-4, 1e-4, 1e-4, 5e-5]
    with pytest.raises(ValueError, match="EPOCH:RATE"):
        stage_lr(1.0, ("40",), 41)


@pytest.mark.parametrize("option", ["l2", "l3"])
def test_a_wrong_stage_is_refused_where_options_are_read(option):
    with pytest.raises(ConfigurationError, match=f"--{option}-lr-stages: got '50'; it should be EPOCH:RATE"):
        from_command_line(TrainRunConfig, [f"--{option}-lr-stages", "40:1e-4", "50"], program="lita train")

import numpy as np

from litaagent_std.agents.online.acting import ActingNet, PolicySet
from litaagent_std.agents.online.seat import DecisionRequest


def test_actions_are_zero_at_levels_that_were_not_trained():
    zeros = ActingNet.zeros("l2")
    net = ActingNet(zeros.weights, (np.ones_like(zeros.biases[0]),), zeros.log_std)
    view = np.zeros(zeros.weights[0].shape[0], np.float32)
    first, last = (DecisionRequest("day", 0, level, view, view) for level in ("first", "last"))
    policies = PolicySet({"l2": net}, levels=("last",))
    assert not policies.act(first).any()
    assert policies.act(last).all()

from itertools import pairwise

import numpy as np
import pytest

from litaagent_std.agents.online.acting import INPUTS, LAYERS, NAMES, ActingNet, PolicySet
from litaagent_std.agents.online.seat import DayRequests


def test_actions_are_zero_at_levels_that_were_not_trained():
    zeros = ActingNet.zeros("l2")
    net = ActingNet(zeros.weights, (np.ones_like(zeros.biases[0]),), zeros.log_std)
    views = np.zeros((2, zeros.weights[0].shape[0]), np.float32)
    first_and_last = DayRequests(np.array([0, 1]), np.array([0, 0]), np.array([0, 2]), views)
    policies = PolicySet({"l2": net}, levels=("last",))
    first, last = policies.act_days(first_and_last)
    assert not first.any()
    assert last.all()


@pytest.mark.parametrize("layer", LAYERS)
def test_an_action_does_not_depend_on_the_batch(layer):
    rng = np.random.default_rng(0)
    sizes = (INPUTS[layer], 24, len(NAMES[layer]))
    net = ActingNet(
        tuple(rng.normal(size=pair).astype(np.float32) for pair in pairwise(sizes)),
        tuple(rng.normal(size=size).astype(np.float32) for size in sizes[1:]),
        np.full(sizes[-1], -1.0, np.float32),
    )
    inputs = rng.normal(size=(37, sizes[0])).astype(np.float32)
    noise = rng.normal(size=(37, sizes[-1])).astype(np.float32)
    actions, log_probs = net.sample(inputs, noise)
    for row in range(37):
        alone = net.sample(inputs[row : row + 1], noise[row : row + 1])
        np.testing.assert_array_equal(alone[0][0], actions[row])
        assert alone[1][0] == log_probs[row]

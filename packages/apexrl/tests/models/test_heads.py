import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from apexrl.models.heads import GaussianHead, make_action_head


def test_the_space_decides_the_head():
    assert make_action_head(Discrete(4)).num_inputs == 4
    assert make_action_head(MultiDiscrete([2, 5])).num_inputs == 7
    assert make_action_head(MultiBinary(3)).num_inputs == 6
    assert make_action_head(Box(-1, 1, (3,))).num_inputs == 3
    assert make_action_head(Box(-1, 1, (3,)), state_dependent_std=True).num_inputs == 6


def test_binary_actions_are_zeros_and_ones():
    head = make_action_head(MultiBinary(3))
    actions = head.distribution(torch.zeros(200, 6)).sample()
    assert actions.shape == (200, 3)
    assert set(actions.unique().tolist()) == {0, 1}


@pytest.mark.parametrize("space", [Box(-1, 1, (2,)), Discrete(3), MultiDiscrete([2, 3])])
def test_deterministic_is_the_mode(space):
    head = make_action_head(space)
    outputs = torch.randn(6, head.num_inputs)
    torch.testing.assert_close(head.deterministic(outputs), head.distribution(outputs).mode())


def test_deterministic_is_the_mode_when_squashed():
    head = make_action_head(Box(-3, 5, (2,)), squash=True)
    outputs = torch.randn(6, 2) * 3
    torch.testing.assert_close(head.deterministic(outputs), head.distribution(outputs).mode())
    assert head.deterministic(outputs).min() >= -3
    assert head.deterministic(outputs).max() <= 5


def test_spaces_without_a_head_raise():
    with pytest.raises(TypeError, match="No action head"):
        make_action_head(Dict({"a": Discrete(2)}))
    with pytest.raises(TypeError, match=r"MultiDiscrete\(high - low \+ 1\)"):
        make_action_head(Box(0, 4, (2,), np.int32))
    with pytest.raises(ValueError, match="from 0"):
        make_action_head(Discrete(3, start=1))
    with pytest.raises(TypeError, match="Box action spaces only"):
        make_action_head(Discrete(3), squash=True)
    with pytest.raises(ValueError, match="one-dimensional"):
        make_action_head(Box(-1, 1, (2, 2)))
    with pytest.raises(ValueError, match="finite bounds"):
        make_action_head(Box(-np.inf, np.inf, (2,)), squash=True)


def test_a_mask_on_continuous_actions_raises():
    with pytest.raises(ValueError, match="only for discrete"):
        GaussianHead(Box(-1, 1, (1,))).distribution(torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool))


def test_the_deviation_stays_in_its_range():
    head = GaussianHead(Box(-1, 1, (1,)), log_std_init=50.0)
    assert head.distribution(torch.zeros(1, 1)).log_std.item() == 2.0

import numpy as np
import pytest
import torch

from apexrl.envs.vec_env import StepFormatError, log_value, read_step

DONES = torch.tensor([True, True, False])
CUT = torch.tensor([True, False, False])
REWARDS = torch.arange(3.0)


def test_terminated_follows_from_dones_and_time_outs():
    outcome = read_step((3,), REWARDS, DONES, {"time_outs": CUT})
    assert outcome.terminated.tolist() == [False, True, False]
    assert outcome.time_outs.tolist() == [True, False, False]


def test_time_outs_follow_from_terminated():
    outcome = read_step((3,), REWARDS, DONES, {"terminated": torch.tensor([False, True, False])})
    assert outcome.time_outs.tolist() == [True, False, False]


@pytest.mark.parametrize("key", ["truncated", "time_outs"])
def test_both_names_of_a_time_out_are_read(key):
    assert read_step((3,), REWARDS, DONES, {key: CUT}).time_outs.tolist() == CUT.tolist()


def test_without_either_key_every_end_is_a_termination():
    outcome = read_step((3,), REWARDS, DONES, {})
    assert outcome.terminated.tolist() == DONES.tolist()
    assert not outcome.time_outs.any()


def test_a_time_out_in_a_row_that_goes_on_is_none():
    outcome = read_step((3,), REWARDS, DONES, {"time_outs": torch.ones(3, dtype=torch.bool)})
    assert outcome.time_outs.tolist() == DONES.tolist()
    assert not outcome.terminated.any()


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.uint8])
def test_flags_of_any_number_type_are_understood(dtype):
    outcome = read_step((3,), REWARDS, DONES.to(dtype), {"time_outs": CUT.to(dtype)})
    assert outcome.dones.dtype is outcome.time_outs.dtype is outcome.terminated.dtype is torch.bool
    assert outcome.terminated.tolist() == [False, True, False]


def test_columns_are_understood():
    outcome = read_step((3,), REWARDS[:, None], DONES[:, None], {"time_outs": CUT[:, None]})
    assert [values.shape for values in outcome] == [(3,)] * 4


@pytest.mark.parametrize(
    ("rewards", "words"), [(torch.zeros(2), r"shape \[2\]"), (torch.zeros(3, 2), r"shape \[3, 2\]"), (None, "NoneType")]
)
def test_other_shapes_are_named(rewards, words):
    with pytest.raises(StepFormatError, match=f"rewards as .*{words}.*shape \\[3\\]"):
        read_step((3,), rewards, DONES, {})


def test_rewards_of_several_agents_keep_their_axis():
    assert read_step((3, 2), torch.zeros(3, 2), DONES, {}).rewards.shape == (3, 2)


@pytest.mark.parametrize("value", [1.5, torch.tensor([1.0, 2.0]), np.array([1, 2]), np.float32(1.5), torch.tensor(1.5)])
def test_a_logged_value_is_a_number_or_a_mean(value):
    assert log_value("height", value) == 1.5


@pytest.mark.parametrize("value", ["high", None, torch.zeros(0), [1.0]])
def test_what_is_no_number_is_not_logged(value):
    with pytest.raises(StepFormatError, match=r"extras\['log'\]\['height'\]"):
        log_value("height", value)

import pytest
import torch

from apexrl.storage.rollout import IncompleteRolloutError, MixedVersionsError
from hmasd.learning.rollout import Rollout, team_reward


def test_a_foreign_transition_is_refused_by_name(hmasd_agent):
    hmasd_agent.rollout.versions[3, 2] = 7
    with pytest.raises(MixedVersionsError, match="step 3 of environment 2 was made by policy version 7"):
        hmasd_agent.update(92)


def test_an_incomplete_batch_is_refused(hmasd_agent):
    hmasd_agent.rollout.filled = 20
    with pytest.raises(IncompleteRolloutError, match="holds 20 of 23 steps"):
        hmasd_agent.update(92)


def test_a_full_batch_takes_no_further_step(hmasd_agent):
    rollout = hmasd_agent.rollout
    with pytest.raises(IncompleteRolloutError, match="update before collecting further"):
        hmasd_agent.act(rollout.observations[0], rollout.states[0], rollout.present[0], rollout.episode_starts[0])


def test_every_environment_contributes_the_same_number_of_steps(hmasd_agent):
    assert hmasd_agent.rollout.counts_per_env().tolist() == [23.0] * 4


def test_what_comes_next_is_the_true_final_view_at_an_episodes_end(hmasd_agent):
    rollout = hmasd_agent.rollout
    dones = rollout.dones[:-1]
    assert dones.sum() == 8, "nine steps per episode, so two ends in each of four environments"
    stays = ~dones
    assert torch.equal(rollout.next_states[:-1][stays], rollout.states[1:][stays])
    assert torch.equal(rollout.next_observations[:-1][stays], rollout.observations[1:][stays])
    assert not torch.equal(rollout.next_states[:-1][dones], rollout.states[1:][dones])
    assert torch.equal(rollout.episode_starts[1:], dones)


def test_intervals_end_before_every_assignment_at_episode_ends_and_at_the_barrier(hmasd_agent):
    ends = hmasd_agent.rollout.interval_ends()
    # episodes of 9 steps with k = 4: skills last 4, 4 and 1 steps; the batch ends after 5 steps of the third episode
    expected = [step % 9 in (3, 7, 8) for step in range(23)]
    expected[-1] = True
    assert ends[:, 0].tolist() == expected


def test_the_team_reward_is_the_mean_over_present_agents():
    rewards = torch.tensor([[1.0, 3.0], [5.0, 9.0], [2.0, 2.0]])
    present = torch.tensor([[True, True], [True, False], [False, False]])
    assert team_reward(rewards, present).tolist() == [2.0, 5.0, 0.0]


def test_an_agent_that_leaves_a_running_episode_keeps_its_true_last_observation():
    rollout = Rollout(n_steps=1, num_envs=2, n_agents=2, n_observation=1, n_state=1, action_shape=(), width=1)
    nobody = torch.zeros(2, 2, dtype=torch.bool)
    leaving = torch.tensor([[False, True], [False, False]])
    extras = {
        "state": torch.tensor([[5.0], [6.0]]),
        "agent_mask": ~leaving,
        "terminated": nobody[:, 0],
        "truncated": nobody[:, 0],
        "agent_terminated": leaving,
        "agent_truncated": nobody,
        "final_observation": torch.tensor([[[-1.0], [9.0]], [[-1.0], [-1.0]]]),
        "final_state": torch.full((2, 1), -1.0),
    }
    rollout.add_outcome(torch.tensor([[[1.0], [0.0]], [[3.0], [4.0]]]), torch.zeros(2), nobody[:, 0], extras, 0)
    assert rollout.next_observations[0].squeeze(-1).tolist() == [[1.0, 9.0], [3.0, 4.0]]
    assert rollout.next_states[0].squeeze(-1).tolist() == [5.0, 6.0], "the episode itself continues"


@pytest.mark.parametrize("algorithm", ["hmasd", "mappo", "mat"])
def test_the_replay_audit_holds_to_1e_10_for_continuous_actions_in_float64(float64, collected, algorithm):
    learner = collected(task="uav_coverage", algorithm=algorithm, num_envs=2, batch_size=24, n_agents=3)
    assert learner.update(24)["Sync/ReplayLogProbError"] <= 1e-10

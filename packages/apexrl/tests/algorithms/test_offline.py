import math

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from apexrl.algorithms.awr import AWR, AWRConfig
from apexrl.algorithms.bc import BC, BCConfig
from apexrl.models import GRUDiscreteActor, MLPCritic
from apexrl.storage.offline import DatasetError, OfflineDataset

OBS, ACTIONS = Box(-10, 10, (2,)), Discrete(3)


def expert(count=300, seed=0):
    """The right action is decided by the first observation; half of the decisions are wrong and end badly."""
    generator = torch.Generator().manual_seed(seed)
    obs = torch.randn(count, 2, generator=generator) * 3
    right = (obs[:, 0] > 0).long()
    chosen = torch.where(torch.rand(count, generator=generator) < 0.5, right, 1 - right)
    return OfflineDataset(observations=obs, actions=chosen, returns=(chosen == right) * 100.0), right


def accuracy(agent, dataset, right):
    with torch.no_grad():
        outputs = agent.policy.act(dataset.observations, {}, None)
        return (agent.policy.distribution(outputs).mode() == right).float().mean().item()


def test_bc_reproduces_the_recording(fingerprint):
    dataset, right = expert()
    dataset = OfflineDataset(observations=dataset.observations, actions=right)
    agents = []
    for normalize in (False, True):
        agent = BC(OBS, ACTIONS, BCConfig(normalize_observations=normalize, learning_rate=3e-3))
        first = agent.update(dataset)["train/policy_loss"]
        for _ in range(30):
            last = agent.update(dataset)["train/policy_loss"]
        assert last < 0.2 < first
        assert accuracy(agent, dataset, right) > 0.95
        agents.append(agent)
    again = BC(OBS, ACTIONS, BCConfig(learning_rate=3e-3))
    for _ in range(31):
        again.update(dataset)
    assert fingerprint(again.policy) == fingerprint(agents[0].policy)


def test_awr_prefers_what_turned_out_well_where_bc_cannot_tell():
    dataset, right = expert(1000)
    cloned, weighted = BC(OBS, ACTIONS, BCConfig()), AWR(OBS, ACTIONS, AWRConfig(temperature=0.3))
    for _ in range(20):
        cloned.update(dataset)
        stats = weighted.update(dataset)
    assert accuracy(weighted, dataset, right) > 0.95
    assert accuracy(cloned, dataset, right) < 0.75
    assert stats["train/explained_variance"] < 0.5  # the return depends on the action, which V does not see


def test_awr_learns_only_the_critic_at_first(fingerprint):
    dataset, _ = expert()
    agent = AWR(OBS, ACTIONS, AWRConfig(critic_epochs=2))
    actor, critic = fingerprint(agent.policy.actor), fingerprint(agent.policy.critic)
    agent.update(dataset)
    assert fingerprint(agent.policy.actor) == actor
    assert fingerprint(agent.policy.critic) != critic
    agent.update(dataset)
    agent.update(dataset)
    assert fingerprint(agent.policy.actor) != actor


def test_awr_weights_come_from_the_critic_not_from_raw_rewards():
    dataset, _ = expert()
    agent = AWR(OBS, ACTIONS, AWRConfig(normalize_advantages=False, normalize_values=False, temperature=50.0))
    weights = agent.prepare(dataset).weights
    with torch.no_grad():
        expected = ((dataset.returns - agent.policy.critic(dataset.observations)) / 50.0).exp().clamp(max=20.0)
    torch.testing.assert_close(weights, expected)


def test_validation_changes_nothing(fingerprint):
    dataset, _ = expert()
    agent = AWR(OBS, ACTIONS, AWRConfig(normalize_observations=True))
    train, held_out = dataset.split(0.2, seed=1)
    before = fingerprint(agent.policy)
    assert "validation/policy_loss" in agent.validate(held_out)
    assert fingerprint(agent.policy) == before  # not even the scales, which belong to the training set
    agent.update(train)
    assert agent.policy.observation_normalizer.moments.count.item() == len(train) == 240


def test_returns_to_go_by_hand():
    dataset = OfflineDataset.from_trajectory(
        torch.zeros(4, 2), torch.zeros(4), torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([0, 1, 0, 0]).bool(), 0.5
    )
    assert dataset.returns.tolist() == [2.0, 2.0, 8.0, 8.0]


def test_weights_and_masks_count():
    dataset, right = expert()
    ones = OfflineDataset(
        observations=dataset.observations, actions=dataset.actions, weights=(dataset.actions == right).float()
    )
    agent = BC(OBS, ACTIONS, BCConfig(learning_rate=3e-3))
    for _ in range(30):
        agent.update(ones)
    assert accuracy(agent, dataset, right) > 0.95
    only = torch.zeros(len(dataset), 3, dtype=torch.bool)
    only[torch.arange(len(dataset)), dataset.actions] = True
    masked = OfflineDataset(observations=dataset.observations, actions=dataset.actions, action_masks=only)
    assert math.isclose(agent.validate(masked)["validation/policy_loss"], 0.0, abs_tol=1e-6)


def test_refusals_name_the_way_out():
    dataset, _ = expert()
    with pytest.raises(ValueError, match="AWR needs returns"):
        AWR(OBS, ACTIONS).update(OfflineDataset(observations=dataset.observations, actions=dataset.actions))
    with pytest.raises(ValueError, match="actions has 2 rows for 300"):
        OfflineDataset(observations=dataset.observations, actions=dataset.actions[:2])
    with pytest.raises(ValueError, match="empty"):
        OfflineDataset(observations=torch.zeros(0, 2), actions=torch.zeros(0))
    with pytest.raises(TypeError, match="has no critic"):
        BC(OBS, ACTIONS, critic_class=MLPCritic)
    with pytest.raises(TypeError, match="GRUDiscreteActor"):
        BC(OBS, ACTIONS, actor_class=GRUDiscreteActor)
    with pytest.raises(ValueError, match=r"validation_fraction=0\.0"):
        dataset.split(0.0, seed=0)


@pytest.mark.parametrize(
    ("actions", "space", "message"),
    [
        (torch.zeros(5), Box(-1, 1, (1,)), r"actions of the dataset have the shape \[5\]. They must be \[5, 1\]"),
        (torch.zeros(5, 1).long(), Discrete(3), r"actions of the dataset have the shape \[5, 1\]"),
        (torch.zeros(5), Discrete(3), r"are torch\.float32\. Actions of Discrete\(3\) are int64"),
        (torch.tensor([0, 1, 3, 0, 0]), Discrete(3), "decision 2 of the dataset took action 3"),
        (torch.tensor([[0, 0], [1, 2]] + [[0, 0]] * 3), MultiDiscrete([2, 2]), r"decision 1 .* took action \[1, 2\]"),
    ],
)
def test_decisions_that_do_not_fit_the_actions_are_refused(actions, space, message):
    dataset = OfflineDataset(observations=torch.zeros(5, 2), actions=actions)
    agent = BC(OBS, space)
    with pytest.raises(DatasetError, match=message):
        agent.update(dataset)
    with pytest.raises(DatasetError, match=message):
        agent.validate(dataset)


def test_other_observations_and_masked_decisions_are_refused():
    with pytest.raises(DatasetError, match=r"observations of the dataset have the shape \[4, 3\]"):
        BC(OBS, ACTIONS).update(OfflineDataset(observations=torch.zeros(4, 3), actions=torch.zeros(4).long()))
    masks = torch.tensor([[True, True, True], [False, True, True]])
    decisions = OfflineDataset(observations=torch.zeros(2, 2), actions=torch.tensor([0, 0]), action_masks=masks)
    with pytest.raises(DatasetError, match=r"decision 1 of the dataset took action 0\. Its action_mask must allow it"):
        BC(OBS, ACTIONS).update(decisions)


def test_recordings_are_often_arrays_of_float64(fingerprint):
    dataset, _ = expert()
    arrays = {"observations": dataset.observations.double().numpy(), "actions": dataset.actions.numpy()}
    agents = [AWR(OBS, ACTIONS, AWRConfig(normalize_observations=True)) for _ in range(2)]
    agents[0].update(dataset)
    agents[1].update(OfflineDataset(**arrays, returns=dataset.returns.numpy()))
    assert fingerprint(agents[0].policy) == fingerprint(agents[1].policy)
    rewards, dones = np.array([1.0, 2.0, 4.0]), np.array([False, True, False])
    made = OfflineDataset.from_trajectory(np.zeros((3, 2)), np.zeros(3, np.int64), rewards, dones, gamma=0.5)
    assert made.returns.tolist() == [2.0, 2.0, 4.0]

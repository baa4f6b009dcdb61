import numpy as np
import pytest
import torch

from apexrl.storage.rollout import EpisodeTable, Fragment, IncompleteRolloutError, MixedVersionsError, RolloutStorage


def fragment(version=7, envs=range(2), steps=3, fields=(), log=None):
    names = ("rewards", "observations", *fields)
    values = {name: torch.full((steps, len(envs)), float(envs.start)) for name in names}
    return Fragment(
        policy_version=version,
        env_ids=envs,
        steps=values,
        borders={},
        episodes=EpisodeTable(returns=np.array([float(envs.start)]), lengths=np.array([steps])),
        log=dict(log or {}),
        log_counts=dict.fromkeys(log or {}, len(envs)),
    )


@pytest.fixture
def storage():
    storage = RolloutStorage(num_steps=3, num_envs=5)
    storage.begin(policy_version=7)
    return storage


def test_fragments_are_ordered_by_env_id_whatever_order_they_come_in(storage):
    storage.add(fragment(envs=range(2, 5), log={"x": 4.0}))
    storage.add(fragment(envs=range(2), log={"x": 1.0}))
    storage.finish()
    assert storage.steps["rewards"][0].tolist() == [0.0, 0.0, 2.0, 2.0, 2.0]
    assert storage.num_samples == 15
    assert storage.episodes().returns.tolist() == [0.0, 2.0]
    assert storage.log() == {"x": pytest.approx((1 * 2 + 4 * 3) / 5)}


def test_another_policy_version_is_refused(storage):
    with pytest.raises(MixedVersionsError, match=r"envs 0\.\.1 was made by policy version 6.*belongs to version 7"):
        storage.add(fragment(version=6))


def test_wrong_counts_are_refused(storage):
    with pytest.raises(IncompleteRolloutError, match=r"4 steps.*exactly 3"):
        storage.add(fragment(steps=4))
    storage.add(fragment())
    with pytest.raises(IncompleteRolloutError, match=r"environments \[0, 1\]"):
        storage.add(fragment())
    with pytest.raises(IncompleteRolloutError, match=r"environments \[5\]"):
        storage.add(fragment(envs=range(2, 6)))
    with pytest.raises(IncompleteRolloutError, match="holds 6 of 3 steps × 5 envs = 15"):
        storage.finish()


def test_groups_must_bring_the_same_fields(storage):
    storage.add(fragment(envs=range(2), fields=("valid",)))
    storage.add(fragment(envs=range(2, 5)))
    with pytest.raises(IncompleteRolloutError, match="different fields"):
        storage.finish()


def test_a_field_of_an_earlier_rollout_does_not_live_on(storage):
    storage.add(fragment(envs=range(5), fields=("valid",)))
    storage.finish()
    storage.begin(8)
    storage.add(fragment(version=8, envs=range(5)))
    storage.finish()
    assert "valid" not in storage.steps


def test_what_was_stored_does_not_change_with_the_fragment(storage):
    given = fragment(envs=range(5))
    storage.add(given)
    given.steps["rewards"].fill_(99.0)
    assert storage.steps["rewards"].max().item() == 0.0

"""Overcooked against recordings of the package ``overcooked-ai`` 1.1.0: eight episodes of 400 steps per kitchen.

The package has no ``old_dynamics``: those episodes were recorded with its classes, changed so that a pot with three
onions starts at the end of a step, and an empty hand starts none.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from apexrl.runs.errors import ConfigurationError
from hmasd.config import preset
from hmasd.envs.overcooked import LAYOUTS, Kitchens, OvercookedEnv
from hmasd.envs.overcooked.kitchens import COOKING_POT, COUNTER, INTERACT, N_THINGS, READY_POT, SOUP
from hmasd.training.learner import SyncLearner
from hmasd.training.trainer import Trainer

KITCHENS = {
    layout + suffix: {"layout": LAYOUTS[layout], "old_dynamics": bool(suffix)}
    for suffix in ("", "_old_dynamics")
    for layout in LAYOUTS
}
RECORDED = ("cells", "facing", "held", "contents", "cooked")


@pytest.fixture(scope="module")
def recording():
    """Actions, and what the package's state was after each step, by ``layout_name`` ``(400, 8, …)``."""
    with np.load(Path(__file__).parent / "data" / "overcooked.npz", allow_pickle=False) as file:
        return {name: file[name].astype(np.int64) for name in file.files}


@pytest.mark.parametrize("kitchen", KITCHENS)
def test_every_step_is_that_of_the_package(recording, kitchen):
    actions = recording[f"{kitchen}_actions"]
    kitchens = Kitchens(num_envs=actions.shape[1], **KITCHENS[kitchen])
    for step, joint in enumerate(actions):
        outcome = kitchens.step(joint)
        for name in RECORDED:
            assert np.array_equal(getattr(kitchens, name), recording[f"{kitchen}_{name}"][step]), (step, name)
        assert np.array_equal(outcome.delivered, recording[f"{kitchen}_delivered"][step]), step
        assert np.array_equal(outcome.shaped, recording[f"{kitchen}_shaped"][step]), step


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_recording_holds_all_kinds_of_events(recording, layout):
    contents, held = recording[f"{layout}_contents"], recording[f"{layout}_held"]
    assert recording[f"{layout}_delivered"].sum() >= 20
    assert set(np.unique(recording[f"{layout}_shaped"])) == {0, 3, 5}
    assert ((held > SOUP) & (held < SOUP + 3)).any(), "soups of fewer onions"
    assert ((contents > COUNTER) & (contents < COUNTER + N_THINGS)).any(), "things on counters"
    assert ((contents >= COOKING_POT) & (contents < READY_POT)).any()
    assert (contents >= READY_POT).any()
    cells, moves = recording[f"{layout}_cells"], recording[f"{layout}_actions"] < 4
    stuck = (cells[1:] == cells[:-1]).all(axis=-1) & moves[1:].all(axis=-1)
    assert stuck.any(), "cooks that stay although both want to move"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_with_the_old_dynamics_a_pot_starts_with_the_third_onion_only(recording, layout):
    contents = recording[f"{layout}_old_dynamics_contents"]
    assert recording[f"{layout}_old_dynamics_delivered"].sum() >= 20
    assert set(np.unique(contents[contents >= COOKING_POT])) <= {COOKING_POT + 3, READY_POT + 3}
    assert not (contents == COOKING_POT - 1).any(), "a full pot never waits"


def test_cooks_neither_meet_nor_swap_and_turn_all_the_same():
    kitchens = Kitchens(LAYOUTS["cramped_room"], 2)
    kitchens.cells[:] = [[6, 8], [6, 7]]  # with a cell between them; side by side
    kitchens.step(np.array([[2, 3], [2, 3]]))
    assert kitchens.cells.tolist() == [[6, 8], [6, 7]]
    assert kitchens.facing.tolist() == [[2, 3], [2, 3]]


def test_the_first_cooks_interaction_comes_first():
    kitchens = Kitchens(LAYOUTS["cramped_room"], 1)
    kitchens.cells[:] = [[7, 7]]  # both below the pot
    kitchens.held[:] = [[1, 0]]  # an onion and nothing
    kitchens.step(np.full((1, 2), INTERACT))
    assert kitchens.contents[0, 2] == COOKING_POT + 1, "the second starts what the first has put in"
    assert kitchens.cooked.tolist() == [[1]]


def test_the_state_is_captured_in_full():
    env, other = OvercookedEnv(3, max_steps=30), OvercookedEnv(3, max_steps=30)
    stream = torch.Generator().manual_seed(0)
    actions = torch.randint(0, 6, (60, 3, 2), generator=stream)
    for joint in actions[:20]:
        env.step(joint)
    other.load_state_dict(env.state_dict())
    for joint in actions[20:]:
        expected, got = env.step(joint), other.step(joint)
        assert all(torch.equal(a, b) for a, b in zip(expected[:3], got[:3], strict=True))
    with pytest.raises(ValueError, match="same num_envs and layout"):
        OvercookedEnv(4).load_state_dict(env.state_dict())
    with pytest.raises(ValueError, match="no layout 'kitchen'"):
        OvercookedEnv(1, layout="kitchen")


def test_shaped_rewards_are_added_in_training(recording):
    actions = torch.from_numpy(recording["cramped_room_actions"])
    env = OvercookedEnv(actions.shape[1], reward_shaping=0.5)
    for step, joint in enumerate(actions):
        _, rewards, _, extras = env.step(joint)
        delivered = recording["cramped_room_delivered"][step].sum(axis=1)
        shaped = recording["cramped_room_shaped"][step].sum(axis=1)
        team = delivered + 0.5 * shaped
        for cook in range(2):
            assert rewards[:, cook].tolist() == team.tolist(), step
            assert extras["reward_components"]["delivered"][:, cook].tolist() == delivered.tolist(), step
            assert extras["reward_components"]["shaped"][:, cook].tolist() == shaped.tolist(), step


def test_shaped_rewards_are_no_part_of_an_evaluation():
    learner = SyncLearner(preset("cramped_room", algorithm="mappo", hidden_size=8, reward_shaping=1.0))
    report = learner.collector.collect(learner.agent, 400)
    assert len(report.returns) == 32
    assert any(value % 20 for value in report.returns)
    learner.evaluate()
    assert not (learner.last_evaluation.returns % 20).any()
    with pytest.raises(ConfigurationError, match="alice_and_bob has no shaped rewards"):
        SyncLearner(preset("alice_and_bob", reward_shaping=1.0))


@pytest.mark.parametrize("algorithm", ["hmasd", "mappo", "mat"])
def test_the_presets_train(algorithm):
    small = {"num_envs": 4, "batch_size": 160, "total_steps": 320, "eval_interval": 10**6, "eval_episodes": 2}
    small |= {"hidden_size": 8, "ppo_epochs": 1, "discriminator_epochs": 1, "max_episode_steps": 50}
    for name in KITCHENS:
        trainer = Trainer(preset(name, algorithm=algorithm, **small))
        trainer.run()
        assert trainer.last_evaluation.lengths.tolist() == [50, 50]
    assert preset("coordination_ring").skill_steps == 10
    assert preset("cramped_room").lambda_e == 100.0
    differing = {"task": "cramped_room_old_dynamics"}
    assert preset("cramped_room", **differing) == preset("cramped_room_old_dynamics")

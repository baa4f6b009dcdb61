import pytest
import torch
from gymnasium.spaces import Box, Discrete

from hmasd.baselines.mat import JointTransformer


@pytest.mark.parametrize("space", [Discrete(5), Box(-1.0, 1.0, (3,))], ids=["discrete", "continuous"])
def test_the_joint_transformer_scores_what_it_drew(float64, space):
    torch.manual_seed(0)
    networks = JointTransformer(n_inputs=6, n_agents=4, action_space=space, width=16, n_blocks=2)
    for parameter in networks.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    inputs = torch.randn(9, 4, 6)
    actions, log_probs, values = networks.act(inputs, torch.Generator().manual_seed(0))
    scores = networks.evaluate(inputs, actions)
    assert (scores.log_probs - log_probs).abs().max() <= 1e-10
    assert (scores.values - values).abs().max() <= 1e-10


@pytest.mark.parametrize("algorithm", ["mappo", "mat"])
def test_the_audit_holds_for_baselines(float64, collected, algorithm):
    assert collected(algorithm=algorithm).update(92)["Sync/ReplayLogProbError"] <= 1e-10


def test_absent_agents_leave_mats_values_and_networks_alone(collected):
    learned = []
    for valued in (0.0, 1000.0):
        learner = collected(algorithm="mat")
        learner.rollout.present[:, 0, 1] = False
        learner.rollout.rewards += torch.linspace(-1.0, 1.0, 23 * 4).view(23, 4)
        learner._values[:, 0, 1] += valued
        learner.update(92)
        learned.append([*learner.value_norm.state_dict().values(), *learner.networks.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*learned, strict=True))


def test_mat_learns_continuous_actions_in_float64(float64, collected):
    learner = collected(algorithm="mat", task="uav_coverage", n_agents=3)
    assert learner.update(92)["Sync/ReplayLogProbError"] <= 1e-6  # what storing actions in float32 costs


def test_mat_splits_a_pass_into_minibatches_of_whole_env_steps(collected, monkeypatch):
    given = {}
    for parts in (1, 3):
        learner = collected(algorithm="mat", num_minibatches=parts, ppo_epochs=2)
        stream = learner.generator.clone_state()
        calls = given[parts] = []
        monkeypatch.setattr(learner, "_gradient_step", lambda *samples, calls=calls: calls.append(samples) or {})
        learner.update(92)
    (whole, again), split = given[1], given[3]
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(whole, again, strict=True))
    expected = [rows for _ in range(2) for rows in torch.randperm(92, generator=stream).chunk(3)]
    assert len(split) == len(expected) == 6
    for samples, rows in zip(split, expected, strict=True):
        for part, everything in zip(samples, whole, strict=True):
            assert part is everything is None or torch.equal(part, everything[rows])


@pytest.mark.parametrize("algorithm", ["mappo", "mat"])
def test_baselines_learn_a_bandit(collected, algorithm):
    """Whoever plays action 2 is rewarded at once: after some updates on fresh batches it is played most of the time."""
    from hmasd.tasks import make_env
    from hmasd.training.collection import Collector

    learner = collected(algorithm=algorithm, gamma=0.0, ppo_epochs=8, batch_size=4 * 25, entropy_low=0.0)
    collector = Collector(make_env(learner.config, 4, 0), 0)
    for _ in range(8):
        learner.rollout.rewards[:] = (learner.rollout.actions == 2).sum(-1).float()
        learner.update(0)
        collector.collect(learner, 25)
    assert (learner.rollout.actions == 2).double().mean() > 0.7

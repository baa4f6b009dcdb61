from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from apexrl.algorithms import analytic as analytic_gradients
from apexrl.algorithms.actor_critic import ActorCritic, FlatParameters
from apexrl.algorithms.losses import value_loss
from apexrl.algorithms.ppo import PPO
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.models import GRUActor, GRUCritic, MLPActor, MLPCritic, MLPDiscreteActor
from apexrl.storage.samples import Samples

OBS = Box(-np.inf, np.inf, (5,))


def build(discrete, **options):
    torch.manual_seed(1)
    actor = MLPDiscreteActor(OBS, Discrete(3), **options) if discrete else MLPActor(OBS, Box(-1, 1, (2,)), **options)
    policy = ActorCritic(actor, MLPCritic(OBS, hidden_dims=(16, 8))).double()
    for parameter in policy.parameters():  # away from the small initial values, so that every term matters
        torch.nn.init.normal_(parameter, std=0.4)
    return policy


def autograd(policy, cfg, parameters):
    """PPO's loss and gradient by autograd, for any policy."""
    agent = PPO.__new__(PPO)
    agent.policy, agent.cfg, agent._parameters = policy, cfg, parameters
    return agent.autograd


def draw(policy, rows=33):
    generator = torch.Generator().manual_seed(2)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    obs = normal(rows, 5)
    with torch.no_grad():
        distribution = policy.distribution(policy.actor(obs))
        actions = distribution.sample(generator)
        old = distribution.log_prob(actions) + 0.4 * normal(rows)  # many ratios leave the clip range
        values = policy.critic(obs) + 0.3 * normal(rows)
    return Samples(
        observations=obs,
        critic_observations=obs,
        actions=actions,
        log_probs=old,
        advantages=normal(rows),
        returns=normal(rows),
        values=values,
    )


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
@pytest.mark.parametrize(
    "options",
    [{}, {"ent_coef": 0.1}, {"clip_range_vf": 0.2, "huber_delta": 0.5}, {"clip_range_vf": 0.1, "vf_coef": 2.0}],
)
def test_equals_autograd_in_float64(discrete, activation, options):
    policy, cfg = build(discrete, activation=activation, hidden_dims=(12, 7)), PPOConfig(**options)
    samples, parameters = draw(policy), FlatParameters(policy)
    expected = autograd(policy, cfg, parameters)(samples)
    wanted = parameters.gradient.clone()
    parameters.gradient.fill_(7.0)
    assert analytic_gradients.applies_to(policy, samples, 64)
    result = analytic_gradients.AnalyticGradients(policy, cfg, parameters)(samples)
    torch.testing.assert_close(parameters.gradient, wanted, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(result.log_probs, expected.log_probs, rtol=1e-12, atol=1e-12)
    assert result.losses.tolist() == pytest.approx(expected.losses.tolist(), rel=1e-6)


def test_values_within_the_clip_range_learn_whatever_rounding_does():
    """In float32, old + (value − old) may be one rounding away from value, and then its error the larger of the two."""
    generator = torch.Generator().manual_seed(0)
    old, target, values = (0.05 * torch.randn(2000, generator=generator) for _ in range(3))
    values.requires_grad_()
    value_loss(values, target, old, 0.2).backward()
    gradients = analytic_gradients.AnalyticGradients.__new__(analytic_gradients.AnalyticGradients)
    gradients._cfg = PPOConfig(clip_range_vf=0.2, vf_coef=1.0)
    _, slope = gradients._value(values.detach().numpy(), SimpleNamespace(returns=target, values=old))
    torch.testing.assert_close(torch.from_numpy(slope), values.grad)


@pytest.mark.parametrize("activation", ["tanh", "elu"])
def test_large_products_are_torchs_and_equal_autograd(activation, monkeypatch):
    monkeypatch.setattr(analytic_gradients, "_SMALL_PRODUCT", 0)
    monkeypatch.setattr(np, "matmul", None)  # numpy's BLAS has threads that torch.set_num_threads does not limit
    policy, cfg = build(discrete=False, activation=activation, hidden_dims=(24, 7)), PPOConfig()
    samples, parameters = draw(policy), FlatParameters(policy)
    autograd(policy, cfg, parameters)(samples)
    wanted = parameters.gradient.clone()
    analytic_gradients.AnalyticGradients(policy, cfg, parameters)(samples)
    torch.testing.assert_close(parameters.gradient, wanted, rtol=1e-10, atol=1e-12)


def test_deviation_outside_its_range_gets_no_gradient():
    policy, cfg = build(discrete=False), PPOConfig(ent_coef=0.1)
    policy.actor.head.log_std.data[:] = torch.tensor([5.0, 0.1])  # the range ends at 2
    samples, parameters = draw(policy), FlatParameters(policy)
    autograd(policy, cfg, parameters)(samples)
    wanted = parameters.gradient.clone()
    analytic_gradients.AnalyticGradients(policy, cfg, parameters)(samples)
    torch.testing.assert_close(parameters.gradient, wanted, rtol=1e-10, atol=1e-12)
    assert policy.actor.head.log_std.grad[0].item() == 0.0


def test_large_minibatches_are_left_to_autograd_when_it_has_several_threads(monkeypatch):
    policy, large = build(discrete=True), analytic_gradients.LARGEST_MINIBATCH + 1
    samples = draw(policy)
    for threads, applies in ((1, True), (4, False)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert analytic_gradients.applies_to(policy, samples, large) is applies


def test_applies_only_to_what_it_differentiates():
    plain = build(discrete=True)
    samples = draw(plain)

    class Doubled(MLPDiscreteActor):
        def forward(self, obs):
            return 2.0 * super().forward(obs)

    gru = ActorCritic(GRUActor(OBS, Box(-1, 1, (2,))), GRUCritic(OBS))
    assert analytic_gradients.applies_to(plain, samples, 64)
    assert not analytic_gradients.applies_to(ActorCritic(Doubled(OBS, Discrete(3)), MLPCritic(OBS)), samples, 64)
    assert not analytic_gradients.applies_to(build(discrete=True, layer_norm=True), samples, 64)
    assert not analytic_gradients.applies_to(build(discrete=True, activation="gelu"), samples, 64)
    assert not analytic_gradients.applies_to(build(discrete=False, squash=True), samples, 64)
    assert not analytic_gradients.applies_to(build(discrete=False, state_dependent_std=True), samples, 64)
    assert not analytic_gradients.applies_to(gru, samples, 64)

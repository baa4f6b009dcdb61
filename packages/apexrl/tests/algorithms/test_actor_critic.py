import pytest
import torch
from torch import nn

from apexrl.agent import MultiAgentRunner, OnPolicyRunner
from apexrl.algorithms.actor_critic import FlatParameters
from apexrl.models import Actor, Critic
from apexrl.models.heads import NetworkOutputError


def test_the_module_computes_with_the_buffer_and_gradients_arrive_in_it():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    before = module(torch.ones(1, 3)).item()
    parameters = FlatParameters(module)
    assert module(torch.ones(1, 3)).item() == before
    module(torch.ones(1, 3)).sum().backward()
    assert parameters.gradient.norm() > 0
    parameters.flat.data.zero_()
    assert module(torch.ones(1, 3)).item() == 0.0


def test_attach_gathers_parameters_that_were_moved():
    module = nn.Linear(3, 2)
    parameters = FlatParameters(module)
    module.double()
    parameters.attach()
    assert parameters.flat.dtype is torch.float64
    parameters.flat.data.fill_(2.0)
    assert module.weight.unique().tolist() == [2.0]
    assert module.weight.grad is not None


def test_load_state_dict_writes_into_the_buffer():
    module, other = nn.Linear(3, 2), nn.Linear(3, 2)
    parameters = FlatParameters(module)
    module.load_state_dict(other.state_dict())
    torch.testing.assert_close(parameters.flat.data, torch.cat([other.weight.detach().flatten(), other.bias.detach()]))


def test_clip_scales_only_what_is_too_long():
    parameters = FlatParameters(nn.Linear(3, 1))
    parameters.gradient.copy_(torch.tensor([3.0, 0.0, 4.0, 0.0]))
    assert parameters.clip(10.0).item() == 5.0
    assert parameters.gradient.norm().item() == 5.0
    assert parameters.clip(1.0).item() == 5.0
    torch.testing.assert_close(parameters.gradient.norm(), torch.tensor(1.0))
    assert torch.isfinite(parameters.clip(float("inf")))


class Wide(Actor):
    """Gives seven numbers whatever the actions are."""

    def __init__(self, observation_space, action_space):
        super().__init__(observation_space, action_space)
        self.last = nn.Linear(self.obs_dim, 7)

    def forward(self, obs):
        return self.last(obs)


class Column(Critic):
    """Forgets to squeeze."""

    def __init__(self, observation_space):
        super().__init__(observation_space)
        self.network = nn.Linear(self.obs_dim, 1)

    def forward(self, obs):
        return self.network(obs)


def test_networks_with_another_number_of_outputs_are_refused(scripted_env, scripted_team):
    with pytest.raises(NetworkOutputError, match=r"actor's forward returned \[2, 7\].* takes 2 numbers"):
        OnPolicyRunner(scripted_env(), actor_class=Wide, show_progress=False).learn(num_iterations=1)
    for runner, env in ((OnPolicyRunner, scripted_env()), (MultiAgentRunner, scripted_team())):
        with pytest.raises(NetworkOutputError, match=r"Column\.forward returned .* End forward with \.squeeze\(-1\)"):
            runner(env, critic_class=Column, show_progress=False).learn(num_iterations=1)

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch import nn

from apexrl.models import (
    Actor,
    CNNActor,
    CNNCritic,
    CNNDiscreteActor,
    DictActor,
    DictCritic,
    GRUCritic,
    GRUDiscreteActor,
    MLPActor,
    MLPCritic,
    MLPDiscreteActor,
    default_actor_class,
    default_critic_class,
    make_actor,
    make_critic,
)
from apexrl.models.factory import NetworkOptionError, make_network
from apexrl.spaces import PackedBox

OBS, IMAGE = Box(-1, 1, (3,)), Box(0, 255, (40, 40, 3), np.uint8)
CAR = PackedBox({"camera": Box(0, 1, (8, 8, 3)), "speed": OBS})


@pytest.mark.parametrize(
    ("obs", "action", "actor", "critic"),
    [
        (OBS, Discrete(2), MLPDiscreteActor, MLPCritic),
        (OBS, Box(-1, 1, (2,)), MLPActor, MLPCritic),
        (IMAGE, Discrete(2), CNNDiscreteActor, CNNCritic),
        (IMAGE, Box(-1, 1, (2,)), CNNActor, CNNCritic),
        (CAR, Discrete(2), DictActor, DictCritic),
        (PackedBox({"speed": OBS}), Discrete(2), MLPDiscreteActor, MLPCritic),
    ],
)
def test_the_spaces_decide_the_networks(obs, action, actor, critic):
    assert default_actor_class(obs, action) is actor
    assert default_critic_class(obs) is critic
    assert type(make_actor(None, obs, action, {})) is actor
    assert type(make_critic(None, obs, {})) is critic


@pytest.mark.parametrize("name", ["hidden_dims", "hidden_sizes", "net_arch"])
@pytest.mark.parametrize("network", [MLPDiscreteActor, GRUDiscreteActor])
def test_names_of_other_libraries_are_understood(network, name):
    torch.manual_seed(0)
    expected = network(OBS, Discrete(2), hidden_dims=[7], activation="relu")
    torch.manual_seed(0)
    made = make_network(network, OBS, Discrete(2), options={name: [7], "activation_fn": nn.ReLU})
    for (key, a), (other, b) in zip(expected.state_dict().items(), made.state_dict().items(), strict=True):
        assert key == other
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("network", "spaces", "options", "words"),
    [
        (
            MLPCritic,
            [OBS],
            {"hiden_dims": [3]},
            r"MLPCritic does not take hiden_dims=\[3\].*Perhaps hidden_dims was meant",
        ),
        (GRUCritic, [OBS], {"colour": "red"}, r"colour='red'. It takes activation, head_dims, .*rnn_hidden_dim"),
        (CNNActor, [IMAGE, Box(-1, 1, (1,))], {"lstm_hidden_size": 3}, "It takes activation, channels_last"),
        (MLPActor, [OBS, Box(-1, 1, (1,))], {"sqash": True}, "Perhaps squash was meant"),
        (MLPCritic, [OBS], {"hidden_dims": [3], "hidden_sizes": [4]}, "does not take hidden_sizes"),
    ],
)
def test_other_options_are_answered_with_the_known_ones(network, spaces, options, words):
    with pytest.raises(NetworkOptionError, match=words):
        make_network(network, *spaces, options=options)


def test_networks_of_your_own_keep_their_names():
    class Custom(Actor):
        def __init__(self, observation_space, action_space, hidden_sizes=(2,), **rest):
            super().__init__(observation_space, action_space)
            self.received = (hidden_sizes, rest)

        def forward(self, obs):
            return obs

    made = make_network(Custom, OBS, Discrete(2), options={"hidden_sizes": [5], "net_arch": [6]})
    assert made.received == ([5], {"net_arch": [6]})

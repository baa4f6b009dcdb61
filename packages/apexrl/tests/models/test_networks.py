import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from torch import nn

from apexrl.models import (
    Actor,
    CNNActor,
    CNNCritic,
    CNNDiscreteActor,
    GRUActor,
    GRUCritic,
    GRUDiscreteActor,
    MLPActor,
    MLPCritic,
    MLPDiscreteActor,
    SetEncoder,
    make_mlp,
)

OBS = Box(-1, 1, (3,))
IMAGE = Box(0, 255, (36, 36, 3), np.uint8)


def test_shapes_of_mlp_outputs():
    obs = torch.randn(2, 5, 3)
    assert MLPActor(OBS, Box(-1, 1, (2,)), hidden_dims=[16]).distribution(obs).sample().shape == (2, 5, 2)
    assert MLPDiscreteActor(OBS, Discrete(4)).distribution(obs).sample().shape == (2, 5)
    assert MLPDiscreteActor(OBS, MultiDiscrete([2, 2])).distribution(obs).sample().shape == (2, 5, 2)
    assert MLPCritic(OBS)(obs).shape == (2, 5)


def test_observations_of_more_dimensions_are_flattened():
    space = Box(-1, 1, (2, 3))
    actor = MLPDiscreteActor(space, Discrete(2))
    obs = torch.randn(4, 2, 3)
    flat = MLPDiscreteActor(Box(-1, 1, (6,)), Discrete(2))
    flat.load_state_dict(actor.state_dict())
    torch.testing.assert_close(actor(obs), flat(obs.reshape(4, 6)))


@pytest.mark.parametrize(
    ("cls", "space", "other"),
    [
        (MLPActor, Discrete(2), "MLPDiscreteActor"),
        (MLPDiscreteActor, Box(-1, 1, (1,)), "MLPActor"),
        (GRUActor, Discrete(2), "GRUDiscreteActor"),
        (GRUDiscreteActor, Box(-1, 1, (1,)), "GRUActor"),
        (CNNActor, Discrete(2), "CNNDiscreteActor"),
        (CNNDiscreteActor, Box(-1, 1, (1,)), "CNNActor"),
    ],
)
def test_the_wrong_actor_names_the_right_one(cls, space, other):
    with pytest.raises(TypeError, match=other):
        cls(IMAGE if "CNN" in cls.__name__ else OBS, space)


def test_errors_of_construction():
    with pytest.raises(ValueError, match="Unknown activation 'sin'"):
        MLPCritic(OBS, activation="sin")
    with pytest.raises(ValueError, match="positive"):
        MLPCritic(OBS, hidden_dims=[0])
    with pytest.raises(TypeError, match="no single shape"):
        MLPCritic(Dict({"a": OBS}))
    with pytest.raises(ValueError, match="three dimensions"):
        CNNCritic(OBS)
    with pytest.raises(ValueError, match="too small"):
        CNNCritic(Box(0, 255, (3, 20, 20), np.uint8), conv_layers=[(32, 8, 4), (64, 4, 2), (64, 3, 1)])
    with pytest.raises(ValueError, match="num_heads must divide"):
        SetEncoder(3, dim=6, num_heads=4)
    with pytest.raises(TypeError, match="unexpected keyword"):
        MLPActor(OBS, Box(-1, 1, (1,)), hiden_dims=[3])


def test_initial_policy_is_nearly_uniform_and_layers_are_orthogonal():
    actor = MLPDiscreteActor(OBS, Discrete(4))
    entropy = actor.distribution(torch.randn(64, 3)).entropy()
    torch.testing.assert_close(entropy, torch.full((64,), np.log(4).item()), atol=1e-3, rtol=0)
    weight = make_mlp(8, (8,), None)[0].weight
    torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(8), atol=1e-4, rtol=0)


def test_a_custom_network_takes_few_lines():
    class Custom(Actor):
        def __init__(self, observation_space, action_space, width=16):
            super().__init__(observation_space, action_space)
            self.body = nn.Sequential(nn.Linear(self.obs_dim, width), nn.ELU())
            self.last = nn.Linear(width, self.head.num_inputs)

        def forward(self, obs):
            return self.last(self.body(obs))

    for space in (Box(-1, 1, (2,)), Discrete(3), MultiDiscrete([2, 3])):
        dist = Custom(OBS, space, width=8).distribution(torch.randn(4, 3))
        assert dist.log_prob(dist.sample()).shape == (4,)


def test_bytes_and_floats_of_one_image_agree():
    actor = CNNDiscreteActor(IMAGE, Discrete(3))
    image = torch.randint(0, 256, (2, 36, 36, 3), dtype=torch.uint8)
    floats = CNNDiscreteActor(Box(0, 1, (36, 36, 3)), Discrete(3))
    floats.load_state_dict(actor.state_dict())
    torch.testing.assert_close(actor(image), floats(image / 255.0))
    assert CNNCritic(IMAGE)(image.expand(3, 2, 36, 36, 3)).shape == (3, 2)


def test_channels_first_and_last_agree():
    last = CNNActor(Box(0, 1, (40, 36, 3)), Box(-1, 1, (2,)))
    first = CNNActor(Box(0, 1, (3, 40, 36)), Box(-1, 1, (2,)))
    first.load_state_dict(last.state_dict())
    image = torch.rand(2, 40, 36, 3)
    torch.testing.assert_close(last(image), first(image.permute(0, 3, 1, 2)))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_sequence_equals_its_steps_with_resets(dtype, tolerance, layers):
    torch.manual_seed(0)
    length, batch = 30, 4
    actor = GRUActor(OBS, Box(-1, 1, (2,)), rnn_num_layers=layers, rnn_hidden_dim=16, layer_norm=True).to(dtype)
    critic = GRUCritic(OBS, rnn_num_layers=layers, rnn_hidden_dim=16).to(dtype)
    obs = torch.randn(length, batch, 3, dtype=dtype)
    starts = torch.rand(length, batch) < 0.15
    starts[7] = True
    for model in (actor, critic):
        state = torch.randn_like(model.initial_state(batch))
        whole, after = model(obs, state, starts)
        steps = []
        for t in range(length):
            out, state = model(obs[t : t + 1], state, starts[t : t + 1])
            steps.append(out)
        torch.testing.assert_close(torch.cat(steps), whole, atol=tolerance, rtol=0)
        torch.testing.assert_close(state, after, atol=tolerance, rtol=0)


def test_a_start_forgets_everything_even_nan():
    actor = GRUDiscreteActor(OBS, Discrete(3), rnn_hidden_dim=8)
    obs = torch.randn(1, 2, 3)
    spoiled = torch.full_like(actor.initial_state(2), float("nan"))
    out, _ = actor(obs, spoiled, torch.ones(1, 2, dtype=torch.bool))
    fresh, _ = actor(obs, actor.initial_state(2), torch.zeros(1, 2, dtype=torch.bool))
    assert torch.equal(out, fresh)


def test_gradients_do_not_cross_an_episode_start():
    actor = GRUDiscreteActor(OBS, Discrete(3), rnn_hidden_dim=8)
    obs = torch.randn(4, 1, 3, requires_grad=True)
    starts = torch.tensor([[True], [False], [True], [False]])
    out, _ = actor(obs, actor.initial_state(1), starts)
    out[3].sum().backward()
    assert (obs.grad[:2] == 0).all()
    assert (obs.grad[2:] != 0).any()


def test_recurrent_distribution_takes_masks():
    actor = GRUDiscreteActor(OBS, Discrete(3))
    mask = torch.tensor([True, False, False]).expand(5, 2, 3)
    dist, state = actor.distribution(
        torch.randn(5, 2, 3), actor.initial_state(2), torch.zeros(5, 2, dtype=torch.bool), mask
    )
    assert (dist.sample() == 0).all()
    assert state.shape == (2, 1, 64)


def test_a_set_encoder_is_equivariant_and_blind_to_absent_elements():
    torch.manual_seed(0)
    encoder = SetEncoder(4, dim=16, num_heads=2, num_layers=2).double()
    elements = torch.randn(3, 6, 4).double()
    mask = torch.tensor([[1, 1, 1, 0, 0, 1], [1, 0, 0, 0, 0, 0], [0] * 6]).bool()
    encoded, pooled = encoder(elements, mask)
    order = torch.randperm(6)
    moved, moved_pooled = encoder(elements[:, order], mask[:, order])
    torch.testing.assert_close(moved, encoded[:, order])
    torch.testing.assert_close(moved_pooled, pooled)
    noise = torch.where(mask.unsqueeze(-1), elements, torch.randn(3, 6, 4).double() * 100)
    torch.testing.assert_close(encoder(noise, mask)[1], pooled)
    assert (encoded[~mask] == 0).all()
    assert (pooled[2] == 0).all()
    pooled.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in encoder.parameters())


def test_a_set_encoder_takes_any_batch():
    encoder = SetEncoder(4)
    encoded, pooled = encoder(torch.randn(2, 3, 5, 4), torch.ones(2, 3, 5, dtype=torch.bool))
    assert encoded.shape == (2, 3, 5, 64)
    assert pooled.shape == (2, 3, 64)

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch import nn

from apexrl.models import (
    CNNEncoder,
    DictActor,
    DictCritic,
    DictEncoder,
    EncodedActor,
    GRUDiscreteActor,
    RunningObservationNormalizer,
    VectorEncoder,
)
from apexrl.models.encoders import default_encoder_class, picture_side
from apexrl.spaces import PackedBox

CAMERA = Box(0, 1, (8, 8, 3))
CAR = PackedBox({"camera": CAMERA, "nested.speed": Box(-1, 1, (2,)), "gear": Box(0, 1, (3,))})


def bytes_of(*shape):
    return Box(0, 255, shape, np.uint8)


def test_parts_are_encoded_apart_and_joined():
    torch.manual_seed(0)
    encoder = DictEncoder(CAR, encoders={"nested.speed": {"hidden_dims": [5]}}, hidden_dims=[16])
    kinds = [type(part) for part in encoder.encoders]
    assert kinds == [CNNEncoder, VectorEncoder, VectorEncoder]
    assert encoder.join[0].in_features == 256 + 5 + 3
    obs = torch.rand(4, 6, 8 * 8 * 3 + 2 + 3)
    parts = CAR.split(obs)
    by_hand = torch.cat(
        [
            encoder.encoders[0](parts["camera"]),
            torch.tanh(encoder.encoders[1][0](parts["nested.speed"])),
            parts["gear"],
        ],
        dim=-1,
    )
    torch.testing.assert_close(encoder(obs), encoder.join(by_hand))
    assert encoder(obs).shape == (4, 6, 16)


def test_a_part_may_have_an_encoder_of_its_own():
    class Mean(nn.Module):
        num_features = 1

        def __init__(self, space):
            super().__init__()
            self.dims = len(space.shape)

        def forward(self, values):
            return values.flatten(-self.dims).mean(-1, keepdim=True)

    encoder = DictEncoder(CAR, encoders={"camera": Mean}, hidden_dims=[])
    obs = torch.rand(2, 197)
    assert encoder.num_features == 1 + 2 + 3
    torch.testing.assert_close(encoder(obs)[:, 0], obs[:, :192].mean(1))


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"keys \['lidar'\]; the observation has \['camera'"):
        DictEncoder(CAR, encoders={"lidar": {}})
    with pytest.raises(TypeError, match="needs the parts of a Dict"):
        DictEncoder(Box(-1, 1, (3,)))


def test_dict_networks_act_and_value():
    obs = torch.rand(5, 197)
    for space in (Box(-1, 1, (2,)), Discrete(4)):
        distribution = DictActor(CAR, space, hidden_dims=[32]).distribution(obs)
        assert distribution.log_prob(distribution.sample()).shape == (5,)
    assert DictActor(CAR, Box(-1, 1, (2,)), log_std_init=-1.0).head.log_std.tolist() == [-1.0, -1.0]
    assert DictCritic(CAR)(obs).shape == (5,)


@pytest.mark.parametrize(
    ("space", "encoder"),
    [
        (bytes_of(84, 84, 3), CNNEncoder),
        (bytes_of(4, 84, 84), CNNEncoder),
        (bytes_of(10, 10, 3), CNNEncoder),
        (bytes_of(7, 7, 3), CNNEncoder),
        (bytes_of(3, 3, 1), CNNEncoder),
        (bytes_of(128), VectorEncoder),
        (bytes_of(1, 5, 1), VectorEncoder),
        (Box(-1, 1, (84, 84, 3)), VectorEncoder),
        (CAR, DictEncoder),
        (PackedBox({"a": Box(-1, 1, (2,)), "b": Box(-1, 1, (3,))}), VectorEncoder),
    ],
)
def test_the_observation_decides_the_encoder(space, encoder):
    assert default_encoder_class(space) is encoder
    made = encoder(space)
    obs = torch.as_tensor(np.stack([space.sample() for _ in range(3)]))
    assert made(obs).shape == (3, made.num_features)


def test_the_side_of_a_picture_is_not_its_channels():
    assert picture_side(bytes_of(84, 60, 3)) == picture_side(bytes_of(3, 60, 84)) == 60
    assert picture_side(Box(-1, 1, (3,))) == 0


def test_normalised_pictures_are_not_divided_again():
    space = bytes_of(8, 8, 3)
    encoder = CNNEncoder(space)
    image = torch.randint(0, 256, (5, 8, 8, 3), dtype=torch.uint8)
    normalizer = RunningObservationNormalizer(space.shape)
    normalizer.update(image)
    normalised = normalizer(image)
    floats = CNNEncoder(Box(-np.inf, np.inf, (8, 8, 3)))
    floats.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(encoder(normalised), floats(normalised))
    torch.testing.assert_close(encoder(image), floats(image / 255.0))


def test_memory_over_pictures():
    actor = GRUDiscreteActor(bytes_of(8, 8, 3), Discrete(3))
    assert isinstance(actor.encoder, CNNEncoder)
    obs = torch.randint(0, 256, (5, 2, 8, 8, 3), dtype=torch.uint8)
    outputs, state = actor(obs, actor.initial_state(2), torch.zeros(5, 2, dtype=torch.bool))
    assert outputs.shape == (5, 2, 3)
    assert state.shape == (2, 1, 64)


def test_an_encoder_of_your_own_makes_an_actor():
    class Squares(nn.Module):
        def __init__(self, space, power=2):
            super().__init__()
            self.num_features, self.power = space.shape[0], power

        def forward(self, obs):
            return obs**self.power

    class SquareActor(EncodedActor):
        encoder_class = Squares

    actor = SquareActor(Box(-1, 1, (3,)), Discrete(2), power=4)
    obs = torch.randn(6, 3)
    torch.testing.assert_close(actor(obs), actor.output(obs**4))

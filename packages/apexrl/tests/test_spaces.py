import copy
import pickle

import numpy as np
import pytest
import torch
from gymnasium import spaces

from apexrl.spaces import PackedBox, is_image, observation_array, pack_space

SPACE = spaces.Dict(
    {
        "camera": spaces.Box(0, 255, (4, 4, 3), np.uint8),
        "gear": spaces.Discrete(3),
        "nested": spaces.Tuple([spaces.Box(-1, 1, (2,)), spaces.MultiBinary(2)]),
    }
)


def test_parts_and_scales_follow_gymnasiums_order():
    packed, scale = pack_space(SPACE)
    assert {name: part.shape for name, part in packed.parts.items()} == {
        "camera": (4, 4, 3),
        "gear": (3,),
        "nested.0": (2,),
        "nested.1": (2,),
    }
    assert packed.shape == scale.shape == (48 + 3 + 2 + 2,)
    sample = SPACE.sample()
    by_gymnasium = spaces.flatten(SPACE, sample) * scale
    np.testing.assert_allclose(packed.pack(sample), by_gymnasium, rtol=1e-6)
    assert packed.contains(packed.pack(sample))


def test_packing_takes_batches_and_splitting_gives_them_back():
    packed, _ = pack_space(SPACE)
    samples = [SPACE.sample() for _ in range(5)]
    batch = {
        "camera": np.stack([s["camera"] for s in samples]),
        "gear": np.array([s["gear"] for s in samples]),
        "nested": tuple(np.stack([s["nested"][i] for s in samples]) for i in range(2)),
    }
    rows = packed.pack(batch)
    np.testing.assert_array_equal(rows, np.stack([packed.pack(sample) for sample in samples]))
    parts = packed.split(torch.from_numpy(rows))
    np.testing.assert_allclose(parts["camera"], batch["camera"] / 255.0, rtol=1e-6)
    assert parts["gear"].argmax(-1).tolist() == batch["gear"].tolist()


def test_missing_and_misshapen_parts_are_named():
    packed, _ = pack_space(SPACE)
    sample = SPACE.sample()
    with pytest.raises(ValueError, match=r"no part 'nested\.1'"):
        packed.pack(sample | {"nested": sample["nested"][:1]})
    with pytest.raises(ValueError, match=r"'camera' has shape \(2, 2\)"):
        packed.pack(sample | {"camera": np.zeros((2, 2))})


def test_copies_are_equal_and_other_parts_are_not():
    packed, _ = pack_space(SPACE)
    assert copy.deepcopy(packed) == pickle.loads(pickle.dumps(packed)) == packed
    assert packed != spaces.Box(packed.low, packed.high)
    assert packed != PackedBox({"all": spaces.Box(packed.low, packed.high)})
    assert "gear: Box(0.0, 1.0, (3,), float32)" in repr(packed)


def test_pictures_are_bytes_of_three_dimensions():
    assert is_image(spaces.Box(0, 255, (4, 4, 3), np.uint8))
    assert not is_image(spaces.Box(0, 255, (4, 4), np.uint8))
    assert not is_image(spaces.Box(0, 1, (4, 4, 3)))


def test_a_part_without_a_size_is_refused():
    with pytest.raises(TypeError, match="part 'words' of the observation has no fixed size"):
        pack_space(spaces.Dict({"words": spaces.Sequence(spaces.Discrete(2))}))


def test_observations_as_environments_give_them():
    packed, _ = pack_space(SPACE)
    sample = SPACE.sample()
    np.testing.assert_array_equal(observation_array(packed, sample), packed.pack(sample))
    assert observation_array(spaces.Box(0, 1, (4,)), np.int64(2)).tolist() == [0, 0, 1, 0]
    assert observation_array(spaces.Box(0, 1, (2,)), [0.5, 1]).tolist() == [0.5, 1]
    tensor = torch.zeros(3)
    assert observation_array(spaces.Box(0, 1, (3,)), tensor) is tensor

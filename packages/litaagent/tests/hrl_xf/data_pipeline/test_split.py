"""Configurations are never divided, and every split with a share gets its part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.hrl_xf.data_pipeline.split import WorldSplit, assign

SEEDS = st.lists(st.integers(0, 2**62), min_size=1, max_size=60, unique=True)
RATIOS = st.sampled_from([(0.85, 0.10, 0.05), (0.9, 0.1, 0.0), (1.0, 0.0, 0.0), (0.5, 0.25, 0.25)])


@given(seeds=SEEDS, seed=st.integers(0, 9), ratios=RATIOS)
def test_every_configuration_has_exactly_one_split(seeds, seed, ratios):
    splits = assign(seeds, seed, ratios)
    assert sorted(number for numbers in splits.values() for number in numbers) == list(range(len(seeds)))
    for (split, numbers), ratio in zip(splits.items(), ratios, strict=True):
        if ratio == 0:
            assert not numbers, split
        elif len(seeds) >= 3:
            assert numbers, split
        assert abs(len(numbers) - ratio * len(seeds)) <= 2


@given(seeds=SEEDS, seed=st.integers(0, 9))
def test_the_order_of_folders_does_not_matter(seeds, seed):
    forward, backward = assign(seeds, seed, (0.5, 0.25, 0.25)), assign(seeds[::-1], seed, (0.5, 0.25, 0.25))
    last = len(seeds) - 1
    for split, numbers in forward.items():
        assert {seeds[n] for n in numbers} == {seeds[last - n] for n in backward[split]}


def test_another_seed_gives_another_split():
    seeds = list(range(100, 140))
    assert len({assign(seeds, seed, (0.5, 0.25, 0.25))["test"] for seed in range(5)}) == 5


@pytest.mark.parametrize("ratios", [(0.5, 0.5, 0.5), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1)])
def test_ratios_that_make_no_split_are_refused(ratios):
    with pytest.raises(DatasetError, match="sum to 1"):
        DatasetOptions(ratios=ratios)


def test_worlds_of_a_configuration_stay_together(dataset):
    split = WorldSplit.read(dataset.folder)
    assert split == dataset.split
    seen = {}
    for name in split.names:
        for row in dataset.micro.rows(name)[::50].tolist():
            config = int(dataset.micro["config"][row])
            assert seen.setdefault(config, name) == name
    assert len(seen) == 3
    assert sum(split.n_worlds(name) for name in split.names) == dataset.manifest["counts"]["worlds"]


def test_paths_are_relative_and_digests_are_kept(dataset):
    assert list(dataset.split.records) == ["records"]
    assert dataset.split.records == dataset.manifest["sources"]
    assert "/" not in (dataset.folder / "world_split.json").read_text().replace("litaagent.world_split", "")


def test_a_file_that_is_no_split_is_refused(tmp_path):
    (tmp_path / "world_split.json").write_text("[1, 2]")
    with pytest.raises(DatasetError, match="holds a list"):
        WorldSplit.read(tmp_path)
    (tmp_path / "world_split.json").write_text('{"format": "something"}')
    with pytest.raises(DatasetError, match="not marked"):
        WorldSplit.read(tmp_path)
    (tmp_path / "world_split.json").write_text('{"format": "litaagent.world_split", "seed": 1}')
    with pytest.raises(DatasetError, match="ratios"):
        WorldSplit.read(tmp_path)
    with pytest.raises(DatasetError, match="there is no"):
        WorldSplit.read(tmp_path / "elsewhere.json")

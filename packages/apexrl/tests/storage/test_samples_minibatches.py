import torch
from hypothesis import given
from hypothesis import strategies as st

from apexrl.storage.samples import Samples, as_sequences, even_sizes, minibatches


def numbered(count):
    numbers = torch.arange(count).float()
    return Samples(
        observations=numbers.unsqueeze(1),
        critic_observations=numbers.unsqueeze(1),
        actions=numbers,
        log_probs=numbers,
        advantages=numbers,
        returns=numbers,
        values=numbers,
    )


@given(st.integers(1, 500), st.integers(1, 100))
def test_parts_are_even_complete_and_small_enough(total, largest):
    sizes = even_sizes(total, largest)
    assert sum(sizes) == total
    assert max(sizes) <= largest
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 99))
def test_a_pass_shows_every_sample_once_with_its_fields_together(count, size, seed):
    seen = []
    for part in minibatches(numbered(count), size, torch.Generator().manual_seed(seed)):
        assert part.batch_size <= size
        assert torch.equal(part.observations.squeeze(1), part.log_probs)
        assert torch.equal(part.actions, part.returns)
        seen += part.log_probs.tolist()
    assert sorted(seen) == list(range(count))


def test_passes_are_shuffled_by_the_generator():
    generator = torch.Generator().manual_seed(0)
    first, second = (
        [x for part in minibatches(numbered(50), 10, generator) for x in part.log_probs.tolist()] for _ in range(2)
    )
    assert first != second


def test_sequences_keep_time_in_order_and_memories_with_their_sequence():
    steps, envs, length = 6, 2, 3
    times = torch.arange(steps).unsqueeze(1).expand(steps, envs).float()
    ids = torch.arange(envs).expand(steps, envs).float()
    code = as_sequences(times * 10 + ids, length)
    assert code[:, 0].tolist() == [0.0, 10.0, 20.0]  # first sequence of environment 0
    assert code[:, 3].tolist() == [31.0, 41.0, 51.0]  # second sequence of environment 1
    samples = Samples(
        observations=code.unsqueeze(-1),
        critic_observations=code.unsqueeze(-1),
        actions=code,
        log_probs=code,
        advantages=code,
        returns=code,
        values=code,
        episode_starts=torch.zeros(length, 4, dtype=torch.bool),
        memories={"actor": code[0].unsqueeze(1)},
    )
    for part in minibatches(samples, 6, torch.Generator().manual_seed(1)):
        assert part.log_probs.shape == (3, 2)
        assert torch.equal(part.memories["actor"].squeeze(1), part.log_probs[0])
        assert torch.equal(part.log_probs[1], part.log_probs[0] + 10)

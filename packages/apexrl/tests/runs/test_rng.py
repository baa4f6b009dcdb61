import random

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apexrl.runs.checkpoints.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from apexrl.runs.checkpoints.storable import storable
from apexrl.runs.errors import RngMismatchError
from apexrl.runs.rng import capture_rng, restore_rng

pytestmark = pytest.mark.usefixtures("global_rng")
BIT_GENERATORS = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]


def make_generators(seed: int) -> dict:
    numpy_generators = {kind.__name__: np.random.Generator(kind(seed)) for kind in BIT_GENERATORS}
    return {
        "python": random.Random(seed),
        "legacy": np.random.RandomState(seed),
        "legacy_pcg": np.random.RandomState(np.random.PCG64(seed)),
        "torch": torch.Generator().manual_seed(seed),
        **numpy_generators,
    }


def draw(generators: dict, number: int) -> list:
    """Odd numbers of normal and 32-bit draws leave half of a pair in the state."""
    drawn: list = []
    for _ in range(number):
        drawn += [random.gauss(0, 1), random.getrandbits(7), np.random.normal(), np.random.randint(9)]
        drawn += torch.randn(3).tolist()
        for generator in generators.values():
            if isinstance(generator, random.Random):
                drawn += [generator.gauss(0, 1), generator.random()]
            elif isinstance(generator, torch.Generator):
                drawn += torch.randn(3, generator=generator).tolist()
            elif isinstance(generator, np.random.RandomState):
                drawn += [generator.normal(), generator.randint(2**31)]
            else:
                drawn += [generator.normal(), int(generator.integers(2**32, dtype=np.uint32))]
    return drawn


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), before=st.integers(0, 5), between=st.integers(0, 5))
def test_restored_streams_draw_what_they_would_have_drawn(seed, before, between):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    generators = make_generators(seed)
    draw(generators, before)

    state = capture_rng(generators)
    expected = draw(generators, 3)
    draw(generators, between)
    restore_rng(state, generators)

    assert draw(generators, 3) == expected


def test_states_survive_a_checkpoint_file_and_fresh_generators(tmp_path, schema):
    generators = make_generators(5)
    draw(generators, 1)
    checkpoint = Checkpoint(schema=schema, step=1, state={}, rng=capture_rng(generators))
    save_checkpoint(tmp_path / "x.pt", checkpoint)
    expected = draw(generators, 2)
    fresh = make_generators(77)
    draw(fresh, 1)

    load_checkpoint(tmp_path / "x.pt").restore_rng(fresh)

    assert draw(fresh, 2) == expected


def test_capturing_draws_nothing_and_yields_only_storable_values():
    generators = make_generators(1)
    draw(generators, 1)
    state = capture_rng(generators)
    capture_rng(generators)
    expected = draw(generators, 1)
    restore_rng(storable(state, "rng"), generators)

    assert draw(generators, 1) == expected


def test_other_names_are_refused_and_nothing_changes():
    state = capture_rng({"env": np.random.default_rng(1)})
    draw({}, 1)
    before = random.getstate()

    with pytest.raises(RngMismatchError, match=r"\['env'\].*\['agent'\]"):
        restore_rng(state, {"agent": np.random.default_rng(1)})

    assert random.getstate() == before


@pytest.mark.parametrize(
    "other", [np.random.Generator(np.random.SFC64(1)), random.Random(1), torch.Generator(), np.random.RandomState(1)]
)
def test_other_kinds_are_refused_and_nothing_changes(other):
    state = capture_rng({"env": np.random.default_rng(1)})
    draw({}, 1)
    before = random.getstate()

    with pytest.raises(RngMismatchError, match=r"numpy\.Generator of PCG64"):
        restore_rng(state, {"env": other})

    assert random.getstate() == before


def test_a_global_numpy_stream_of_another_kind_is_refused():
    state = capture_rng()
    original = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        with pytest.raises(RngMismatchError, match=r"numpy\.random"):
            restore_rng(state)
        swapped = capture_rng()
        expected = np.random.normal()
        restore_rng(swapped)
        assert np.random.normal() == expected
    finally:
        np.random.set_bit_generator(original)


def test_missing_cuda_devices_are_reported(caplog):
    state = {**capture_rng(), "cuda": [torch.zeros(16, dtype=torch.uint8)] * (torch.cuda.device_count() + 1)}
    if torch.cuda.is_available():
        state["cuda"] = [*torch.cuda.get_rng_state_all(), state["cuda"][0]]

    restore_rng(state)

    assert "CUDA devices" in caplog.text

import numpy as np
import pytest
import torch

from apexrl.runs.errors import DivergedError
from apexrl.runs.session import Session
from litaagent_std.hrl_xf.epochs import Interrupted
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.hrl_xf.online.distillation.fitting import (
    Pairs,
    errors_of,
    fit,
    multiplications,
    new_student,
    pairs_of,
)
from litaagent_std.hrl_xf.online.hierarchy.rows import weight_size
from litaagent_std.hrl_xf.online.methods.networks import weights_of
from litaagent_std.policy.networks.inputs import L4_SIZE

CFG = DistillConfig(teacher="t", dim=4, epochs=30, learning_rate=0.01)
THREADS = 16


def rounds(rows, seed):
    """Flat rows of L4: one to four threads, of which one is asked for."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 5, rows)
    tokens = rng.normal(0, 1, (rows, THREADS, L4_SIZE))
    mask = np.arange(THREADS) < count[:, None]
    tokens[~mask] = 0.0
    own = rng.integers(0, count)
    flat = np.concatenate([tokens.reshape(rows, THREADS * L4_SIZE), mask, own[:, None]], axis=1).astype(np.float32)
    assert flat.shape[1] == weight_size()
    return flat


def parts(teacher, rows=300):
    return [pairs_of(teacher, rounds(rows, seed)) for seed in range(3)]


@pytest.fixture(scope="module")
def weigher(teacher):
    return teacher.nets["l4"]


def test_a_smaller_network_learns_most_of_what_the_teacher_says(weigher):
    train, validation, held_out = parts(weigher)
    student, report = fit(CFG, weigher, train, validation)
    assert report["best_epoch"] <= report["epochs"] <= 30
    errors = errors_of(student, held_out, train)
    assert errors["student"] < 0.8 * min(errors["mean"], errors["zero"])
    assert errors["rows"] == 300
    assert multiplications(student) < multiplications(weigher)
    np.testing.assert_array_equal(student.arrays["log_std"], weigher.arrays["log_std"])
    again, _ = fit(CFG, weigher, train, validation)
    np.testing.assert_array_equal(again.arrays["out.weight"], student.arrays["out.weight"])  # the seed decides


def test_errors_are_beside_those_of_trivial_policies(weigher):
    inputs = torch.from_numpy(rounds(2, 0))
    zero = weights_of(new_student(weigher, 4, 0), {})
    pairs = Pairs(inputs, torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1))
    errors = errors_of(zero, pairs, Pairs(inputs, torch.tensor([[1.5], [1.5]]), torch.zeros(2, 1)))
    assert errors["outputs"]["log_alpha"]["zero"] == errors["student"] == pytest.approx(5**0.5)
    assert errors["mean"] == pytest.approx(((0.25 + 2.25) / 2) ** 0.5)
    assert errors["explained"] == pytest.approx(1 - 5.0 / 1.25)


def test_nothing_to_learn_from_is_refused(weigher):
    some, none = pairs_of(weigher, rounds(5, 0)), pairs_of(weigher, rounds(0, 0))
    with pytest.raises(ValueError, match="longer worlds"):
        fit(CFG, weigher, some, none)


def test_samples_that_are_no_numbers_are_named(weigher):
    inputs = rounds(50, 0)
    inputs[17, 2] = np.inf
    with pytest.raises(DivergedError, match="inputs of sample 17 are NaN or infinite"):
        pairs_of(weigher, inputs)


def test_a_fit_stops_when_asked_to(weigher, tmp_path):
    train, validation, _ = parts(weigher, 100)
    with Session(tmp_path / "stopped") as session:
        session.stop.request()
        with pytest.raises(Interrupted):
            fit(CFG, weigher, train, validation, session.path / "fit", session)

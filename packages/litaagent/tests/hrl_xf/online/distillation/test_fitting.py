import numpy as np
import pytest

from apexrl.runs.errors import DivergedError
from apexrl.runs.session import Session
from litaagent_std.agents.online.acting import ActingNet
from litaagent_std.hrl_xf.epochs import Interrupted
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.hrl_xf.online.distillation.fitting import (
    Pairs,
    constant_net,
    errors_of,
    fit,
    multiplications,
    pairs_of,
)

LINEAR = DistillConfig(teacher="t")
NAMES = ("price", "quantity", "acceptance")


def views(rows, seed, inputs=64):
    """Inputs of very different sizes, of which one never varies."""
    values = np.random.default_rng(seed).normal(0.5, 1.0, (rows, inputs)) * np.geomspace(0.1, 5.0, inputs)
    values[:, 3] = 0.7
    return values.astype(np.float32)


def parts(teacher, rows=400):
    return [pairs_of(teacher, views(rows, seed)) for seed in range(3)]


def test_a_linear_student_is_a_linear_teacher(random_net):
    teacher = random_net("l3", (), 0.02)
    train, validation, held_out = parts(teacher)
    student, report = fit(LINEAR, teacher, train, validation)
    assert len(student.weights) == 1
    assert not student.weights[0][3].any()  # a constant says nothing
    np.testing.assert_allclose(student.mean(held_out.inputs), held_out.actions, atol=1e-3)
    assert report["ridge"] == 1e-6
    assert student.log_std is teacher.log_std


def test_hidden_layers_learn_what_no_linear_student_can(random_net):
    bent = random_net("l3", (2,), 1.0)
    teacher = ActingNet((bent.weights[0], bent.weights[1] * 2.0), bent.biases, bent.log_std)
    train, validation, held_out = parts(teacher, 1500)
    explained = []
    for hidden in ((), (4,)):
        cfg = DistillConfig(teacher="t", hidden=hidden, epochs=60, learning_rate=0.01)
        student, report = fit(cfg, teacher, train, validation)
        assert [weight.shape[1] for weight in student.weights] == [*hidden, 3]
        explained.append(errors_of(student, held_out, train.actions.mean(0), NAMES)["explained"])
    assert report["best_epoch"] <= report["epochs"] <= 60
    assert 0.5 < explained[0] < explained[1] < 1.0
    assert explained[1] > 0.95
    again, _ = fit(cfg, teacher, train, validation)
    np.testing.assert_array_equal(again.weights[0], student.weights[0])  # the seed decides everything


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_a_teacher_that_always_says_the_same_is_learned_exactly(hidden, random_net):
    teacher = constant_net(random_net("l3", (8,)), np.array([0.0, 0.5, -0.25], np.float32))
    train, validation, held_out = parts(teacher, 50)
    student, _ = fit(DistillConfig(teacher="t", hidden=hidden, epochs=2), teacher, train, validation)
    np.testing.assert_allclose(student.mean(held_out.inputs), held_out.actions, atol=1e-6)
    errors = errors_of(student, held_out, train.actions.mean(0), NAMES)
    assert errors["explained"] is None  # there was nothing to explain
    assert errors["zero"] == pytest.approx(((0.25 + 0.0625) / 3) ** 0.5)


def test_errors_are_beside_those_of_trivial_policies():
    actions = np.array([[1.0, 0.0], [3.0, 0.0]], np.float32)
    pairs = Pairs(np.zeros((2, 1), np.float32), actions)
    zeros = np.zeros((1, 2), np.float32)
    net = ActingNet((zeros,), (np.array([2.0, 9.0], np.float32),), np.zeros(2, np.float32))
    errors = errors_of(net, pairs, np.array([1.5, 0.0], np.float32), ("a", "b"))
    assert errors["outputs"]["a"] == pytest.approx(
        {"student": 1.0, "mean": (0.25 + 2.25) ** 0.5 / 2**0.5, "zero": 5**0.5}
    )
    assert errors["outputs"]["b"]["student"] == 3.0  # actions are clipped
    assert errors["student"] == pytest.approx(5**0.5)
    assert errors["explained"] == pytest.approx(1 - 5.0 / 0.625)
    assert errors["rows"] == 2


def test_multiplications_of_a_decision(random_net):
    assert multiplications(random_net("l3", (8,))) == 64 * 8 + 8 * 3


def test_nothing_to_learn_from_is_refused(random_net):
    teacher = random_net("l3", (8,))
    some, none = pairs_of(teacher, views(5, 0)), pairs_of(teacher, views(0, 0))
    with pytest.raises(ValueError, match="longer worlds"):
        fit(LINEAR, teacher, some, none)


def test_samples_that_are_no_numbers_are_named(random_net):
    teacher = random_net("l3", (2,))
    inputs = views(50, 0)
    inputs[17, 2] = np.inf
    with pytest.raises(DivergedError, match="inputs of sample 17 are NaN or infinite"):
        pairs_of(teacher, inputs)


def test_a_fit_stops_when_asked_to(random_net, tmp_path):
    cfg = DistillConfig(teacher="t", hidden=(4,), epochs=60, patience=100)
    teacher = random_net("l3", (2,), 1.0)
    train, validation, _ = parts(teacher, 100)
    with Session(tmp_path / "stopped") as session:
        session.stop.request()
        with pytest.raises(Interrupted):
            fit(cfg, teacher, train, validation, session.path / "fit", session)

import numpy as np
import pytest

from apexrl.runs.errors import ConfigMismatchError, ConfigurationError
from apexrl.runs.reading import read_sealed
from lita.main import main
from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.weights import save
from litaagent_std.hrl_xf.online.config import PoolConfig
from litaagent_std.hrl_xf.online.distillation import run as distillation
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.hrl_xf.online.distillation.run import run_distillation, teacher_file
from litaagent_std.hrl_xf.online.distillation.samples import collect, jobs_of, part_of

SMALL = {
    "worlds": 3,
    "held_out": 2,
    "days": (5,),
    "levels": 2,
    "pool": PoolConfig(slots=0, held_out=()),
    "executor": "inline",
    "quiet": True,
}


@pytest.fixture(scope="module")
def weights(teacher, tmp_path_factory):
    path = tmp_path_factory.mktemp("teacher") / "best.npz"
    save(teacher, path)
    return path


@pytest.fixture(scope="module")
def distilled(weights, tmp_path_factory):
    return run_distillation(DistillConfig(teacher=weights, output_dir=tmp_path_factory.mktemp("d") / "whole", **SMALL))


def test_parts_share_no_configuration_and_only_learning_explores(teacher):
    for worlds in (2, 3, 7, 24):
        cfg = DistillConfig(teacher="t", worlds=worlds, held_out=2, pool=SMALL["pool"])
        parts = [part_of(cfg, world) for world in range(worlds + 2)]
        assert parts.count("held_out") == 2
        assert parts.count("validation") == max(1, worlds // 5)
        assert parts.count("train") >= 1
    jobs = jobs_of(cfg, teacher)
    assert len({job.plan.seed for job in jobs}) == len(jobs) == 26
    assert [job.rng_seed is None for job in jobs] == [False] * 24 + [True] * 2


def test_samples_are_what_the_layers_saw(teacher):
    job = jobs_of(DistillConfig(teacher="t", **SMALL), teacher)[0]
    inputs = collect(job)
    assert {layer: rows.shape[1] for layer, rows in inputs.items()} == {"l2": 110, "l3": 64, "l4": 197}
    assert len(inputs["l2"]) <= 5
    np.testing.assert_array_equal(inputs["l4"][:, :64], inputs["l3"])


def test_the_student_is_smaller_and_better_than_trivial_policies(distilled, teacher):
    report = distilled.report
    student = PolicySet.load(distilled.path)
    assert student.version == teacher.version
    assert report["student"]["multiplications"] == 110 * 12 + 64 * 3 + 197 < report["teacher"]["multiplications"]
    assert report["worlds"] == {"train": 2, "validation": 1, "held_out": 2}
    error = report["error"]["l3"]  # the others have too many inputs for so few samples
    assert error["student"] < 0.7 * min(error["mean"], error["zero"])
    agreement = report["agreement"]
    assert agreement["student"]["decisions"] == agreement["zero"]["decisions"] > 20
    assert agreement["student"]["same_decision"] > agreement["zero"]["same_decision"]
    assert report["score"]["worlds"] == 2
    assert report["cpu"]["networks_us"]["student"] < report["cpu"]["networks_us"]["teacher"]
    assert read_sealed(distilled.path.parent / "report.json") == report


def test_an_interrupted_distillation_resumes_to_the_same_result(weights, distilled, tmp_path, monkeypatch):
    cfg = DistillConfig(teacher=weights, output_dir=tmp_path / "parts", **SMALL)
    for name, after in (("write_inputs", 2), ("write_sealed", 2)):  # write_sealed: fit.json, then one check
        with monkeypatch.context() as patch:
            patch.setattr(distillation, name, breaking(getattr(distillation, name), after))
            with pytest.raises(KeyboardInterrupt):
                run_distillation(cfg)
    resumed = run_distillation(cfg)
    assert 0 < resumed.played < distilled.played
    assert resumed.path.read_bytes() == distilled.path.read_bytes()
    reports = [
        {name: value for name, value in result.report.items() if name != "cpu"} for result in (resumed, distilled)
    ]
    assert reports[0] == reports[1]
    assert run_distillation(cfg).played == 0


def breaking(function, after):
    calls = 0

    def broken(*args):
        nonlocal calls
        if calls == after:
            raise KeyboardInterrupt
        calls += 1
        return function(*args)

    return broken


def test_without_rounds_the_student_decides_days_alone(weights, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("litaagent_std.world.reproducible.hashing.restart_with_fixed_hashing", lambda: None)
    words = ["distill", str(weights), "--layers", "l2", "--hidden", "2", "--epochs", "3", "--worlds", "2"]
    more = ["--held-out", "1", "--days", "4", "--levels", "2", "--pool.slots", "0", "--executor", "inline", "--quiet"]
    assert main([*words, *more, "--output-dir", str(tmp_path / "d")]) == 0
    said = capsys.readouterr().out
    assert "student / teacher" in said
    assert "lita arena" in said
    student = PolicySet.load(tmp_path / "d" / "student.npz")
    assert not student.rounds
    assert [weight.shape for weight in student.nets["l2"].weights] == [(110, 2), (2, 12)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": ("l3",), "hidden": (64,)}, "smaller than its teacher"),
        ({"hidden": (8,)}, "smaller than its teacher"),
    ],
)
def test_a_student_must_be_smaller(weights, tmp_path, changes, message):
    with pytest.raises(ConfigurationError, match=message):
        run_distillation(DistillConfig(teacher=weights, output_dir=tmp_path, **SMALL, **changes))


def test_a_teacher_must_be_there_and_stay(weights, tmp_path, random_net):
    days = PolicySet({"l2": random_net("l2", (4,))})
    save(days, tmp_path / "days.npz")
    with pytest.raises(ConfigurationError, match="no l3"):
        run_distillation(
            DistillConfig(teacher=tmp_path / "days.npz", layers=("l3",), output_dir=tmp_path / "x", **SMALL)
        )
    with pytest.raises(ConfigurationError, match="train first"):
        teacher_file(tmp_path / "nothing")
    run = tmp_path / "run"
    (run / "weights").mkdir(parents=True)
    for name in ("v00002", "v00010"):
        save(days, run / "weights" / f"{name}.npz")
    assert teacher_file(run).name == "v00010.npz"
    (run / "best.npz").write_bytes(weights.read_bytes())
    assert teacher_file(run) == run / "best.npz"
    cfg = DistillConfig(
        teacher=run, layers=("l2",), output_dir=tmp_path / "y", **(SMALL | {"worlds": 2, "held_out": 1})
    )
    run_distillation(cfg)
    (run / "best.npz").write_bytes((tmp_path / "days.npz").read_bytes())
    with pytest.raises(ConfigMismatchError, match="other weights"):
        run_distillation(cfg)

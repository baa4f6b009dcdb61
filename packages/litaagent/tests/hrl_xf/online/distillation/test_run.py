import pytest

from apexrl.runs.errors import ConfigMismatchError, ConfigurationError
from apexrl.runs.reading import read_sealed
from lita.main import main
from litaagent_std.hrl_xf.online.config import PoolConfig
from litaagent_std.hrl_xf.online.distillation import run as distillation
from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
from litaagent_std.hrl_xf.online.distillation.run import run_distillation, teacher_files
from litaagent_std.hrl_xf.online.distillation.samples import collect, jobs_of, part_of
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy

SMALL = {
    "worlds": 3,
    "held_out": 2,
    "days": (5,),
    "levels": 2,
    "pool": PoolConfig(slots=0, held_out=()),
    "epochs": 12,
    "learning_rate": 0.01,
    "executor": "inline",
    "quiet": True,
}


@pytest.fixture(scope="module")
def weights(teacher, tmp_path_factory):
    return teacher.save(tmp_path_factory.mktemp("teacher"))


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
    jobs = jobs_of(DistillConfig(teacher="t", **SMALL), teacher)
    for job in (jobs[0], jobs[-1]):  # with exploration and without
        inputs = collect(job)
        assert inputs.keys() == {"l2", "l3", "l4"}
        assert 0 < len(inputs["l2"]) <= 5
        assert len(inputs["l3"]) == len(inputs["l4"]) > 10


def test_the_student_is_smaller_and_better_than_trivial_policies(distilled, teacher):
    report = distilled.report
    student = Hierarchy.load(distilled.path)
    assert student.version == teacher.version
    assert report["student"]["multiplications"] < report["teacher"]["multiplications"]
    assert report["worlds"] == {"train": 2, "validation": 1, "held_out": 2}
    error = report["error"]["l3"]  # the others have few samples
    assert error["student"] < min(error["mean"], error["zero"])
    agreement = report["agreement"]
    assert agreement["student"]["decisions"] == agreement["zero"]["decisions"] > 20
    assert report["score"]["worlds"] == 2
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
    for layer in ("l2", "l3", "l4"):
        files = [result.path / f"{layer}.npz" for result in (resumed, distilled)]
        assert files[0].read_bytes() == files[1].read_bytes()
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
    words = ["distill", str(weights), "--layers", "l2", "--dim", "2", "--epochs", "3", "--worlds", "2"]
    more = ["--held-out", "1", "--days", "4", "--levels", "2", "--pool.slots", "0", "--executor", "inline", "--quiet"]
    assert main([*words, *more, "--output-dir", str(tmp_path / "d")]) == 0
    said = capsys.readouterr().out
    assert "student / teacher" in said
    assert "lita arena" in said
    student = Hierarchy.load(tmp_path / "d" / "student")
    assert set(student.nets) == {"l2"}
    assert student.nets["l2"].meta["sizes"]["dim"] == 2


def test_a_student_must_be_smaller(weights, tmp_path):
    with pytest.raises(ConfigurationError, match="smaller than its teacher"):
        run_distillation(DistillConfig(teacher=weights, output_dir=tmp_path, dim=32, **SMALL))


def test_a_teacher_must_be_there_and_stay(weights, tmp_path, random_networks):
    days = random_networks(("l2",), width=16)
    with pytest.raises(ConfigurationError, match="no l3"):
        run_distillation(
            DistillConfig(teacher=days.save(tmp_path / "days"), layers=("l3",), output_dir=tmp_path / "x", **SMALL)
        )
    with pytest.raises(ConfigurationError, match="train first"):
        teacher_files(tmp_path / "nothing")
    run = tmp_path / "run"
    for name in ("v00002", "v00010"):
        days.save(run / "weights" / name)
    assert teacher_files(run)["l2"].parent.name == "v00010"
    cfg = DistillConfig(
        teacher=run, layers=("l2",), output_dir=tmp_path / "y", **(SMALL | {"worlds": 2, "held_out": 1})
    )
    run_distillation(cfg)
    random_networks(("l2",), seed=2, width=16).save(run / "best")
    assert teacher_files(run)["l2"].parent.name == "best"
    with pytest.raises(ConfigMismatchError, match="other weights"):
        run_distillation(cfg)

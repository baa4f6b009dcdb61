import math

import numpy as np
import pytest
from benchmarks.harness import Benchmark

from benchmarks import hmasd as bench
from benchmarks import hmasd_figures as reporting
from benchmarks import hmasd_runs as planning


def test_every_run_has_its_own_name_folder_and_valid_settings():
    from hmasd.config.presets import preset

    runs = planning.planned_runs(quick=False)
    assert len({run["folder"] for run in runs.values()}) == len(runs)
    for run in runs.values():
        preset(run["preset_name"], **run["changes"])
    counts = {algorithm: sum(f"alice_and_bob-{algorithm}-" in name for name in runs) for algorithm in planning.METHODS}
    assert counts == {"hmasd": 5, "restarts": 5, "mappo": 5, "mat": 5}
    assert [name for name in runs if name.startswith("fresh-default-")] == [f"fresh-default-{n}" for n in range(5, 15)]
    assert sum(name.startswith("fresh-paper-") for name in runs) == 5
    default = runs["fresh-default-7"]
    assert preset("alice_and_bob", **{**default["changes"]}) == preset(default["preset_name"], **default["changes"])
    assert preset("alice_and_bob").restart_steps == default["changes"]["restart_steps"]
    kitchens = [name for name in runs if name.startswith(("cramped_room-", "coordination_ring-"))]
    assert sum("_shaped-" not in name for name in kitchens) == 15, "the package's rules"
    assert sum("_shaped-" in name for name in kitchens) == 14
    assert sum("_old_dynamics-" in name for name in runs) == 14
    assert runs["crossed-reuse-5"]["skills_from"] == "fresh-default-5"
    assert not {run["folder"] for run in planning.planned_runs(quick=True).values()} & {
        r["folder"] for r in runs.values()
    }


def test_success_is_the_mean_of_the_last_three_evaluations():
    run = {"steps": [100, 200, 300, 400, 500], "success": [0.0, 0.2, 0.4, 0.6, 1.0]}
    assert reporting.success_at(run, 500) == pytest.approx(2.0 / 3.0)
    late = {"steps": [1_000_000, 2_000_000], "success": [0.5, 1.0]}
    assert reporting.success_at(late, 1_000_000) == 0.5
    short = {"steps": [100, 200, 300, 310], "success": [0.1, 0.2, 0.3, 0.9]}
    longer = {"steps": [100, 200, 300, 400], "success": [0.1, 0.2, 0.3, 0.9]}
    assert reporting.success_at(short, 350) == reporting.success_at(longer, 350) == pytest.approx(0.2)


def test_what_was_not_run_is_not_a_number_and_misses_its_goal():
    value, note = reporting.summary(np.array([]))
    assert math.isnan(value)
    assert note == "not run yet"
    figures = reporting.alice_figures({}, planning.MARKS)
    assert not any(figure.ok for figure in figures if figure.goal is not None)


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "STATE", tmp_path)
    changes = {
        "n_agents": 3, "num_envs": 4, "batch_size": 40, "total_steps": 160, "max_episode_steps": 9, "hidden_size": 8,
        "ppo_epochs": 1, "eval_interval": 80, "eval_episodes": 4, "checkpoint_interval": 80,
    }  # fmt: skip
    whole = planning.train_run("whole", "uav_coverage", changes)
    for name in ("160", "final"):
        (tmp_path / "whole" / "models" / f"hmasd_sync_enhanced_{name}.pth").unlink()
    again = planning.train_run("whole", "uav_coverage", changes)
    assert again["returns"] == whole["returns"]
    assert again["steps"] == [80, 160]
    other = planning.train_run("other", "uav_coverage", changes | {"seed": 1})
    assert len({*whole["returns"], *other["returns"]}) == 4, "returns tell runs and steps apart"


def test_states_of_finished_runs_go_except_for_skills_that_are_still_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "STATE", tmp_path)
    runs = {
        "a": {"folder": "a"},
        "b": {"folder": "b"},
        "c": {"folder": "c", "skills_from": "a"},
    }
    for name in runs:
        for path in (
            "models/hmasd_sync_enhanced_100.pth",
            "models/hmasd_sync_enhanced_final.pth",
            "logs/metrics.jsonl",
        ):
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    planning.discard_states(runs, {"a": {}, "b": {}})
    assert [path.name for path in (tmp_path / "a").rglob("*.*")] == ["hmasd_sync_enhanced_final.pth"]
    assert not (tmp_path / "b").exists()
    assert len(list((tmp_path / "c").rglob("*.*"))) == 3, "it is not finished"
    planning.discard_states(runs, {"a": {}, "b": {}, "c": {}})
    assert not list(tmp_path.rglob("*.*"))


def test_replay_errors_are_those_of_runs_with_both_levels():
    runs = {
        "hmasd": {"replay_errors": {"Coordinator": 2e-5, "Discoverer": 0.0}},
        "copy": {"replay_errors": {"Coordinator": 2e-5, "Discoverer": 0.0}, "same_run_as": "hmasd"},
        "mappo": {"replay_errors": {"Coordinator": 0.0, "Discoverer": 0.0}},
        "earlier": {"replay_error": 1e-4},
    }
    coordinator, discoverer = reporting.replay_figures(runs)
    assert (coordinator.value, discoverer.value) == (2e-5, 0.0)
    assert "of 1 runs of HMASD" in coordinator.note


def test_runs_of_a_method_come_by_seed():
    runs = {f"fresh-default-{seed}": {"seed": seed} for seed in (14, 5, 10)} | {"fresh-paper-5": {"seed": 0}}
    assert [run["seed"] for run in reporting.runs_of(runs, "fresh-default")] == [5, 10, 14]


def test_steps_to_a_success():
    run = {"steps": [100, 200, 300], "success": [0.1, 0.85, 0.7]}
    assert reporting.steps_to(run, 0.8) == 200.0
    assert math.isinf(reporting.steps_to(run, 0.9))


def test_a_run_that_never_restarted_is_also_the_run_without_restarts(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.harness.RESULTS", tmp_path)
    harness = Benchmark("hmasd", "", argv=["--only", "nothing"], add_options=bench.options)
    runs = planning.planned_runs(quick=False)
    harness.keep("fresh-default-5", runs["fresh-default-5"], {"restarts": 0.0, "success": [0.9]}, "abc")
    harness.keep("fresh-default-6", runs["fresh-default-6"], {"restarts": 1.0, "success": [0.8]})
    bench.keep_unrestarted(harness, runs)
    assert harness.finished("fresh-paper-5", **runs["fresh-paper-5"])["same_run_as"] == "fresh-default-5"
    assert harness.kept("fresh-paper-5")["commit"] == "abc", "the commit that computed it"
    assert harness.finished("fresh-paper-6", **runs["fresh-paper-6"]) is None


def test_methods_that_differ_by_restarts_only_have_the_same_seeds():
    runs = planning.planned_runs(quick=False)
    for plain, waiting in bench.WITH_RESTARTS.items():
        seeds = [name.rpartition("-")[2] for name in runs if name.rpartition("-")[0] == plain]
        assert len(seeds) == 5
        for seed in seeds:
            settings = runs[f"{waiting}-{seed}"]["changes"]
            assert settings == runs[f"{plain}-{seed}"]["changes"] | planning.RESTARTS


def test_restarts_that_never_happen_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "STATE", tmp_path)
    changes = {
        "num_envs": 4, "batch_size": 40, "total_steps": 120, "max_episode_steps": 9, "hidden_size": 8,
        "ppo_epochs": 1, "eval_interval": 40, "eval_episodes": 4, "checkpoint_interval": 80,
    }  # fmt: skip
    plain = planning.train_run("plain", "paper", changes)
    waiting = planning.train_run("waiting", "paper", changes | {"restart_steps": 10_000})
    for run in (plain, waiting):
        del run["steps_per_cpu_second"]
    assert plain == waiting
    restarted = planning.train_run("restarted", "paper", changes | {"restart_steps": 40})
    assert restarted["restarts"] > 0

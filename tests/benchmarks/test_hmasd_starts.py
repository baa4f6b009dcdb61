import numpy as np
import pytest
import torch
from benchmarks.harness import Benchmark

from benchmarks import hmasd as bench
from benchmarks import hmasd_starts as starts
from hmasd import preset
from hmasd.learning.rollout import Rollout


def start(final_return, value):
    marks = {str(mark): dict.fromkeys(starts.DIAGNOSTICS, value) for mark in starts.MARKS}
    return {"rewarded_after": None, "final_return": final_return, "marks": marks}


def test_every_start_has_valid_settings_and_the_paper_most_seeds():
    plan = starts.planned_starts(quick=False)
    for run in plan.values():
        preset("paper", seed=run["seed"], **run["changes"])
    assert sum(name.startswith("start-paper-") for name in plan) == 16
    assert len(starts.planned_starts(quick=True)) == len(starts.STARTS)
    short = starts.share_figure("paper", [{"final_return": 0.0, "marks": {}}], [])
    assert short.value == 0.0, "a start of the quick version ends before the first mark"


def test_corner_shares_count_the_steps_of_a_skill_that_end_on_a_corner():
    rollout = Rollout(n_steps=2, num_envs=1, n_agents=2, n_observation=3, n_state=1, action_shape=(), width=1)
    rollout.skills[:, 0, 1:] = torch.tensor([[0, 1], [0, 3]])
    rollout.next_observations[..., -2:] = torch.tensor([[[[-1.0, -1.0], [1.0, 1.0]]], [[[-1.0, -0.7], [1.0, -1.0]]]])
    shares = starts.corner_shares(rollout, preset("paper"))
    expected = np.zeros((4, 4))
    expected[0, 0], expected[1, 3], expected[3, 2] = 0.5, 1.0, 1.0
    assert (shares == expected).all()


def test_a_start_keeps_the_means_before_its_marks(monkeypatch):
    monkeypatch.setattr(starts, "MARKS", (16_000, 32_000))
    small = {"hidden_size": 8, "ppo_epochs": 1, "discriminator_epochs": 1}
    result = starts.start_run(1, small, 19_200)
    assert set(result["marks"]) == {"16000"}
    kept = result["marks"]["16000"]
    assert set(kept) == set(starts.DIAGNOSTICS)
    assert kept["entropy_within_skills"] == pytest.approx(kept["visit_entropy"] - kept["visit_information"], abs=1e-3)
    assert kept["visit_entropy"] > 4.0, "new networks walk at random"
    assert result == starts.start_run(1, small, 19_200)


def test_variants_are_compared_with_the_papers_settings_and_diagnostics_with_the_result(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.harness.RESULTS", tmp_path)
    harness = Benchmark("hmasd", "", argv=["--only", "nothing"], add_options=bench.options)
    assert [figure.note for figure in starts.start_figures(harness)] == ["not run yet"] * len(starts.STARTS)
    plan = starts.planned_starts(quick=False)
    for index, seed in enumerate(starts.SEEDS[:4]):
        learned = index % 2 == 0
        name = f"start-paper-{seed}"
        harness.keep(name, plan[name], start(0.5 if learned else 0.0, 4.0 if learned else float(index)))
    name = f"start-lipschitz-{starts.SEEDS[0]}"
    harness.keep(name, plan[name], start(0.9, 4.0))
    figures = {figure.name: figure for figure in starts.start_figures(harness)}
    share = figures["starts of 192000, paper: share that learns"]
    assert share.value == 0.5
    assert "2 of 4" in share.note
    other = figures["starts of 192000, lipschitz: share that learns"]
    assert other.value == 1.0
    assert "p = 1.00" in other.note
    corners = figures["after 64000 steps, corners that a skill leads to: P(larger if it learns)"]
    assert corners.value == 1.0, "4 and 4 are larger than 1 and 3"
    complete = figures["after 96000 steps, starts whose skills lead to all corners: share that learns"]
    assert complete.value == 1.0
    assert "2 of 2; of the others 0 of 2; p = 0.333" in complete.note
    assert len(figures) == len(starts.STARTS) + 1 + len(starts.MARKS) * len(starts.DIAGNOSTICS)

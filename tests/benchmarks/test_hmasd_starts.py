import numpy as np
import pytest
import torch
from benchmarks.harness import Benchmark

from benchmarks import hmasd as bench
from benchmarks import hmasd_starts as starts
from hmasd import preset
from hmasd.agent import HMASDAgent
from hmasd.learning.rollout import Rollout


def start(final_return, value, rewarded_after=None):
    marks = {str(mark): dict.fromkeys(starts.DIAGNOSTICS, value) for mark in starts.MARKS}
    return {"rewarded_after": rewarded_after, "final_return": final_return, "corners": [value] * 12, "marks": marks}


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
    assert len(result["corners"]) == 1


def test_a_new_coordinator_learns_on_the_skills_of_a_start(monkeypatch):
    small = {"hidden_size": 8, "ppo_epochs": 1, "discriminator_epochs": 1, "max_episode_steps": 40}
    monkeypatch.setattr(starts, "preset", lambda name, **changes: preset(name, **small, **changes))
    loaded, load_skills = [], HMASDAgent.load_skills

    def load(agent, state):
        loaded.append((agent.config, state["version"]))
        load_skills(agent, state)

    monkeypatch.setattr(HMASDAgent, "load_skills", load)
    assert 0.0 <= starts.frozen_run(1, 6400, 3200)["return"] <= 1.0
    [(config, version)] = loaded
    assert (config.freeze_skills, config.seed, config.total_steps) == (True, 1 + starts.FROZEN_SEED, 3200)
    assert version == 2, "skills after the last of two updates"


def test_variants_are_compared_with_the_papers_settings_and_diagnostics_with_the_result(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.harness.RESULTS", tmp_path)
    harness = Benchmark("hmasd", "", argv=["--only", "nothing"], add_options=bench.options)
    assert [figure.note for figure in starts.start_figures(harness)] == ["not run yet"] * len(starts.STARTS)
    plan = starts.planned_starts(quick=False)
    for index, seed in enumerate(starts.SEEDS[:4]):
        learned = index % 2 == 0
        name = f"start-paper-{seed}"
        kept = start(0.5, 4.0, 48_000) if learned else start(0.0, float(index), 64_000 if index == 1 else None)
        harness.keep(name, plan[name], kept)
        name = f"frozen-paper-{seed}"
        harness.keep(name, starts.planned_frozen(quick=False)[name], {"return": 0.7 if learned else 0.0})
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
    rewarded = figures["rewarded starts: share that learns"]
    assert rewarded.value == pytest.approx(2 / 3)
    assert "2 of 3 (4 starts in all); those that learn are first rewarded at 48000, 48000 steps" in rewarded.note
    before = next(figure for name, figure in figures.items() if "before the first reward" in name)
    assert (before.value, before.note) == (1.0, "4.00 of 2 that learn, 1.00 of 1 rewarded others")
    frozen = [figure for name, figure in figures.items() if name.startswith("new coordinator on skills frozen")]
    assert [figure.value for figure in frozen] == [0.7, 0.0]
    assert frozen[0].note == "2 of 2 learn, p = 0.333 for a difference; 0.70, 0.70"
    assert len(figures) == len(starts.STARTS) + 5 + len(starts.MARKS) * len(starts.DIAGNOSTICS)

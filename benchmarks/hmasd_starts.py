"""Why some starts on Alice_and_Bob find no reward: many short starts, and where their skills lead before the reward.

A start is a run from new networks that ends after :data:`STEPS` environment steps. It learns if episodes of training
are rewarded at its end. The task needs agents in the corners of the room, so the first figure of a start is the number
of corners that one of its skills leads to; the others are measured in any task.
"""

from typing import Any, Final

import numpy as np
import torch
from scipy.stats import binomtest, fisher_exact

from apexrl.arrays import Floats
from benchmarks.harness import Benchmark, Figure
from hmasd import HMASDConfig, Trainer, preset
from hmasd.learning.rollout import Rollout

STEPS: Final = 192_000
MARKS: Final = (32_000, 64_000, 96_000)
"""Environment steps at which :data:`DIAGNOSTICS` are kept, as means over the batches of the last 16,000."""
WINDOW: Final = 16_000
LEARNS: Final = 0.02
"""A start learns if at least this share of its training episodes in the last 32,000 steps is rewarded."""
LEADS: Final = 0.1
"""A skill leads to a corner if agents are there in at least this share of their steps under the skill."""
CORNERS: Final[Floats] = np.array([(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)])
"""Positions in observations."""

SEEDS: Final = tuple(range(100, 116))
STARTS: Final[dict[str, tuple[dict[str, Any], tuple[int, ...]]]] = {
    "paper": ({}, SEEDS),
    "lipschitz": ({"discriminator_lipschitz": 2.0}, SEEDS[:8]),
    "low_entropy": ({"entropy_low": 0.001}, SEEDS[:4]),
    "eight_skills": ({"n_agent_skills": 8}, SEEDS[:4]),
}
"""What may let more starts learn, each alone beside the paper's settings."""
DIAGNOSTICS: Final = {
    "corners": "corners that a skill leads to",
    "visit_entropy": "entropy of visits",
    "visit_information": "information of skills about visits",
    "entropy_within_skills": "entropy of visits within a skill",
    "team_accuracy": "accuracy of the team discriminator",
    "agent_accuracy": "accuracy of the individual discriminator",
}
"""What is kept of a start, with the words for it."""


def planned_starts(quick: bool) -> dict[str, dict[str, Any]]:
    """Return the arguments of :func:`start_run` by name."""
    steps = 3200 if quick else STEPS
    return {
        f"start-{variant}-{seed}": {"seed": seed, "changes": changes, "steps": steps}
        for variant, (changes, seeds) in STARTS.items()
        for seed in (seeds[:1] if quick else seeds)
    }


def start_run(seed: int, changes: dict[str, Any], steps: int) -> dict[str, Any]:
    """Train one start and return its first rewarded step, its reward at the end and its diagnostics."""
    torch.set_num_threads(1)
    config = preset("paper", seed=seed, total_steps=steps, eval_interval=10**12, **changes)
    trainer = Trainer(config)
    trainer.eval_last = False
    shares: list[Floats] = []
    rows: list[dict[str, float]] = []
    trainer.add_callback("pre_update", lambda run: shares.append(corner_shares(run.learner.agent.rollout, config)))
    trainer.add_callback("post_iteration", lambda _, metrics: rows.append(dict(metrics)))
    trainer.run()
    returns = [row.get("Rewards/Episode/Return_Mean", 0.0) for row in rows]
    rewarded = [(index + 1) * config.batch_size for index, value in enumerate(returns) if value > 0.0]
    last = 2 * WINDOW // config.batch_size
    return {
        "rewarded_after": rewarded[0] if rewarded else None,
        "final_return": round(float(np.mean(returns[-last:])), 5),
        "marks": {str(mark): diagnostics(rows, shares, mark // config.batch_size) for mark in MARKS if mark <= steps},
    }


def corner_shares(rollout: Rollout, config: HMASDConfig) -> Floats:
    """Return the share of a skill's steps that end on each corner ``(n_z, 4)``; 0 for skills that were not used."""
    # [V, 2] positions after the step and [V] skills of all agent steps
    positions = rollout.next_observations[..., -2:].reshape(-1, 2).numpy()
    skills = rollout.skills[..., 1:].reshape(-1).numpy()
    is_there = np.abs(positions[:, None] - CORNERS).max(axis=-1) < 0.1  # [V, 4]
    totals = np.zeros((config.agent_skills, CORNERS.shape[0]))
    np.add.at(totals, skills, is_there)
    return totals / np.maximum(np.bincount(skills, minlength=config.agent_skills), 1)[:, None]


def diagnostics(rows: list[dict[str, float]], shares: list[Floats], end: int) -> dict[str, float]:
    """Return the :data:`DIAGNOSTICS` of the batches before ``end``."""
    first = end - WINDOW // 3200
    some, led = rows[first:end], np.mean(shares[first:end], axis=0)
    entropy, information = (
        float(np.mean([row[f"Skills/{name}"] for row in some])) for name in ("VisitEntropy", "VisitInformation")
    )
    accuracies = {
        name: float(np.mean([row[f"Skills/{metric}DiscriminatorAccuracy"] for row in some]))
        for name, metric in (("team_accuracy", "Team"), ("agent_accuracy", "Individual"))
    }
    values = {
        "corners": float((led.max(axis=0) >= LEADS).sum()),
        "visit_entropy": entropy,
        "visit_information": information,
        "entropy_within_skills": entropy - information,
    }
    return {name: round(value, 4) for name, value in (values | accuracies).items()}


def start_figures(bench: Benchmark) -> list[Figure]:
    """Return which share of starts learns, by variant, and what separates starts that learn from the others."""
    plan = planned_starts(bench.quick)
    starts = {name: result for name, run in plan.items() if (result := bench.finished(name, **run)) is not None}
    by_variant = {
        variant: [start for name, start in starts.items() if name.startswith(f"start-{variant}-")] for variant in STARTS
    }
    figures = [share_figure(variant, found, by_variant["paper"]) for variant, found in by_variant.items()]
    return [*figures, *corner_figures(by_variant["paper"]), *separation_figures(by_variant["paper"])]


def learns(start: dict[str, Any]) -> bool:
    """Return whether a start is rewarded at its end."""
    return bool(start["final_return"] >= LEARNS)


def share_figure(variant: str, starts: list[dict[str, Any]], paper: list[dict[str, Any]]) -> Figure:
    """Return the share of starts that learn, with its exact 95 % interval and Fisher's test against the paper's."""
    name = f"starts of {STEPS}, {variant}: share that learns"
    if not starts:
        return Figure(name=name, value=float("nan"), note="not run yet")
    n, k = len(starts), sum(learns(start) for start in starts)
    interval = binomtest(k, n).proportion_ci()
    note = f"{k} of {n}, 95 % [{interval.low:.2f}, {interval.high:.2f}]"
    most = [max(mark["corners"] for mark in start["marks"].values()) for start in starts if start["marks"]]
    if most:
        note += f"; skills lead to at most {np.mean(most):.1f} of 4 corners within {MARKS[-1]} steps"
    if starts is not paper and paper:
        base = sum(learns(start) for start in paper)
        p = fisher_exact([[k, n - k], [base, len(paper) - base]]).pvalue
        note += f"; p = {p:.2f} for a difference to the paper's"
    return Figure(name=name, value=k / n, note=note)


def corner_figures(starts: list[dict[str, Any]]) -> list[Figure]:
    """Return the share that learns of the starts whose skills have all corners at the last mark, beside the others."""
    mark = str(MARKS[-1])
    measured = [start for start in starts if mark in start["marks"]]
    groups = {
        complete: [learns(start) for start in measured if (start["marks"][mark]["corners"] == len(CORNERS)) is complete]
        for complete in (True, False)
    }
    if not all(groups.values()):
        return []
    table = [[sum(group), len(group) - sum(group)] for group in groups.values()]
    (k, _), (others, _) = table
    note = (
        f"{k} of {len(groups[True])}; of the others {others} of {len(groups[False])}; "
        f"p = {fisher_exact(table).pvalue:.3f} for a difference"
    )
    name = f"after {mark} steps, starts whose skills lead to all corners: share that learns"
    return [Figure(name=name, value=k / len(groups[True]), note=note)]


def separation_figures(starts: list[dict[str, Any]]) -> list[Figure]:
    """Return, for each mark and diagnostic, the probability that a start that learns has the larger value."""
    groups = {kind: [start for start in starts if learns(start) is kind] for kind in (True, False)}
    figures = []
    for mark in (str(mark) for mark in MARKS):
        for name, words in DIAGNOSTICS.items():
            learned, others = (
                np.array([start["marks"][mark][name] for start in groups[kind] if mark in start["marks"]])
                for kind in (True, False)
            )
            if not learned.size or not others.size:
                continue
            # probability that a start that learns has the larger value; 0.5 is no difference
            larger = (learned[:, None] > others).mean() + 0.5 * (learned[:, None] == others).mean()
            note = (
                f"{learned.mean():.2f} of {learned.size} starts that learn, {others.mean():.2f} of {others.size} others"
            )
            figures.append(
                Figure(name=f"after {mark} steps, {words}: P(larger if it learns)", value=float(larger), note=note)
            )
    return figures

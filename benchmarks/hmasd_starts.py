"""Why some starts on Alice_and_Bob do not learn: many short starts, where their skills lead, and what they are worth.

A start is a run from new networks that ends after :data:`STEPS` environment steps. It learns if episodes of training
are rewarded at its end. The task needs agents in the corners of the room, so the first figure of a start is the number
of corners that one of its skills leads to; the others are measured in any task. Whether skills are what a start lacks
is tried by experiment: they are frozen as they are after :data:`FREEZE` steps, and a new coordinator is trained.
"""

from collections.abc import Callable
from dataclasses import replace
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
FREEZE: Final = 96_000
"""Environment steps after which the skills of a start are frozen for a new coordinator."""
FROZEN_STEPS: Final = 192_000
"""Environment steps that the new coordinator is trained for."""
FROZEN_SEED: Final = 1000
"""Added to the seed for the new coordinator and its environments."""
CORNERS: Final[Floats] = np.array([(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)])
"""Positions in observations."""

SEEDS: Final = tuple(range(100, 116))
STARTS: Final[dict[str, tuple[dict[str, Any], tuple[int, ...]]]] = {
    "paper": ({}, SEEDS),
    "lipschitz": ({"discriminator_lipschitz": 2.0}, SEEDS[:8]),
    "eight_skills": ({"n_agent_skills": 8}, SEEDS[:8]),
    "low_entropy": ({"entropy_low": 0.001}, SEEDS[:4]),
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
    plan: dict[str, dict[str, Any]] = {}
    for variant, (changes, seeds) in STARTS.items():
        for seed in seeds[:1] if quick else seeds:
            plan[f"start-{variant}-{seed}"] = {"seed": seed, "changes": changes, "steps": steps}
    return plan


def planned_frozen(quick: bool) -> dict[str, dict[str, Any]]:
    """Return the arguments of :func:`frozen_run` by name."""
    steps = {"freeze": 3200, "steps": 3200} if quick else {"freeze": FREEZE, "steps": FROZEN_STEPS}
    return {f"frozen-paper-{seed}": {"seed": seed, **steps} for seed in (SEEDS[:1] if quick else SEEDS)}


def start_run(seed: int, changes: dict[str, Any], steps: int) -> dict[str, Any]:
    """Train one start; return when it was rewarded first, its reward at the end, its corners and its diagnostics."""
    torch.set_num_threads(1)
    config = preset("paper", seed=seed, total_steps=steps, eval_interval=10**12, **changes)
    shares: list[Floats] = []

    def watch(trainer: Trainer) -> None:
        trainer.add_callback("pre_update", lambda _: shares.append(corner_shares(trainer.agent.rollout, config)))

    rows = trained_rows(config, watch)
    returns = [row.get("Rewards/Episode/Return_Mean", 0.0) for row in rows]
    rewarded = [(index + 1) * config.batch_size for index, value in enumerate(returns) if value > 0.0]
    per_window = WINDOW // config.batch_size
    windows = range(per_window, len(rows) + 1, per_window)
    return {
        "rewarded_after": rewarded[0] if rewarded else None,
        "final_return": final_return(returns, config),
        "corners": [corners(shares[end - per_window : end]) for end in windows],
        "marks": {str(mark): diagnostics(rows, shares, mark // config.batch_size) for mark in MARKS if mark <= steps},
    }


def frozen_run(seed: int, freeze: int, steps: int) -> dict[str, Any]:
    """Train a start for ``freeze`` steps, then a new coordinator on its skills; return this one's reward at its end."""
    torch.set_num_threads(1)
    config = preset("paper", seed=seed, total_steps=freeze, eval_interval=10**12)
    skills: list[dict[str, Any]] = []

    def keep_skills(trainer: Trainer) -> None:
        trainer.add_callback("post_iteration", lambda *_: skills.append(trainer.agent.state_dict()))

    trained_rows(config, keep_skills)
    again = replace(config, seed=seed + FROZEN_SEED, total_steps=steps, freeze_skills=True)
    rows = trained_rows(again, lambda trainer: trainer.agent.load_skills(skills[-1]))
    return {"return": final_return([row.get("Rewards/Episode/Return_Mean", 0.0) for row in rows], again)}


def trained_rows(config: HMASDConfig, prepare: Callable[[Trainer], None]) -> list[dict[str, float]]:
    """Train a prepared run and return the metrics of its updates."""
    trainer, rows = Trainer(config), []
    trainer.eval_last = False
    prepare(trainer)
    trainer.add_callback("post_iteration", lambda _, metrics: rows.append(dict(metrics)))
    trainer.run()
    return rows


def final_return(returns: list[float], config: HMASDConfig) -> float:
    """Return the mean return of training episodes in the last 32,000 steps."""
    return round(float(np.mean(returns[-2 * WINDOW // config.batch_size :])), 5)


def corners(shares: list[Floats]) -> int:
    """Return the number of corners that a skill leads to, from the :func:`corner_shares` of some batches."""
    return int((np.mean(shares, axis=0).max(axis=0) >= LEADS).sum())


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
    some = rows[first:end]
    entropy, information = (
        float(np.mean([row[f"Skills/{name}"] for row in some])) for name in ("VisitEntropy", "VisitInformation")
    )
    accuracies = {
        name: float(np.mean([row[f"Skills/{metric}DiscriminatorAccuracy"] for row in some]))
        for name, metric in (("team_accuracy", "Team"), ("agent_accuracy", "Individual"))
    }
    values = {
        "corners": float(corners(shares[first:end])),
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
    figures = [share_figure(variant, starts, by_variant["paper"]) for variant, starts in by_variant.items()]
    paper = by_variant["paper"]
    paper_by_seed = {plan[name]["seed"]: start for name, start in starts.items() if name.startswith("start-paper-")}
    return [
        *figures,
        *reward_figures(paper),
        *corner_figures(paper),
        *frozen_figures(bench, paper_by_seed),
        *separation_figures(paper),
    ]


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


def reward_figures(starts: list[dict[str, Any]]) -> list[Figure]:
    """Return the share that learns of the starts that were rewarded, and whether corners before it tell which do."""
    rewarded = [start for start in starts if start["rewarded_after"] is not None]
    if not rewarded:
        return []
    k = sum(learns(start) for start in rewarded)
    first = ", ".join(str(start["rewarded_after"]) for start in rewarded if learns(start))
    note = f"{k} of {len(rewarded)} ({len(starts)} starts in all); those that learn are first rewarded at {first} steps"
    figures = [Figure(name="rewarded starts: share that learns", value=k / len(rewarded), note=note)]
    before: dict[bool, list[float]] = {True: [], False: []}
    for start in rewarded:
        window = start["rewarded_after"] // WINDOW - 1  # the last whole window before the first reward
        if window >= 0 and "corners" in start:  # units of earlier commits have corners at the marks alone
            before[learns(start)].append(start["corners"][window])
    if all(before.values()):
        learned, others = (np.array(before[kind]) for kind in (True, False))
        note = (
            f"{learned.mean():.2f} of {learned.size} that learn, {others.mean():.2f} of {others.size} rewarded others"
        )
        name = "in the 16000 steps before the first reward, corners that a skill leads to: P(larger if it learns)"
        figures.append(Figure(name=name, value=probability_larger(learned, others), note=note))
    return figures


def frozen_figures(bench: Benchmark, starts: dict[int, dict[str, Any]]) -> list[Figure]:
    """Return the reward of new coordinators on frozen skills, by whether these lead to all corners.

    Args:
        bench: Has the finished units.
        starts: Starts with the paper's settings by seed.
    """
    mark, figures = str(FREEZE), []
    groups: dict[bool, list[float]] = {True: [], False: []}
    for name, run in planned_frozen(bench.quick).items():
        start, frozen = starts.get(run["seed"]), bench.finished(name, **run)
        if start is not None and mark in start["marks"] and frozen is not None:
            groups[start["marks"][mark]["corners"] == len(CORNERS)].append(frozen["return"])
    if not all(groups.values()):
        return []
    counts = [[sum(value >= LEARNS for value in returns), len(returns)] for returns in groups.values()]
    p = fisher_exact([[k, n - k] for k, n in counts]).pvalue
    for complete, returns in groups.items():
        k, n = counts[0 if complete else 1]
        note = f"{k} of {n} learn, p = {p:.3f} for a difference; " + ", ".join(f"{value:.2f}" for value in returns)
        skills = "all corners" if complete else "fewer corners"
        name = f"new coordinator on skills frozen after {mark} steps that lead to {skills}: return"
        figures.append(Figure(name=name, value=float(np.mean(returns)), note=note))
    return figures


def probability_larger(learned: Floats, others: Floats) -> float:
    """Return the probability that one of ``learned`` is larger than one of ``others``; 0.5 is no difference."""
    return float((learned[:, None] > others).mean() + 0.5 * (learned[:, None] == others).mean())


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
            larger = probability_larger(learned, others)
            note = (
                f"{learned.mean():.2f} of {learned.size} starts that learn, {others.mean():.2f} of {others.size} others"
            )
            figures.append(Figure(name=f"after {mark} steps, {words}: P(larger if it learns)", value=larger, note=note))
    return figures

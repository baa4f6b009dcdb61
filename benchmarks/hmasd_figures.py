"""The figures and charts of ``make bench-hmasd`` that come from finished training runs."""

from pathlib import Path
from typing import Any

import numpy as np

from apexrl.charts import curve_over_seeds, learning_curves, save_figure
from apexrl.runs.atomic import write_text
from apexrl.statistics import interval_over_seeds
from benchmarks.harness import Figure
from benchmarks.hmasd_runs import (
    ABLATION_STEPS,
    ABLATIONS,
    FRESH,
    HMASD_FORMS,
    KITCHEN_METHODS,
    KITCHENS,
    METHODS,
    OPTION_STEPS,
    RELIABILITY,
    SEEDS,
    UAV_METHODS,
    UAV_TASKS,
)
from hmasd.envs.overcooked import LAYOUTS

PICTURES = Path(__file__).parent.parent / "docs" / "hmasd" / "pictures"


def success_at(run: dict[str, Any], mark: int) -> float:
    """Return the mean success of the last three evaluations up to ``mark`` steps.

    An evaluation at the end of a run between two regular ones is left out, so that short and long runs are compared at
    the same steps.
    """
    steps = run["steps"]
    if len(steps) > 2 and steps[-1] - steps[-2] < steps[1] - steps[0]:
        steps = steps[:-1]
    known = [value for step, value in zip(steps, run["success"], strict=False) if step <= mark]
    return float(np.mean(known[-3:])) if known else float("nan")


def runs_of(runs_by_name: dict[str, dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """Return the finished runs of one method, by seed."""
    names = [name for name in runs_by_name if name.rsplit("-", 1)[0] == prefix]
    return [runs_by_name[name] for name in sorted(names, key=lambda name: int(name.rsplit("-", 1)[1]))]


def alice_figures(runs_by_name: dict[str, dict[str, Any]], marks: tuple[int, ...]) -> list[Figure]:
    """Return the success of the methods at the marks, with goals for both forms of HMASD."""
    figures: list[Figure] = []
    for method in METHODS:
        runs = runs_of(runs_by_name, f"alice_and_bob-{method}")
        for mark in marks:
            values = np.array([success_at(run, mark) for run in runs])
            value, note = summary(values)
            goal = 0.75 if method in HMASD_FORMS and mark == marks[-1] else None
            if goal is not None and values.size < len(SEEDS):
                value = float("nan")  # the mean of some seeds is not what the goal asks for
            figures.append(Figure(name=f"{method} success at {mark:.0e} steps", value=value, goal=goal, note=note))
    for method in HMASD_FORMS:
        final = np.array([success_at(run, marks[-1]) for run in runs_of(runs_by_name, f"alice_and_bob-{method}")])
        note = f"of {final.size} run, {len(SEEDS)} planned; success > 1 %"
        figures.append(Figure(name=f"{method} seeds above 0", value=float((final > 0.01).sum()), goal=4.0, note=note))
    flat = np.array([success_at(run, marks[-1]) for run in runs_of(runs_by_name, "alice_and_bob-mappo")])
    value, note = summary(flat)
    figures.append(Figure(name="mappo at the end", value=value, note=note))
    return figures


def fresh_figures(runs_by_name: dict[str, dict[str, Any]], mark: int) -> list[Figure]:
    """Return the success on fresh seeds of Alice_and_Bob, the replay audit, and what reused skills save."""
    figures: list[Figure] = []
    for method, (changes, seeds) in FRESH.items():
        runs = runs_of(runs_by_name, f"fresh-{method}")
        early = np.array([success_at(run, OPTION_STEPS) for run in runs])
        value, note = summary(early)
        figures.append(
            Figure(name=f"fresh seeds, {method}: success at {OPTION_STEPS:.0e} steps", value=value, note=note)
        )
        if "total_steps" in changes:
            continue
        values = np.array([success_at(run, mark) for run in runs])
        value, note = summary(values)
        is_default = method == "default"
        complete = values.size == len(seeds)
        mean = value if complete or not is_default else float("nan")  # the mean of some seeds is not what is asked
        goal = 0.85 if is_default else None
        figures.append(
            Figure(name=f"fresh seeds, {method}: success at {mark:.0e} steps", value=mean, goal=goal, note=note)
        )
        worst = float(values.min()) if complete else float("nan")
        name = f"fresh seeds, {method}: worst seed"
        figures.append(Figure(name=name, value=worst, op=">", goal=0.5 if is_default else None))
    figures += replay_figures(runs_by_name)
    for kind in ("scratch", "reuse"):
        runs = runs_of(runs_by_name, f"crossed-{kind}")
        value, note = summary(np.array([success_at(run, OPTION_STEPS) for run in runs]))
        steps = ", ".join(f"{steps_to(run, 0.5):.0f}" for run in runs)
        learns = "the coordinator alone learns" if kind == "reuse" else "all networks learn"
        note = f"{learns}; {note}; first evaluation of 50 % at {steps} steps"
        figures.append(
            Figure(name=f"crossed task, {kind}: success at {OPTION_STEPS:.0e} steps", value=value, note=note)
        )
    return figures


def steps_to(run: dict[str, Any], success: float) -> float:
    """Return the steps of the first evaluation with at least this success; infinity if there is none."""
    reached = [step for step, value in zip(run["steps"], run["success"], strict=True) if value >= success]
    return float(reached[0]) if reached else float("inf")


def overcooked_figures(runs_by_name: dict[str, dict[str, Any]]) -> list[Figure]:
    """Return the last returns in the kitchens, 20 per soup, and the best evaluation on the way."""
    figures = []
    shaped = [f"{layout}-{method}_shaped" for layout in LAYOUTS for method in KITCHEN_METHODS]
    unshaped = [f"{kitchen}-{method}" for kitchen in KITCHENS for method in KITCHEN_METHODS]
    for name in (*unshaped, "cramped_room-hmasd_short", *shaped):
        runs = runs_of(runs_by_name, name)
        value, note = summary(np.array([float(np.mean(run["returns"][-3:])) for run in runs]))
        best = max((max(run["returns"]) for run in runs), default=0.0)
        note += f"; best evaluation of all {best:.1f}" if best > 0.0 else ""
        figures.append(Figure(name=f"{name.replace('-', ' ')} return", value=value, note=note))
    return figures


def summary(values: np.ndarray) -> tuple[float, str]:
    """Return the mean, and a note with the interval and the values."""
    if values.size == 0:
        return float("nan"), "not run yet"
    low, high = interval_over_seeds(values)
    listed = ", ".join(f"{value:.2f}" for value in values)
    return float(values.mean()), f"95 % [{low:.2f}, {high:.2f}] of {values.size} seeds: {listed}"


def variant_figures(runs_by_name: dict[str, dict[str, Any]]) -> list[Figure]:
    """Return the success of ablations and of reliability options at the end of their runs."""
    figures = []
    for kind, names, mark in (("ablation", ABLATIONS, ABLATION_STEPS), ("option", RELIABILITY, OPTION_STEPS)):
        for name in names:
            values = np.array([success_at(run, mark) for run in runs_of(runs_by_name, f"alice_and_bob-{name}")])
            value, note = summary(values)
            figures.append(Figure(name=f"{kind} {name}, success at {mark:.0e} steps", value=value, note=note))
    return figures


def replay_figures(runs_by_name: dict[str, dict[str, Any]]) -> list[Figure]:
    """Return the largest replay errors of both levels; without a goal, because a larger one ends a run."""
    # a run with the paper's settings that is a kept copy of another one counts once
    runs = [run.get("replay_errors") for run in runs_by_name.values() if "same_run_as" not in run]
    both = [errors for errors in runs if errors and errors["Coordinator"]]  # the baselines have no coordinator: 0
    figures = []
    for level, limit in (("Coordinator", "what rounding explains, at most 0.01"), ("Discoverer", "1e-4")):
        errors = [run[level] for run in both]
        note = f"all updates of {len(errors)} runs of HMASD; a run ends above {limit}"
        name = f"largest replay error of a log-probability, {level.lower()}"
        figures.append(Figure(name=name, value=max(errors, default=float("nan")), note=note))
    return figures


def draw(runs_by_name: dict[str, dict[str, Any]]) -> None:
    """Draw the learning curves of everything that has at least one finished run."""
    charts: dict[str, tuple[list[str], str]] = {
        "alice_and_bob": ([f"alice_and_bob-{name}" for name in METHODS], "success"),
        "ablations": ([f"alice_and_bob-{name}" for name in ("hmasd", *ABLATIONS)], "success"),
        "options": ([f"alice_and_bob-{name}" for name in ("hmasd", "restarts", *RELIABILITY)], "success"),
        **{task: ([f"{task}-{name}" for name in UAV_METHODS], "returns") for task in UAV_TASKS},
        "fresh": ([f"fresh-{name}" for name in FRESH], "success"),
        **{kitchen: ([f"{kitchen}-{name}" for name in KITCHEN_METHODS], "returns") for kitchen in KITCHENS},
        **{
            f"{layout}_shaped": ([f"{layout}-{name}_shaped" for name in KITCHEN_METHODS], "returns")
            for layout in LAYOUTS
        },
    }
    for chart, (prefixes, what) in charts.items():
        curves = []
        for prefix in prefixes:
            runs = runs_of(runs_by_name, prefix)
            if runs:
                values = np.array([run[what] for run in runs])
                name = f"{prefix.split('-', 1)[1]} ({len(runs)} seeds)"
                curves.append(curve_over_seeds(name, runs[0]["steps"], values))
        if curves:
            title = f"{chart}: mean and 95 % interval over seeds"
            save_figure(learning_curves(curves, name=chart, title=title, y_title=what), PICTURES, ("svg",))


def write_table(figures: list[Figure]) -> None:
    """Write the figures as a table for the documentation."""
    rows = ["| figure | value | goal | |", "|---|---|---|---|"]
    for figure in figures:
        value = "–" if np.isnan(figure.value) else f"{figure.value:.4g} {figure.unit}".strip()
        goal = "" if figure.goal is None else f"{figure.op} {figure.goal:.4g}"
        rows.append(f"| {figure.name} | {value} | {goal} | {figure.note} |")
    write_text(PICTURES / "results.inc", "\n".join(rows) + "\n")

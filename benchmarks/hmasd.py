"""HMASD, MAPPO and MAT on Alice_and_Bob, Overcooked and the UAV tasks, the ablations, and how fast everything runs.

``make bench-hmasd`` takes about ten hours on two cores and can be stopped and resumed: a finished run is a unit, and
an unfinished run resumes from its checkpoint in ``benchmarks/state/hmasd``. ``ARGS="--only 'fresh-*'"`` computes some
of the units; the table then shows what is known so far.
"""

import argparse
import fnmatch
import shutil
import sys
import time
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from apexrl.charts import curve_over_seeds, learning_curves, save_figure
from apexrl.runs.atomic import write_text
from apexrl.runs.errors import ConfigMismatchError
from apexrl.runs.metrics.jsonl import read_jsonl
from apexrl.statistics import interval_over_seeds
from benchmarks.harness import Benchmark, Figure
from benchmarks.uav_policies import GreedyFlight, RandomFlight
from hmasd import AliceAndBobEnv, OvercookedEnv, Trainer, UAVConfig, UAVEnv, preset
from hmasd.envs.overcooked import LAYOUTS
from hmasd.learning.protocols import EpisodePolicy
from hmasd.training.evaluation import play_episodes
from hmasd.training.trainer import FINAL_NAME

ROOT = Path(__file__).parent.parent
STATE = ROOT / "benchmarks" / "state" / "hmasd"
"""Checkpoints and metrics of unfinished runs, about 2 MB each, and the skills that another run reuses."""
PICTURES = ROOT / "docs" / "hmasd" / "pictures"

SEEDS = (0, 1, 2, 3, 4)
ABLATION_SEEDS = (0, 1, 2)
OPTION_SEEDS = (0, 3)
"""With the paper's settings seed 0 succeeds and seed 3 fails, which is why it was chosen: a success there may come from
different random numbers as well as from the option."""
UAV_SEEDS = (0, 1, 2)
FRESH_SEEDS = tuple(range(5, 15))
"""Seeds that were not seen when the waiting time of restarts was chosen."""
PAPER_FRESH_SEEDS = FRESH_SEEDS[:5]
OVERCOOKED_SEEDS = (0, 1, 2)
REUSE_SEEDS = (5,)
KITCHENS = (*LAYOUTS, *(f"{layout}_old_dynamics" for layout in LAYOUTS))
"""Presets of Overcooked: the package's rules, and those by which a pot starts by itself with the third onion."""
MARKS = (1_000_000, 2_000_000, 3_000_000)
ABLATION_STEPS = 2_000_000
"""More than twice what the full method needs to reach 80 % where it learns the task."""
OPTION_STEPS = 1_000_000
ORIGINAL_UAV_SECONDS = 44.7e-3
"""Seconds per step of the original implementation of the UAV environments."""

START_MARKS = (16_000, 32_000, 64_000, 96_000, 160_000)
"""Environment steps after new networks at which :data:`DIAGNOSTICS` are kept."""
DIAGNOSTICS = {
    "visit_entropy": "Skills/VisitEntropy",
    "visit_information": "Skills/VisitInformation",
    "team_accuracy": "Skills/TeamDiscriminatorAccuracy",
    "agent_accuracy": "Skills/IndividualDiscriminatorAccuracy",
    "skill_entropy": "Policy/Coordinator/Entropy",
    "action_entropy": "Policy/Discoverer/Entropy",
}
"""What may separate starts that find the reward from those that do not, with the names of the metrics."""

# λ_e = 1 where otherwise nothing would learn from the team's reward: neither level without the coordinator, and the
# low level would have no reward at all without the discriminators' rewards.
ABLATIONS: dict[str, dict[str, Any]] = {
    "no_team": {},
    "no_indi": {},
    "no_high": {"lambda_e": 1.0},
    "no_in_rew": {"lambda_e": 1.0},
}
"""``no_ex_rew`` is missing because the paper's λ_e is 0 on this task: it is the full method."""
METHODS: dict[str, dict[str, Any]] = {
    "hmasd": {},
    "restarts": {"restart_steps": 160_000},
    "mappo": {"algorithm": "mappo"},
    "mat": {"algorithm": "mat"},
}
"""Methods compared on Alice_and_Bob. ``hmasd`` has exactly the paper's settings; ``restarts`` starts with new networks
after 160,000 steps without reward, about twice the longest wait of runs that learn."""
HMASD_FORMS = ("hmasd", "restarts")
"""Methods with goals."""
FRESH: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "default": ({"restart_steps": 160_000}, FRESH_SEEDS),
    "paper": ({}, PAPER_FRESH_SEEDS),
    "coverage": ({"lambda_coverage": 0.02, "total_steps": OPTION_STEPS}, PAPER_FRESH_SEEDS),
}
"""Methods on fresh seeds of Alice_and_Bob: restarts, which is the default so far, the paper's settings, and a reward
for coverage instead of restarts, which is compared with both after :data:`OPTION_STEPS`."""
RELIABILITY: dict[str, dict[str, Any]] = {
    "center_rewards": {"center_rewards": True},
    "warmup": {"warmup_steps": 160_000},
    "skill_floor": {"skill_floor": 0.1},
    "advantage_floor": {"advantage_floor": 0.1},
    "adaptive_lambda": {"adaptive_lambda": True},
    "all_skills_critic": {"critic_sees": "all_skills"},
    "smooth_discriminators": {"discriminator_decay": 0.01},
}
"""Options measured beside the paper's settings, each alone, after :data:`OPTION_STEPS`."""


def train_run(folder: str, preset_name: str, changes: dict[str, Any], skills_from: str | None = None) -> dict[str, Any]:
    """Train one run to its end; an unfinished run is resumed. ``skills_from`` names the run whose skills are reused."""
    torch.set_num_threads(1)
    state = STATE / folder
    config = preset(preset_name, **changes)
    trainer = Trainer(config, state, sinks=("jsonl",))
    try:
        is_resumed = trainer.resume()
    except ConfigMismatchError:  # it was started with other settings, and is moved away
        trainer, is_resumed = Trainer(config, state, sinks=("jsonl",)), False
    if skills_from is not None and not is_resumed:
        trainer.load_skills(STATE / skills_from / "models" / FINAL_NAME)
    trainer.run()
    all_rows = read_jsonl(state / "logs" / "metrics.jsonl")
    rows = [row for row in all_rows if "Eval/ReturnMean" in row]
    name = "time/steps_per_cpu_second"
    timings = [row[name] for row in read_jsonl(state / "logs" / "timings.jsonl") if name in row]
    return {
        "replay_error": max(row.get("Sync/ReplayLogProbError", 0.0) for row in all_rows),
        "restarts": max(row.get("Sync/Restarts", 0.0) for row in all_rows),
        "starts": starts_of(all_rows) if config.algorithm == "hmasd" else [],
        "steps": [row["step"] for row in rows],
        "returns": [round(row["Eval/ReturnMean"], 5) for row in rows],
        "success": [round(row["Eval/SuccessRate"], 5) for row in rows if "Eval/SuccessRate" in row],
        "steps_per_cpu_second": round(config.batch_size / float(np.mean(config.batch_size / np.array(timings))), 1),
    }


def starts_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each start with new networks: its first rewarded step, and where its skills led at :data:`START_MARKS`."""
    starts = []
    first_step = 0
    updates = [row for row in rows if "Sync/Restarts" in row]
    for number in sorted({row["Sync/Restarts"] for row in updates}):
        of_start = [row for row in updates if row["Sync/Restarts"] == number]
        rewarded = [row["step"] for row in of_start if row.get("Rewards/Episode/Return_Mean", 0.0) > 0.0]
        marks = {}
        for mark in START_MARKS:
            if of_start[-1]["step"] - first_step < mark:
                break
            # the mean of the last five batches of 3,200 steps
            some = [row for row in of_start if first_step + mark - 16_000 < row["step"] <= first_step + mark]
            marks[str(mark)] = {
                name: round(float(np.mean([row[metric] for row in some])), 4)
                for name, metric in DIAGNOSTICS.items()
                if metric in some[0]  # frozen skills have fewer metrics
            }
        starts.append({"rewarded_after": rewarded[0] - first_step if rewarded else None, "marks": marks})
        first_step = of_start[-1]["step"]
    return starts


def throughput(preset_name: str, algorithm: str, updates: int) -> dict[str, Any]:
    """Measure environment steps per CPU second of training."""
    torch.set_num_threads(1)
    config = preset(preset_name, algorithm=algorithm, eval_interval=10**12, total_steps=10**12)
    trainer = Trainer(config)
    trainer.eval_last = False
    trainer.learn(num_iterations=1)
    started = time.process_time()
    trainer.learn(num_iterations=updates)
    return {"speed": updates * config.batch_size / (time.process_time() - started)}


def env_speed(task: str, num_envs: int, steps: int) -> dict[str, Any]:
    """Measure environment steps per CPU second without learning."""
    torch.set_num_threads(1)
    if task == "alice_and_bob":
        env: AliceAndBobEnv | UAVEnv = AliceAndBobEnv(num_envs)
        actions = torch.randint(0, 5, (num_envs, 2))
    else:
        scenario: Any = task.removeprefix("uav_")
        env = UAVEnv(num_envs, config=UAVConfig(scenario=scenario))
        actions = torch.rand(num_envs, 5, 3) * 2 - 1
    env.reset(seed=0)
    started = time.process_time()
    for _ in range(steps):
        env.step(actions)
    return {"speed": steps * num_envs / (time.process_time() - started)}


def kitchen_speed(layout: str, num_envs: int, steps: int) -> dict[str, Any]:
    """Measure the steps per CPU second of a batch of kitchens and of the package, both with random actions."""
    torch.set_num_threads(1)
    actions = torch.randint(0, 6, (steps, num_envs, 2), generator=torch.Generator().manual_seed(0))
    env = OvercookedEnv(num_envs, layout=layout)
    env.reset(seed=0)
    started = time.process_time()
    for step in range(steps):
        env.step(actions[step])
    batched = steps * num_envs / (time.process_time() - started)
    grid, all_actions = package_kitchen(layout)
    state = grid.get_standard_start_state()
    joint = [[all_actions[first], all_actions[second]] for first, second in actions[:, 0].tolist()]
    started = time.process_time()
    for pair in joint:
        state, _ = grid.get_state_transition(state, pair)
        grid.lossless_state_encoding(state)
    return {"speed": batched, "package": steps / (time.process_time() - started)}


def package_kitchen(layout: str) -> tuple[Any, list[Any]]:
    """Return a kitchen of ``overcooked-ai`` and all actions there; its door needs ``gym`` for a name it registers."""
    registration: Any = types.ModuleType("gym.envs.registration")
    registration.register = lambda **_: None
    missing = {
        "gym": types.ModuleType("gym"),
        "gym.envs": types.ModuleType("gym.envs"),
        registration.__name__: registration,
    }
    with mock.patch.dict(sys.modules, missing):
        from overcooked_ai_py.mdp.actions import Action
        from overcooked_ai_py.mdp.overcooked_mdp import OvercookedGridworld
    return OvercookedGridworld.from_layout_name(layout), Action.ALL_ACTIONS


def yardstick(task: str, kind: str, episodes: int) -> dict[str, Any]:
    """Play episodes of a reference policy without learning on a UAV task."""
    scenario: Any = task.removeprefix("uav_")
    env = UAVEnv(episodes, config=UAVConfig(scenario=scenario))
    policy: EpisodePolicy = RandomFlight() if kind == "random" else GreedyFlight(env)
    return {"returns": play_episodes(policy, env, 12345, 1000).returns.tolist()}


@dataclass
class Plan:
    """Training runs by name.

    Attributes:
        quick: Whether they are small, with one seed each.
        runs: Arguments of :func:`train_run` by name.
    """

    quick: bool
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, preset_name: str, *, skills_from: str | None = None, **changes: Any) -> None:  # noqa: ANN401 - fields of HMASDConfig
        """Plan a run of a preset with changed settings; ``skills_from`` is the name of another one."""
        full = {"eval_episodes": 128, "checkpoint_interval": 192_000, "keep_checkpoints": 1}
        small = {"total_steps": 3200, "eval_interval": 3200, "eval_episodes": 16} if self.quick else {}
        before = "quick/" if self.quick else ""
        self.runs[name] = {
            "folder": before + name,
            "preset_name": preset_name,
            "changes": full | changes | small if self.quick else full | changes,
        }
        if skills_from is not None:
            self.runs[name]["skills_from"] = before + skills_from

    def seeds(self, seeds: tuple[int, ...]) -> tuple[int, ...]:
        """Return the seeds, or the first of them."""
        return seeds[:1] if self.quick else seeds


def planned_runs(quick: bool) -> dict[str, dict[str, Any]]:
    """Return every training run by name, the most important first."""
    plan = Plan(quick)
    for method, (changes, fresh) in FRESH.items():
        for seed in plan.seeds(fresh):
            plan.add(f"fresh-{method}-{seed}", "paper", seed=seed, **changes)
    plan_overcooked(plan)
    plan_reuse(plan)
    for method, changes in METHODS.items():
        for seed in plan.seeds(SEEDS):
            plan.add(f"alice_and_bob-{method}-{seed}", "paper", **{"algorithm": "hmasd", "seed": seed} | changes)
    plan_uav(plan)
    if not quick:
        plan_variants(plan)
    return plan.runs


def plan_overcooked(plan: Plan) -> None:
    """Plan the paper's settings for Overcooked and the baselines."""
    for layout in KITCHENS:
        for algorithm, seeds in (("hmasd", OVERCOOKED_SEEDS), ("mappo", OVERCOOKED_SEEDS), ("mat", (0,))):
            for seed in plan.seeds(seeds):
                plan.add(f"{layout}-{algorithm}-{seed}", layout, algorithm=algorithm, seed=seed, eval_episodes=16)
    short = {"seed": 0, "batch_size": 3200, "eval_episodes": 16}  # a quarter of an episode per batch
    plan.add("cramped_room-hmasd_short-0", "cramped_room", algorithm="hmasd", **short)


def plan_reuse(plan: Plan) -> None:
    """Plan the crossed task with the skills of a finished run, and from scratch."""
    for seed in REUSE_SEEDS:
        crossed = {"task": "alice_and_bob_crossed", "seed": seed, "total_steps": OPTION_STEPS}
        plan.add(f"crossed-scratch-{seed}", "paper", **crossed)
        source = f"fresh-default-{seed}"
        plan.add(f"crossed-reuse-{seed}", "paper", skills_from=source, freeze_skills=True, **crossed)


def plan_uav(plan: Plan) -> None:
    """Plan the UAV tasks, also with batches that are shorter than a whole number of skills."""
    for task in ("uav_coverage", "uav_relay"):
        for algorithm in ("hmasd", "mappo"):
            for seed in plan.seeds(UAV_SEEDS):
                plan.add(f"{task}-{algorithm}-{seed}", task, algorithm=algorithm, seed=seed)
        for seed in plan.seeds(UAV_SEEDS):  # 1,024 steps of 32 worlds: skills of 25 steps last beyond every batch
            plan.add(f"{task}-hmasd_uncut-{seed}", task, seed=seed, batch_size=1024)


def plan_variants(plan: Plan) -> None:
    """Plan ablations and options."""
    for ablation, changes in ABLATIONS.items():
        for seed in ABLATION_SEEDS:
            name = f"alice_and_bob-{ablation}-{seed}"
            plan.add(name, "paper", ablation=ablation, seed=seed, total_steps=ABLATION_STEPS, **changes)
    for option, changes in RELIABILITY.items():
        for seed in OPTION_SEEDS:
            plan.add(f"alice_and_bob-{option}-{seed}", "paper", seed=seed, total_steps=OPTION_STEPS, **changes)


def compute(bench: Benchmark, runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Finished runs by name; those that ``--only`` names are computed if they are missing."""
    wanted = {name: run for name, run in runs.items() if fnmatch.fnmatch(name, bench.options.only)}
    # a run that reuses skills comes after the runs whose skills it reuses
    for reuses in (False, True):
        keep_unrestarted(bench, runs)
        bench.units(train_run, {name: run for name, run in wanted.items() if ("skills_from" in run) == reuses})
    keep_unrestarted(bench, runs)
    results = {name: bench.finished(name, **run) for name, run in runs.items()}
    known = {name: result for name, result in results.items() if result is not None}
    discard_states(runs, known)
    return known


def keep_unrestarted(bench: Benchmark, runs: dict[str, dict[str, Any]]) -> None:
    """Keep runs with restarts that never restarted as those with the paper's settings, which they equal bit by bit."""
    for name, run in runs.items():
        if not name.startswith("fresh-paper-") or bench.finished(name, **run) is not None:
            continue
        source = name.replace("paper", "default")
        result = bench.finished(source, **runs[source])
        if result is not None and result["restarts"] == 0:
            bench.keep(name, run, result | {"same_run_as": source})


def discard_states(runs: dict[str, dict[str, Any]], finished: dict[str, dict[str, Any]]) -> None:
    """Remove the states of finished runs, except for the final checkpoints that unfinished runs take skills from."""
    needed = {run.get("skills_from") for name, run in runs.items() if name not in finished}
    for name in finished:
        folder = STATE / runs[name]["folder"]
        if runs[name]["folder"] not in needed:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        shutil.rmtree(folder / "logs", ignore_errors=True)
        for path in (folder / "models").glob("hmasd_sync_enhanced_[0-9]*.pth"):
            path.unlink()


def success_at(run: dict[str, Any], mark: int) -> float:
    """Return the mean success of the last three evaluations up to ``mark`` steps."""
    known = [value for step, value in zip(run["steps"], run["success"], strict=True) if step <= mark + 3200]
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
    figures.append(Figure(name="mappo stays near 0", value=value, op="<=", goal=0.1, note=note))
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
    errors = [run["replay_error"] for run in runs_by_name.values() if "replay_error" in run]
    largest = max(errors, default=float("nan"))
    note = f"of both levels, all updates of {len(errors)} runs"
    figures.append(
        Figure(name="largest replay error of a log-probability", value=largest, op="<=", goal=1e-2, note=note)
    )
    for kind in ("scratch", "reuse"):
        runs = runs_of(runs_by_name, f"crossed-{kind}")
        value, _ = summary(np.array([success_at(run, OPTION_STEPS) for run in runs]))
        steps = float(np.mean([steps_to(run, 0.5) for run in runs])) if runs else float("nan")
        learns = "the coordinator alone learns" if kind == "reuse" else "all networks learn"
        note = f"{learns}; {len(runs)} seed; first evaluation of 50 % at {steps:.0f} steps"
        figures.append(
            Figure(name=f"crossed task, {kind}: success at {OPTION_STEPS:.0e} steps", value=value, note=note)
        )
    return figures


def start_figures(runs_by_name: dict[str, dict[str, Any]]) -> list[Figure]:
    """Compare the starts on fresh seeds that learn the task with those that do not: where their skills led early on."""
    starts: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for name, run in runs_by_name.items():
        if not name.startswith("fresh-default-"):  # a run of the paper's settings begins as the same start
            continue
        *abandoned, last = run["starts"]
        starts[False] += abandoned
        starts[success_at(run, MARKS[-1]) > 0.5] += [last]
    figures = []
    for mark in (str(mark) for mark in START_MARKS[1:4]):
        for diagnostic in DIAGNOSTICS:
            learned, others = (
                np.array([start["marks"][mark][diagnostic] for start in starts[learns] if mark in start["marks"]])
                for learns in (True, False)
            )
            if not learned.size or not others.size:
                continue
            # probability that a start that learns has the larger value: 0.5 tells nothing
            larger = (learned[:, None] > others).mean() + 0.5 * (learned[:, None] == others).mean()
            note = (
                f"{learned.mean():.2f} of {learned.size} starts that learn, {others.mean():.2f} of {others.size} others"
            )
            name = f"starts after {mark} steps, {diagnostic}: P(larger if it learns)"
            figures.append(Figure(name=name, value=float(larger), note=note))
    return figures


def steps_to(run: dict[str, Any], success: float) -> float:
    """Return the steps of the first evaluation with at least this success; infinity if there is none."""
    reached = [step for step, value in zip(run["steps"], run["success"], strict=True) if value >= success]
    return float(reached[0]) if reached else float("inf")


def overcooked_figures(runs_by_name: dict[str, dict[str, Any]]) -> list[Figure]:
    """Return the last returns in the kitchens; 20 is one soup."""
    figures = []
    for layout in KITCHENS:
        for algorithm in ("hmasd", "hmasd_short", "mappo", "mat"):
            if algorithm == "hmasd_short" and layout != "cramped_room":
                continue
            runs = runs_of(runs_by_name, f"{layout}-{algorithm}")
            value, note = summary(np.array([float(np.mean(run["returns"][-3:])) for run in runs]))
            figures.append(Figure(name=f"{layout} {algorithm} return", value=value, note=note))
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


def uav_figures(bench: Benchmark, runs_by_name: dict[str, dict[str, Any]]) -> list[Figure]:
    """Compare the returns on the UAV tasks with random and greedy flight."""
    figures = []
    for task in ("uav_coverage", "uav_relay"):
        best = 0.0
        for kind in ("random", "greedy"):
            returns = np.array(bench.unit(f"{task}-{kind}", yardstick, task=task, kind=kind, episodes=128)["returns"])
            best = max(best, float(returns.mean()))
            figures.append(Figure(name=f"{task} {kind} return", value=float(returns.mean()), note="128 episodes"))
        for algorithm in ("hmasd", "hmasd_uncut", "mappo"):
            values = np.array(
                [float(np.mean(run["returns"][-3:])) for run in runs_of(runs_by_name, f"{task}-{algorithm}")]
            )
            value, note = summary(values)
            figures.append(
                Figure(
                    name=f"{task} {algorithm} return",
                    value=value,
                    op=">",
                    goal=best,
                    note=f"goal: the better of both; {note}",
                )
            )
    return figures


def speed_figures(bench: Benchmark) -> list[Figure]:
    """Measure the throughput of environments and of training, in one process with one thread."""
    steps, updates = (300, 1) if bench.quick else (3000, 8)
    figures = []
    for task in ("alice_and_bob", "uav_coverage", "uav_relay"):
        speed = bench.unit(f"env-{task}", env_speed, task=task, num_envs=32, steps=steps)["speed"]
        goal = 50.0 / ORIGINAL_UAV_SECONDS if task.startswith("uav") else None
        note = f"{speed * ORIGINAL_UAV_SECONDS:.0f} x the original's 44.7 ms" if goal else "32 boards"
        figures.append(Figure(name=f"{task} alone", value=speed, unit="env steps/CPU s", goal=goal, note=note))
    for layout in LAYOUTS:
        for num_envs in (32, 256):
            key = f"kitchens-{layout}-{num_envs}"
            speeds = bench.unit(key, kitchen_speed, layout=layout, num_envs=num_envs, steps=steps // 3)
            ratio = speeds["speed"] / speeds["package"]
            note = f"{speeds['speed']:.0f} env steps/CPU s beside {speeds['package']:.0f} of the package"
            goal = 50.0 if num_envs == 256 else None
            name = f"{layout}, {num_envs} kitchens, ratio to overcooked-ai"
            figures.append(Figure(name=name, value=ratio, unit="x", goal=goal, note=note))
    for preset_name, algorithm in (("paper", "hmasd"), ("paper", "mappo"), ("paper", "mat"), ("uav_relay", "hmasd")):
        key = f"train-{preset_name}-{algorithm}"
        speed = bench.unit(key, throughput, preset_name=preset_name, algorithm=algorithm, updates=updates)["speed"]
        goal = 3084.0 if key == "train-paper-hmasd" else None
        figures.append(
            Figure(name=f"training {algorithm}, {preset_name}", value=speed, unit="env steps/CPU s", goal=goal)
        )
    return figures


def draw(runs_by_name: dict[str, dict[str, Any]]) -> None:
    """Draw the learning curves of everything that has at least one finished run."""
    charts: dict[str, tuple[list[str], str]] = {
        "alice_and_bob": ([f"alice_and_bob-{name}" for name in METHODS], "success"),
        "ablations": ([f"alice_and_bob-{name}" for name in ("hmasd", *ABLATIONS)], "success"),
        "options": ([f"alice_and_bob-{name}" for name in ("hmasd", "restarts", *RELIABILITY)], "success"),
        "uav_coverage": (["uav_coverage-hmasd", "uav_coverage-mappo"], "returns"),
        "uav_relay": (["uav_relay-hmasd", "uav_relay-mappo"], "returns"),
        "fresh": ([f"fresh-{name}" for name in FRESH], "success"),
        **{layout: ([f"{layout}-{name}" for name in ("hmasd", "mappo", "mat")], "returns") for layout in KITCHENS},
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


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's own options."""
    parser.add_argument(
        "--only", default="*", help="compute only training runs whose name matches, for instance '*-hmasd-0'"
    )


def main(argv: list[str] | None = None) -> int:
    """Compute what is missing, draw the curves and print the table."""
    bench = Benchmark("hmasd", __doc__ or "", seeds=SEEDS, argv=argv, add_options=options)
    runs_by_name = compute(bench, planned_runs(bench.quick))
    marks = (3200,) if bench.quick else MARKS
    figures = [
        *speed_figures(bench),
        *fresh_figures(runs_by_name, marks[-1]),
        *start_figures(runs_by_name),
        *overcooked_figures(runs_by_name),
    ]
    figures += [*alice_figures(runs_by_name, marks)]
    figures += [*uav_figures(bench, runs_by_name), *variant_figures(runs_by_name)]
    if bench.quick:  # a few seconds of training reach no goal but those of speed
        figures = [f if f.unit else Figure(name=f.name, value=f.value, note=f.note) for f in figures]
    else:
        PICTURES.mkdir(parents=True, exist_ok=True)
        draw(runs_by_name)
        write_table(figures)
    return bench.finish(figures)


if __name__ == "__main__":
    sys.exit(main())

"""The training runs of ``make bench-hmasd``: what is compared on which seeds, and how one run becomes a unit."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from apexrl.runs.errors import ConfigMismatchError
from apexrl.runs.metrics.jsonl import read_jsonl
from hmasd import Trainer, preset
from hmasd.config import PRESETS
from hmasd.envs.overcooked import LAYOUTS
from hmasd.training.trainer import FINAL_NAME

STATE = Path(__file__).parent / "state" / "hmasd"
"""Checkpoints and metrics of unfinished runs, about 2 MB each, and the skills that another run reuses."""

SEEDS = (0, 1, 2, 3, 4)
ABLATION_SEEDS = (0, 1, 2)
OPTION_SEEDS = (0, 3)
"""With the paper's settings seed 0 succeeds and seed 3 fails, which is why it was chosen: a success there may come from
different random numbers as well as from the option."""
UAV_SEEDS = (0, 1, 2)
UAV_TASKS = ("uav_coverage", "uav_relay")
UAV_METHODS: dict[str, dict[str, Any]] = {
    "hmasd": {"algorithm": "hmasd"},
    "mappo": {"algorithm": "mappo"},
    "hmasd_uncut": {"batch_size": 1024},
    "mappo_short": {"algorithm": "mappo", "batch_size": 1024},
}
"""Methods on the UAV tasks: with the preset's batches, which hold whole skills, and with batches of 1,024 steps of 32
worlds, beyond which skills of 25 steps last; MAPPO has no skills and shows what shorter batches alone change."""
FRESH_SEEDS = tuple(range(5, 15))
"""Seeds that were not seen when the waiting time of restarts was chosen."""
PAPER_FRESH_SEEDS = FRESH_SEEDS[:5]
KITCHEN_METHODS = {"hmasd": (0, 1, 2), "mappo": (0, 1, 2), "mat": (0,)}
"""Seeds of the methods in the kitchens."""
REUSED = {5: "fresh-default-5", 6: "skills-6", 7: "skills-7"}
"""Runs whose skills are reused on the crossed task, by seed: one of 3e6 steps, two of 1e6."""
KITCHENS = (*LAYOUTS, *(f"{layout}_old_dynamics" for layout in LAYOUTS))
"""Presets of Overcooked: the package's rules, and those by which a pot starts by itself with the third onion."""
MARKS = (1_000_000, 2_000_000, 3_000_000)
ABLATION_STEPS = 2_000_000
"""More than twice what the full method needs to reach 80 % where it learns the task."""
OPTION_STEPS = 1_000_000
# λ_e = 1 where otherwise nothing would learn from the team's reward: neither level without the coordinator, and the
# low level would have no reward at all without the discriminators' rewards.
ABLATIONS: dict[str, dict[str, Any]] = {
    "no_team": {},
    "no_indi": {},
    "no_high": {"lambda_e": 1.0},
    "no_in_rew": {"lambda_e": 1.0},
}
"""``no_ex_rew`` is missing because the paper's λ_e is 0 on this task: it is the full method."""
RESTARTS: dict[str, Any] = {"restart_steps": PRESETS["alice_and_bob"]["restart_steps"]}
"""The default on Alice_and_Bob, chosen with the curves of :data:`SEEDS` in view; other settings are the paper's."""
METHODS: dict[str, dict[str, Any]] = {
    "hmasd": {},
    "restarts": RESTARTS,
    "mappo": {"algorithm": "mappo"},
    "mat": {"algorithm": "mat"},
}
"""Methods compared on Alice_and_Bob. ``hmasd`` has exactly the paper's settings; ``restarts`` starts with new networks
after 160,000 steps without reward."""
HMASD_FORMS = ("hmasd", "restarts")
"""Methods with goals."""
FRESH: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "default": (RESTARTS, FRESH_SEEDS),
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
        "replay_errors": {
            level: max(row.get(f"Sync/ReplayLogProbError_{level}", 0.0) for row in all_rows)
            for level in ("Coordinator", "Discoverer")
        },
        "restarts": max(row.get("Sync/Restarts", 0.0) for row in all_rows),
        "steps": [row["step"] for row in rows],
        "returns": [round(row["Eval/ReturnMean"], 5) for row in rows],
        "success": [round(row["Eval/SuccessRate"], 5) for row in rows if "Eval/SuccessRate" in row],
        "steps_per_cpu_second": round(config.batch_size / float(np.mean(config.batch_size / np.array(timings))), 1),
    }


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
        sizes = {"total_steps": 3200, "batch_size": 3200, "eval_interval": 3200, "eval_episodes": 16}
        small = sizes if self.quick else {}
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
    """Plan the paper's settings for Overcooked and the baselines, also with the package's shaped rewards."""
    for layout in KITCHENS:
        for algorithm, seeds in KITCHEN_METHODS.items():
            for seed in plan.seeds(seeds):
                plan.add(f"{layout}-{algorithm}-{seed}", layout, algorithm=algorithm, seed=seed, eval_episodes=16)
    for layout in LAYOUTS:
        for algorithm, seeds in KITCHEN_METHODS.items():
            for seed in plan.seeds(seeds):
                changes = {"algorithm": algorithm, "seed": seed, "eval_episodes": 16, "reward_shaping": 1.0}
                plan.add(f"{layout}-{algorithm}_shaped-{seed}", layout, **changes)
    short = {"seed": 0, "batch_size": 3200, "eval_episodes": 16}  # a quarter of an episode per batch
    plan.add("cramped_room-hmasd_short-0", "cramped_room", algorithm="hmasd", **short)


def plan_reuse(plan: Plan) -> None:
    """Plan the crossed task with the skills of a finished run, and from scratch."""
    for seed in plan.seeds(tuple(REUSED)):
        source, steps = REUSED[seed], {"seed": seed, "total_steps": OPTION_STEPS}
        if source.startswith("skills-"):
            plan.add(source, "paper", **RESTARTS, **steps)
        plan.add(f"crossed-scratch-{seed}", "paper", task="alice_and_bob_crossed", **steps)
        crossed = {"task": "alice_and_bob_crossed", "freeze_skills": True, **steps}
        plan.add(f"crossed-reuse-{seed}", "paper", skills_from=source, **crossed)


def plan_uav(plan: Plan) -> None:
    """Plan the UAV tasks, also with batches that are shorter than a whole number of skills."""
    for task in UAV_TASKS:
        for method, changes in UAV_METHODS.items():
            for seed in plan.seeds(UAV_SEEDS):
                plan.add(f"{task}-{method}-{seed}", task, seed=seed, **changes)


def plan_variants(plan: Plan) -> None:
    """Plan ablations and options."""
    for ablation, changes in ABLATIONS.items():
        for seed in ABLATION_SEEDS:
            name = f"alice_and_bob-{ablation}-{seed}"
            plan.add(name, "paper", ablation=ablation, seed=seed, total_steps=ABLATION_STEPS, **changes)
    for option, changes in RELIABILITY.items():
        for seed in OPTION_SEEDS:
            plan.add(f"alice_and_bob-{option}-{seed}", "paper", seed=seed, total_steps=OPTION_STEPS, **changes)


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

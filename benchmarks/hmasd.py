"""HMASD, MAPPO and MAT on Alice_and_Bob, Overcooked and the UAV tasks, the ablations, and how fast everything runs.

``make bench-hmasd`` takes about ten hours on two cores and can be stopped and resumed: a finished run is a unit, and
an unfinished run resumes from its checkpoint in ``benchmarks/state/hmasd``. ``ARGS="--only 'fresh-*'"`` computes some
of the units; the table then shows what is known so far.
"""

import argparse
import fnmatch
import sys
import time
import types
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.harness import Benchmark, Figure
from benchmarks.hmasd_figures import (
    PICTURES,
    alice_figures,
    draw,
    fresh_figures,
    overcooked_figures,
    runs_of,
    start_figures,
    summary,
    variant_figures,
    write_table,
)
from benchmarks.hmasd_runs import MARKS, SEEDS, discard_states, planned_runs, train_run
from benchmarks.uav_policies import GreedyFlight, RandomFlight
from hmasd import AliceAndBobEnv, OvercookedEnv, Trainer, UAVConfig, UAVEnv, preset
from hmasd.envs.overcooked import LAYOUTS
from hmasd.learning.protocols import EpisodePolicy
from hmasd.training.evaluation import play_episodes

ORIGINAL_UAV_SECONDS = 44.7e-3
"""Seconds per step of the original implementation of the UAV environments."""


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
        *alice_figures(runs_by_name, marks),
        *uav_figures(bench, runs_by_name),
        *variant_figures(runs_by_name),
    ]
    if bench.quick:  # a few seconds of training reach no goal but those of speed
        figures = [f if f.unit else Figure(name=f.name, value=f.value, note=f.note) for f in figures]
    else:
        PICTURES.mkdir(parents=True, exist_ok=True)
        draw(runs_by_name)
        write_table(figures)
    return bench.finish(figures)


if __name__ == "__main__":
    sys.exit(main())

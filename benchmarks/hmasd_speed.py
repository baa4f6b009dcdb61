"""How fast the environments of HMASD step and how fast its algorithms train, for ``make bench-hmasd``.

Speeds are in environment steps per CPU second of one process with one thread. Machines differ, so what is compared is
measured in one run: kitchens beside the package ``overcooked-ai``, training beside an earlier version of this project.
"""

import json
import subprocess
import sys
import time
import types
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, Final
from unittest import mock

import torch

from benchmarks.earlier import ROOT, checkout, environment
from benchmarks.harness import Benchmark, Figure
from hmasd import AliceAndBobEnv, OvercookedEnv, Trainer, UAVConfig, UAVEnv, preset
from hmasd.envs.overcooked import LAYOUTS

ORIGINAL_UAV_SECONDS: Final = 44.7e-3
"""Seconds per step of the UAV environments that document 004 comes from, measured once beside version 0.1."""
VERSION_0_1: Final = "6082f07"
"""The commit of version 0.1, where HMASD trained 3,084 environment steps per CPU second on the machine of its time."""
_TRAIN_0_1: Final = """
import json, time, torch
from hmasd.presets import preset
from hmasd.trainer import Trainer
torch.set_num_threads(1)
config = preset("paper", eval_interval=10**12, total_steps=10**12)
trainer = Trainer(config)
started = 0.0
for update in range({updates} + 1):
    if update == 1:
        started = time.process_time()
    trainer.collector.collect(trainer.learner, config.rollout_steps)
    trainer.learner.update(0)
print(json.dumps({{"speed": {updates} * config.batch_size / (time.process_time() - started)}}))
"""
_TRAIN: Final = """
import json
from benchmarks.hmasd_speed import throughput
print(json.dumps(throughput("paper", "hmasd", {updates})))
"""


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


def kitchen_speed(layout: str, num_envs: int, steps: int, rounds: int) -> dict[str, Any]:
    """Measure the steps per CPU second of a batch of kitchens and of the package, with the same random actions.

    ``package`` is what the package's gym environment computes in a step at the least: the transition and the
    observations of both cooks. ``transitions`` leaves the observations out, which a batch of kitchens never does.
    All three take turns; the medians of the rounds are returned.
    """
    torch.set_num_threads(1)
    actions = torch.randint(0, 6, (steps, num_envs, 2), generator=torch.Generator().manual_seed(0))
    env = OvercookedEnv(num_envs, layout=layout)
    env.reset(seed=0)
    grid, all_actions = package_kitchen(layout)
    joint = [[all_actions[first], all_actions[second]] for first, second in actions[:, 0].tolist()]

    def batched() -> None:
        for step in range(steps):
            env.step(actions[step])

    def alone(*, observes: bool) -> None:
        state = grid.get_standard_start_state()
        for pair in joint:
            state, _ = grid.get_state_transition(state, pair)
            if observes:
                grid.lossless_state_encoding(state)

    rows = []
    for _ in range(rounds):
        kitchens = steps * num_envs / _cpu_seconds(batched)
        package, transitions = (steps / _cpu_seconds(partial(alone, observes=observes)) for observes in (True, False))
        rows.append((kitchens, package, transitions))
    return dict(zip(("speed", "package", "transitions"), map(median, zip(*rows, strict=True)), strict=True))


def _cpu_seconds(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def package_kitchen(layout: str) -> tuple[Any, list[Any]]:
    """Return a kitchen of ``overcooked-ai`` and all actions there. It imports ``gym`` to register a name only."""
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


def speed_ratio(updates: int, rounds: int) -> dict[str, Any]:
    """Measure training beside version 0.1 in processes that take turns; returns median speeds and all ratios."""
    rows: list[tuple[float, float]] = []
    with checkout(VERSION_0_1, "src") as earlier:
        for _ in range(rounds):
            now = _measure(_TRAIN.format(updates=updates), environment(ROOT, ROOT))
            before = _measure(_TRAIN_0_1.format(updates=updates), environment(ROOT) | {"PYTHONPATH": f"{earlier}/src"})
            rows.append((now, before))
    now, before = (median(speeds) for speeds in zip(*rows, strict=True))
    return {"now": now, "before": before, "ratios": [round(first / second, 4) for first, second in rows]}


def _measure(script: str, variables: dict[str, str]) -> float:
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["speed"])


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
            key = f"kitchens-beside-package-{layout}-{num_envs}"
            speeds = bench.unit(key, kitchen_speed, layout=layout, num_envs=num_envs, steps=steps // 3, rounds=5)
            ratio = speeds["speed"] / speeds["package"]
            alone = speeds["transitions"]
            note = (
                f"{speeds['speed']:.0f} env steps/CPU s beside {speeds['package']:.0f} of the package, both with "
                f"observations; {speeds['speed'] / alone:.0f} x the package's {alone:.0f} without"
            )
            goal = 50.0 if num_envs == 256 else None
            name = f"{layout}, {num_envs} kitchens, ratio to overcooked-ai"
            figures.append(Figure(name=name, value=ratio, unit="x", goal=goal, note=note))
    for preset_name, algorithm in (("paper", "hmasd"), ("paper", "mappo"), ("paper", "mat"), ("uav_relay", "hmasd")):
        key = f"train-{preset_name}-{algorithm}"
        speed = bench.unit(key, throughput, preset_name=preset_name, algorithm=algorithm, updates=updates)["speed"]
        goal = 3084.0 if key == "train-paper-hmasd" and not bench.quick else None
        figures.append(
            Figure(name=f"training {algorithm}, {preset_name}", value=speed, unit="env steps/CPU s", goal=goal)
        )
    speeds = bench.unit("train-beside-0.1", speed_ratio, updates=updates, rounds=1 if bench.quick else 9)
    ratios = sorted(speeds["ratios"])
    note = (
        f"median of {len(ratios)} rounds ({ratios[0]:.2f} to {ratios[-1]:.2f}); {speeds['now']:.0f} beside "
        f"{speeds['before']:.0f} env steps/CPU s, which were 3,084 when it was new"
    )
    name, goal = "training hmasd, paper, ratio to version 0.1", None if bench.quick else 1.0
    return [*figures, Figure(name=name, value=median(ratios), unit="x", goal=goal, note=note)]

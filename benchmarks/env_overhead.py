"""CPU time per batched step: bare environments in a loop, gymnasium's SyncVectorEnv, and apexrl's wrapper.

Run: ``OMP_NUM_THREADS=1 python benchmarks/env_overhead.py``. Interleaved repeats in one process; the minimum and the
median of each are printed, in microseconds of CPU time per step of the whole batch.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import gymnasium as gym
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from apexrl.envs import GymVecEnv

NUM_ENVS, STEPS, REPEATS = 8, 300, 25


def cpu_microseconds(step: Callable[[int], object]) -> float:
    """CPU time per call."""
    start = time.process_time()
    for i in range(STEPS):
        step(i)
    return (time.process_time() - start) / STEPS * 1e6


def measure(name: str) -> None:
    """Print one line per way of stepping."""
    make = partial(gym.make, name)
    is_continuous = isinstance(make().action_space, gym.spaces.Box)
    ours = GymVecEnv([make] * NUM_ENVS)
    theirs = SyncVectorEnv([make] * NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP)
    bare = [make() for _ in range(NUM_ENVS)]
    for env in (ours, theirs, *bare):
        env.reset(seed=0)
    random = torch.Generator().manual_seed(0)
    shape = (STEPS, NUM_ENVS, 1) if is_continuous else (STEPS, NUM_ENVS)
    actions = torch.randn(shape, generator=random) if is_continuous else torch.randint(2, shape, generator=random)
    rows = list(actions.unbind())
    arrays = [row.numpy() for row in rows]

    def loop(i: int) -> None:
        for env, action in zip(bare, arrays[i], strict=True):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    ways: dict[str, Callable[[int], object]] = {
        "bare loop": loop,
        "gymnasium SyncVectorEnv": lambda i: theirs.step(arrays[i]),
        "apexrl, tensors in and out": lambda i: ours.step(rows[i]),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(REPEATS):
        for way, step in ways.items():
            times[way].append(cpu_microseconds(step))
    for way, values in times.items():
        print(f"{name} × {NUM_ENVS}  {way:28} min {min(values):6.1f} µs  median {median(values):6.1f} µs")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for env_id in ("CartPole-v1", "Pendulum-v1"):
        measure(env_id)

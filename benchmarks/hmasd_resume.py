"""Whether a run of HMASD that is killed and started again equals one that was not, for ``make bench-hmasd``."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from apexrl.runs.checkpoints.checkpoint import load_checkpoint
from benchmarks.harness import Benchmark, Figure
from hmasd.training.trainer import FINAL_NAME, SCHEMA

BATCH = 1024
"""Environment steps of a batch: 32 of each environment, so that skills of 50 steps last beyond every batch."""


def killed_run(steps: int) -> dict[str, Any]:
    """Train ``2·steps``, once in one go and once killed after ``steps`` and started again; count what differs."""
    with tempfile.TemporaryDirectory() as folder:
        whole, parts = Path(folder) / "whole", Path(folder) / "parts"
        subprocess.run(_command(whole, steps), check=True, capture_output=True)
        first = subprocess.Popen(_command(parts, steps), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(parts.glob(f"models/*_{steps}.pth")) and first.poll() is None:
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        killed = first.wait() == -signal.SIGKILL and not (parts / "models" / FINAL_NAME).exists()
        subprocess.run(_command(parts, steps), check=True, capture_output=True)
        ours, theirs = (
            dict(_leaves(load_checkpoint(run / "models" / FINAL_NAME, SCHEMA).state)) for run in (whole, parts)
        )
        metrics = [(run / "logs" / "metrics.jsonl").read_bytes() for run in (whole, parts)]
    names = ours.keys() | theirs.keys()
    different = sum(not _equal(ours.get(name), theirs.get(name)) for name in names)
    return {"killed": killed, "values": len(names), "different": different, "same_metrics": metrics[0] == metrics[1]}


def _command(folder: Path, steps: int) -> list[str]:
    settings = {"batch_size": BATCH, "total_steps": 2 * steps, "checkpoint_interval": steps, "eval_episodes": 8}
    words = [f"{name}={value}" for name, value in settings.items()]
    return [sys.executable, "-m", "hmasd", "train", "--preset", "paper", "--set", *words, "--folder", str(folder)]


def _leaves(state: Any, name: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - nested plain values and tensors
    """Yield all values of a nested state with their paths."""
    if isinstance(state, dict):
        for key, item in state.items():
            yield from _leaves(item, f"{name}/{key}")
    elif isinstance(state, list | tuple):
        for index, item in enumerate(state):
            yield from _leaves(item, f"{name}/{index}")
    else:
        yield name, state


def _equal(first: Any, second: Any) -> bool:  # noqa: ANN401 - a tensor or a plain value
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return torch.equal(first, second)
    return bool(type(first) is type(second) and first == second)


def resume_figures(bench: Benchmark) -> list[Figure]:
    """Return what differs after a kill; nothing may."""
    result = bench.unit("killed-run", killed_run, steps=BATCH * (1 if bench.quick else 8))
    different = result["different"] if result["killed"] and result["same_metrics"] else float("nan")
    note = f"of {result['values']} tensors and counters of the final checkpoint, metrics.jsonl byte by byte"
    name = "2N steps beside N, SIGKILL, N: values that differ"
    return [Figure(name=name, value=different, op="==", goal=0.0, note=note)]

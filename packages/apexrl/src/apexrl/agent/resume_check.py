"""A check for learners of your own: 2N iterations in one go equal N, a kill, and the rest after a resume."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from apexrl.agent.runner import Runner


class ResumeCheckError(AssertionError):
    """A run that was killed and resumed differs from one that was not."""


def check_resume(
    make: Callable[[Path], Runner], folder: Path, iterations: int = 3, ignored: tuple[str, ...] = ()
) -> None:
    """Train 2N iterations in one go, and again with a SIGKILL after N; compare states and metrics bit by bit.

    The killed part runs in a forked process, so this needs an operating system with ``fork``.

    Args:
        make: Builds a runner that logs and saves below a folder; the same every time.
        folder: Where to work; empty.
        iterations: N.
        ignored: Parts of names in the state that may differ.

    Raises:
        ResumeCheckError: Something differs; it says where.
    """
    torch.set_num_threads(1)  # threads do not survive a fork
    whole = make(folder / "whole")
    total = 2 * iterations * whole.learner.per_iteration
    whole.learn(total_timesteps=total)
    _killed(make, folder / "parts", total, iterations)
    resumed = make(folder / "parts")
    if not resumed.resume():
        raise ResumeCheckError("the killed run left no checkpoint: save at least once in the first half")
    if not 0 < resumed.iteration <= iterations:
        raise ResumeCheckError(f"the run was killed after {iterations} iterations and resumes at {resumed.iteration}")
    resumed.learn(total_timesteps=total)
    paths = differences(whole.state_dict(), resumed.state_dict())
    paths = [path for path in paths if not any(part in path for part in ignored)]
    if paths:
        raise ResumeCheckError(f"the resumed run differs in {', '.join(paths[:10])}")
    metrics = [(runner.log_dir or folder) / runner.learner.files.metrics for runner in (whole, resumed)]
    if metrics[0].exists() and metrics[0].read_bytes() != metrics[1].read_bytes():
        raise ResumeCheckError(f"the metrics {metrics[0]} and {metrics[1]} differ")
    whole.close()
    resumed.close()


def _killed(make: Callable[[Path], Runner], folder: Path, total: int, iterations: int) -> None:
    """Train in a forked process that is killed in the middle of iteration N + 1."""
    process = os.fork()
    if process == 0:
        try:
            runner = make(folder)

            def die(runner: Runner) -> None:
                if runner.iteration == iterations:
                    os.kill(os.getpid(), signal.SIGKILL)

            runner.add_callback("post_update", die)
            runner.learn(total_timesteps=total)
        finally:
            os._exit(1)
    _, status = os.waitpid(process, 0)
    if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        raise ResumeCheckError(f"the killed part ended by itself (status {status}): it raised an error, or learns less")


def differences(one: Any, other: Any, where: str = "state") -> list[str]:  # noqa: ANN401 - trees of tensors and values
    """Return where two states differ, in tensors and plain values."""
    if type(one) is not type(other):
        return [where]
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return [f"{where} ({sorted(map(str, one.keys() ^ other.keys()))})"]
        return [path for key in one for path in differences(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return [where]
        pairs = enumerate(zip(one, other, strict=True))
        return [path for index, (a, b) in pairs for path in differences(a, b, f"{where}[{index}]")]
    same = torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
    return [] if same else [where]

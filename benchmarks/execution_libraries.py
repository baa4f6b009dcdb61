"""The executors beside concurrent.futures, loky and pebble: cost per task, and recovery from killed and hung tasks.

``python -m benchmarks.execution_libraries`` prints the table of docs/decisions/0004-executors.md within two minutes. It
needs ``pip install loky pebble``.
"""

import math
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent import futures
from pathlib import Path
from typing import Any

import psutil

WORKERS = 2
TASKS = 2_000
LIMIT = 2.0
ACCIDENT = 10


def play(index: int, accident: str, folder: str) -> int:
    """Return the index; end badly at index 10, once, if asked to."""
    mark = Path(folder) / "happened"
    if index == ACCIDENT and accident and not mark.exists():
        mark.touch()
        if accident == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        (Path(folder) / "grandchild").write_text(str(child.pid))
        time.sleep(60)
    time.sleep(0.02)
    return index


def play_tasks(accident: str, folder: str, count: int) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the calls to make."""
    return [(play, (index, accident, folder)) for index in range(count)]


Calls = Iterable[tuple[Callable[..., Any], tuple[Any, ...]]]


def ours(calls: Calls) -> list[Any]:
    """Run calls with this package's executor; a value per call, or the reason of its failure."""
    from apexrl.execution import RunOptions, Task, make_executor

    with make_executor("processes", workers=WORKERS) as executor:
        run = executor.run((Task(*call) for call in calls), RunOptions(time_limit=LIMIT, retries=1))
        return [result.value if result.ok else str(result.failure) for result in run]


def collected(waiting: Iterable[futures.Future[Any]]) -> list[Any]:
    """Wait for futures; a value per call, or the exception's name. One that waits 3 limits counts as hung."""
    results: list[Any] = []
    for future in waiting:
        try:
            results.append(future.result(timeout=3 * LIMIT))
        except Exception as error:  # each library has its own classes, and their names are what is compared
            results.append(type(error).__name__)
            if isinstance(error, futures.TimeoutError) and not future.done():
                break
    return results


def standard(calls: Calls) -> list[Any]:
    """Run calls with ``concurrent.futures``."""
    executor = futures.ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn"))
    results = collected([executor.submit(function, *args) for function, args in calls])
    executor.shutdown(wait=False, cancel_futures=True)
    return results


def loky_pool(calls: Calls) -> list[Any]:
    """Run calls with loky."""
    import loky

    executor = loky.ProcessPoolExecutor(WORKERS)
    results = collected([executor.submit(function, *args) for function, args in calls])
    executor.shutdown(wait=False, kill_workers=True)
    return results


def pebble_pool(calls: Calls) -> list[Any]:
    """Run calls with pebble, which has a limit per task."""
    import pebble

    with pebble.ProcessPool(WORKERS, context=multiprocessing.get_context("spawn")) as pool:
        results = collected([pool.schedule(function, args=args, timeout=LIMIT) for function, args in calls])
        pool.stop()
        return results


LIBRARIES = {"apexrl": ours, "concurrent.futures": standard, "loky": loky_pool, "pebble": pebble_pool}


def overhead(name: str) -> float:
    """Return microseconds of wall clock per square root, the workers' start taken off."""
    seconds = []
    for count in (WORKERS, TASKS):
        began = time.perf_counter()
        LIBRARIES[name]([(math.sqrt, (value,)) for value in range(count)])
        seconds.append(time.perf_counter() - began)
    return 1e6 * (seconds[1] - seconds[0]) / TASKS


def accident(name: str, kind: str) -> str:
    """Return how many of 20 calls have their value, in what time, what the rest say, and what is left running."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        results = LIBRARIES[name](play_tasks(kind, folder, 20))
        seconds = time.perf_counter() - began
        lost = sorted({str(value) for index, value in enumerate(results) if value != index})
        right = sum(value == index for index, value in enumerate(results))
        text = f"{right}/20 in {seconds:.1f} s" + (f" ({', '.join(lost)})" if lost else "")
        grandchild = Path(folder) / "grandchild"
        if grandchild.exists():
            process = int(grandchild.read_text())
            time.sleep(0.5)
            left = psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE
            text += "; grandchild " + ("left" if left else "gone")
            if left:
                os.kill(process, signal.SIGKILL)
        return text


def orphans(name: str) -> str:
    """Kill a parent with SIGKILL while a task of it runs, and count the processes that outlive it."""
    with tempfile.TemporaryDirectory() as folder:
        parent = subprocess.Popen([sys.executable, "-m", "benchmarks.execution_libraries", "hang", name, folder])
        while not (Path(folder) / "grandchild").exists() and parent.poll() is None:
            time.sleep(0.05)
        children = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
        parent.wait()
        time.sleep(1.0)
        left = [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
        for child in left:
            child.kill()
        return f"{len(left)} of {len(children)}"


def main() -> None:
    """Print a row per library."""
    if sys.argv[1:2] == ["hang"]:
        LIBRARIES[sys.argv[2]](play_tasks("hang", sys.argv[3], ACCIDENT + 1))
        return
    print("| library | µs per tiny task | a worker is killed | a task hangs | processes that outlive a killed parent |")
    print("|---|---|---|---|---|")
    for name in LIBRARIES:
        cost = statistics.median(overhead(name) for _ in range(3))
        print(f"| {name} | {cost:.0f} | {accident(name, 'kill')} | {accident(name, 'hang')} | {orphans(name)} |")
        sys.stdout.flush()
    os._exit(0)  # not waiting for pools that wait for a task that hangs


if __name__ == "__main__":
    main()

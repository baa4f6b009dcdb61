"""Functions for workers to run. Workers import this file by name; conftest.py puts its folder on the import path."""

import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path


def simulate(index, *, seed):
    """A result with many types in it that depends on the arguments alone."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return {
        "index": index,
        "draws": rng.standard_normal(5),
        "names": sorted({f"agent{i}" for i in rng.integers(0, 50, 8)}),
        "score": random.Random(seed).random(),
    }


def simulate_slowly(index, numbers, *, seed):
    """The same as `simulate` with a shared value, and slow enough to be interrupted."""
    time.sleep(0.05)
    return simulate(index + len(numbers), seed=seed)


def simulate_on_a_cluster(index, numbers, doomed, folder, *, seed):
    """The same as `simulate_slowly`; it never ends on the node `doomed`, and waits elsewhere until that is removed."""
    import ray

    if ray.get_runtime_context().get_node_id() == doomed:
        (Path(folder) / "reached").touch()
        time.sleep(120)
    while not (Path(folder) / "removed").exists():
        time.sleep(0.01)
    return simulate_slowly(index, numbers, seed=seed)


def simulate_with_accidents(index, accidents, folder, *, seed):
    """The same as `simulate`, but the first attempt at some indices ends badly."""
    mark = Path(folder) / str(index)
    if index in accidents and not mark.exists():
        mark.touch()
        end_badly(accidents[index])
    return simulate(index, seed=seed)


def end_badly(how):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit":
        os._exit(3)
    elif how == "crash":
        ctypes.string_at(0)
    elif how == "hang":
        time.sleep(600)
    elif how == "hang with the interpreter lock":
        ctypes.PyDLL(None).sleep(600)
    elif how == "raise":
        raise ValueError("asked to raise")
    elif how == "sys.exit":
        sys.exit("asked to leave")
    elif how == "fork and die":
        if os.fork() == 0:
            time.sleep(600)
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "unpicklable":
        return lambda: None
    elif how == "bad to unpickle":
        return BadToUnpickle()
    return how


class BadToUnpickle:
    def __reduce__(self):
        return int, ("not a number",)


def square(value):
    return value * value


def sleep_then_return(item):
    seconds, value = item
    time.sleep(seconds)
    return value


def process_id(_):
    return os.getpid()


def blob(size):
    return bytes(size)


def length(data):
    return len(data)


def environment(names):
    return {name: os.environ.get(name) for name in names}


def imported_modules(names):
    return [name for name in names if name in sys.modules]


def meet(folder):
    """Wait until another worker does the same."""
    (Path(folder) / str(os.getpid())).touch()
    while len(list(Path(folder).iterdir())) < 2:
        time.sleep(0.01)


def announce_then_sleep(folder):
    """Leave the process ids of the worker and of a child of it in a folder, then hang."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (Path(folder) / f"{os.getpid()}").touch()
    (Path(folder) / f"{child.pid}").touch()
    time.sleep(600)


class Counter:
    """An actor with state and a stream of random numbers."""

    def __init__(self, key, *, seed=0):
        self.key = key
        self.total = 0
        self.random = random.Random(seed)

    def add(self, amount, scale=1):
        self.total += amount * scale
        return self.key, self.total, self.random.random()

    def where(self):
        return os.getpid()

    def fail_if(self, key):
        if key == self.key:
            raise ValueError(f"{key} was asked to fail")
        return self.total

    def die_if(self, key, how="kill"):
        if key == self.key:
            end_badly(how)
        return self.total

    def die_once(self, key, folder, how="kill"):
        mark = Path(folder) / "died"
        if key == self.key and not mark.exists():
            mark.touch()
            end_badly(how)
        return self.key * 10


def broken_factory(key):
    raise RuntimeError(f"cannot build {key}")


def deadly_factory(key):
    os._exit(4)

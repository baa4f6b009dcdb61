"""A program that runs tiny tournaments with imports paid once; tests start it with fixed hashing.

Commands: ``same FOLDER``: one tournament on every executor and engine, a folder each. ``kill FOLDER SEED N``: a
tournament killed N times at random moments and gone on with. ``step FOLDER``: a tournament killed at every single
file operation, one after the other. ``accidents FOLDER``: agents that die, hang and raise.
"""

import contextlib
import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.run import run_tournament

PLAYERS = ("RandomStd", "SyncRandomStd", "GreedyStd")


def tiny(folder, **options):
    """A tournament of 6 worlds of 5 days in shards of 4."""
    defaults = {"competitors": PLAYERS, "configs": 2, "runs": 1, "steps": 5, "levels": 2, "shard_size": 4, "seed": 3}
    return TournamentConfig(**{**defaults, "output_dir": folder, "quiet": True, "executor": "inline", **options})


def same(folder):
    run_tournament(tiny(folder / "inline"))
    run_tournament(tiny(folder / "scml", engine="scml"))
    run_tournament(tiny(folder / "processes", executor="processes", workers=2))
    run_tournament(tiny(folder / "ray", executor="ray", workers=2))


def forked(work):
    """Runs ``work`` in a forked child; returns its process id."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            work()
            status = 0
        os._exit(status)
    return child


def kill(folder, seed, kills):
    """Kills tournaments of 3 worlds in 2 shards, so that most moments are those of writing, until enough are struck."""
    draw = random.Random(seed)
    options = {"configs": 1, "shard_size": 2, "steps": 4}
    for name in ("warm", "whole"):  # the second one tells how long a tournament takes
        began = time.monotonic()
        assert os.waitpid(forked(partial(run_tournament, tiny(folder / name, **options))), 0)[1] == 0
        whole = time.monotonic() - began
    struck = finished = 0
    while struck < kills:
        target = folder / f"killed-{finished}"
        longest = whole * 0.6
        while True:
            child = forked(partial(run_tournament, tiny(target, **options)))
            time.sleep(draw.uniform(0, longest))
            longest *= 1.1  # a machine that has become slower since gets to the end too
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                assert status == 0, status
                break
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            struck += 1
        finished += 1
    print(struck, finished, flush=True)


def step(folder):
    """Kills the process before its n-th file operation, for every n, always going on in the same folder."""
    options = {"csv": False, "configs": 1, "shard_size": 2}
    at = 0
    while True:
        at += 1
        child = forked(partial(_killed_run, at, tiny(folder / "stepped", **options)))
        status = os.waitpid(child, 0)[1]
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL, status
    print(at, flush=True)
    run_tournament(tiny(folder / "whole", **options))


def _killed_run(at, config):
    _kill_before(at)
    run_tournament(config)


def _kill_before(number):
    """Kills this process before its ``number``-th rename, removal of a file, or creation of one under a new name."""
    left = number

    def watch(event, arguments):
        nonlocal left
        if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def accidents(folder):
    """One world per competitor. The limits are generous: a busy machine takes long to import scml."""
    options = {"configs": 1, "n_competitors_per_world": 1, "executor": "processes", "workers": 2}
    mortal = ("RandomStd", "troubled_agents.Dies", "troubled_agents.RaisesAtBirth")
    run_tournament(tiny(folder / "accidents", competitors=mortal, retries=1, time_limit=200.0, **options))
    hanging = ("troubled_agents.Hangs",)
    options |= {"workers": 1, "retries": 0, "time_limit": 20.0}
    outcome = run_tournament(tiny(folder / "hanging", competitors=hanging, **options))
    print(outcome.exit_code)


if __name__ == "__main__":
    command, where = sys.argv[1], Path(sys.argv[2])
    if command == "kill":
        kill(where, int(sys.argv[3]), int(sys.argv[4]))
    else:
        {"same": same, "step": step, "accidents": accidents}[command](where)

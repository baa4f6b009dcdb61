"""Tournaments that tests look at are run by a program of their own, with fixed hashing and imports paid once."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def run_program():
    """Runs ``tournament_program.py`` with some words and returns what it printed."""

    def run(*words, timeout=900):
        paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        command = [sys.executable, str(HERE / "tournament_program.py"), *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def tree():
    """The content of every file under a folder, by relative path."""

    def read(folder, *names):
        files = [path for name in names for path in sorted((folder / name).rglob("*")) if path.is_file()]
        files += [folder / name for name in names if (folder / name).is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    return read


@pytest.fixture(scope="session")
def finished(run_program, tmp_path_factory):
    """One tournament on every executor and engine: a folder for each; run once for all processes of the tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "same_tournaments"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            run_program("same", folder)
            (folder / "done").touch()
    return folder

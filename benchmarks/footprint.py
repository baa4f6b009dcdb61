"""Size and import time of the wheel of apexrl in a clean environment, beside Stable-Baselines3's.

Each library is installed alone with its dependencies (the versions of ``constraints.txt``) into an environment of its
own. Import times are CPU seconds of new interpreters, taken in turn, and the medians are compared: ``import apexrl``
and ``import stable_baselines3``, then the algorithm with its networks (``from apexrl import PPO``). Both need torch,
whose size and import are given apart.
"""

import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import Benchmark, Figure

_ROOT = Path(__file__).parent.parent
_IMPORTS = {
    "apexrl": ("import torch", "import apexrl", "from apexrl import PPO, OnPolicyRunner, GymVecEnv"),
    "stable_baselines3": ("import torch", "import stable_baselines3", "from stable_baselines3 import PPO"),
}
_TORCH = ("torch", "torchgen", "functorch")
_WATCH = "import resource; {}; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"


def _run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def _megabytes(folder: Path) -> float:
    """Return the size of the files below a folder, compiled Python files excepted."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc" and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


def _install(folder: Path, requirement: str | Path) -> Path:
    """Make an environment with a library and its dependencies; return its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    options = ("--quiet", "--disable-pip-version-check", "--no-compile", "-c", _ROOT / "constraints.txt")
    _run(python, "-m", "pip", "install", *options, requirement)
    return python


def _seconds(python: Path, statement: str) -> float:
    return float(_run(python, "-c", _WATCH.format(statement)))


def measure(repeats: int) -> dict[str, Any]:
    """Build the wheel, install both libraries, and measure sizes in megabytes and import times in CPU seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, _ROOT / "packages/apexrl")
        [wheel] = folder.glob("*.whl")
        pythons = {
            "apexrl": _install(folder / "ours", wheel),
            "stable_baselines3": _install(folder / "theirs", "stable-baselines3"),
        }
        sizes: dict[str, float] = {"wheel": wheel.stat().st_size / 1e6}
        for library, python in pythons.items():
            [site] = (python.parent.parent / "lib").glob("python*/site-packages")
            sizes[library] = _megabytes(site / library)
            sizes["torch"] = sum(_megabytes(site / package) for package in _TORCH)
            sizes[f"{library} with dependencies"] = _megabytes(site) - sizes["torch"]
        statements = [(library, statement) for library, imports in _IMPORTS.items() for statement in imports]
        times: dict[str, list[float]] = {f"{library}: {statement}": [] for library, statement in statements}
        for _ in range(repeats + 1):  # the first round compiles
            for library, statement in statements:
                times[f"{library}: {statement}"].append(_seconds(pythons[library], statement))
    return {"sizes": sizes, "seconds": {what: median(values[1:]) for what, values in times.items()}}


def _figures(sizes: dict[str, float], seconds: dict[str, float]) -> Sequence[Figure]:
    ours, theirs = (f"{name}: {imports[2]}" for name, imports in _IMPORTS.items())
    package, their_package = (f"{name}: {imports[1]}" for name, imports in _IMPORTS.items())
    return [
        Figure(name="wheel of apexrl", value=sizes["wheel"], unit="MB"),
        Figure(name="apexrl on disk", value=sizes["apexrl"], unit="MB"),
        Figure(name="Stable-Baselines3 on disk", value=sizes["stable_baselines3"], unit="MB"),
        Figure(name="torch on disk", value=sizes["torch"], unit="MB"),
        Figure(name="apexrl with its dependencies, without torch", value=sizes["apexrl with dependencies"], unit="MB"),
        Figure(
            name="SB3 with its dependencies, without torch",
            value=sizes["stable_baselines3 with dependencies"],
            unit="MB",
        ),
        Figure(name="import torch", value=seconds["apexrl: import torch"], unit="s"),
        Figure(name="import apexrl", value=seconds[package], unit="s", op="<=", goal=0.1),
        Figure(name="import stable_baselines3", value=seconds[their_package], unit="s"),
        Figure(name="from apexrl import PPO, OnPolicyRunner, GymVecEnv", value=seconds[ours], unit="s"),
        Figure(name="from stable_baselines3 import PPO", value=seconds[theirs], unit="s"),
        Figure(
            name="import of the algorithm, apexrl / SB3",
            value=seconds[ours] / seconds[theirs],
            unit="x",
            op="<=",
            goal=1.0,
        ),
    ]


def main() -> int:
    """Measure and print the table."""
    bench = Benchmark("footprint", __doc__ or "", seeds=[0])
    found = bench.unit("both", measure, repeats=3 if bench.quick else 5)
    return bench.finish(list(_figures(found["sizes"], found["seconds"])))


if __name__ == "__main__":
    sys.exit(main())

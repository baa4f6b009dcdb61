"""Write ``constraints.txt`` and ``requirements.lock``: the versions of this environment, and the hashes of their files.

The first is what ``make setup`` installs. The second has the same versions with the hashes of every file that the
package index offers for them, for installations that accept no other file (torch excepted: its CPU build and its CUDA
build are different files of the same version)::

    pip install torch==VERSION && pip install --no-deps --require-hashes -r requirements.lock
"""

import importlib.metadata
import platform
import re
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_CONSTRAINTS = _ROOT / "constraints.txt"
_LOCK = _ROOT / "requirements.lock"
_HEADER = """# The whole tested set. Written by scripts/pin_constraints.py; `make setup` installs it.
# torch carries no local version here, so that the CPU build and the registry's build both satisfy the pin.
"""
_LOCK_HEADER = """# constraints.txt with the hashes of the files, torch excepted. Written by scripts/pin_constraints.py.
# pip install torch=={torch} && pip install --no-deps --require-hashes -r requirements.lock
"""
_OURS = {"apexrl", "hmasd", "litaagent"}


def pins() -> dict[str, str]:
    """Return the version of every installed package except this project, pip and what only the benchmarks need."""
    benchmark_only = {
        re.split(r"[=<>~ ]", line)[0].lower()
        for line in (_ROOT / "benchmarks" / "requirements.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    skipped = {*_OURS, "pip", *benchmark_only}
    installed = importlib.metadata.distributions()
    versions = {re.sub(r"[-_.]+", "-", dist.name).lower(): dist.version.split("+")[0] for dist in installed}
    return {name: version for name, version in sorted(versions.items()) if name not in skipped}


def hashed(versions: dict[str, str]) -> str:
    """Return requirements with the hashes of all files of each version, as the package index lists them."""
    lines = "".join(f"{name}=={version}\n" for name, version in versions.items() if name != "torch")
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-deps", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--python-version", platform.python_version(), "-"]
    return subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Write both files."""
    versions = pins()
    lock = _LOCK_HEADER.format(torch=versions["torch"]) + hashed(versions)
    _CONSTRAINTS.write_text(_HEADER + "".join(f"{name}=={version}\n" for name, version in versions.items()))
    _LOCK.write_text(lock)


if __name__ == "__main__":
    main()

"""Write ``constraints.txt``: the exact version of every package in the environment this runs in."""

import importlib.metadata
import re
from pathlib import Path

_TARGET = Path(__file__).parent.parent / "constraints.txt"
_HEADER = """# The whole tested set. Written by scripts/pin_constraints.py; `make setup` installs it.
# torch carries no local version here, so that the CPU build and the registry's build both satisfy the pin.
"""


def main() -> None:
    """Pin everything that is installed except this project, pip and what only the benchmarks need."""
    benchmark_only = {
        re.split(r"[=<>~ ]", line)[0].lower()
        for line in (_TARGET.parent / "benchmarks" / "requirements.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    skipped = {"litaagent", "pip", *benchmark_only}
    installed = importlib.metadata.distributions()
    pins = {re.sub(r"[-_.]+", "-", dist.name).lower(): dist.version.split("+")[0] for dist in installed}
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items()) if name not in skipped]
    _TARGET.write_text(_HEADER + "".join(lines))


if __name__ == "__main__":
    main()

"""What importing a package loads, and what it must not."""

import json
import subprocess
import sys

import pytest


def modules_after(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("package", ["apexrl", "hmasd", "apexrl.configuration"])
def test_engine_loads_nothing_of_the_league(package: str) -> None:
    loaded = modules_after(f"import {package}")
    assert package in loaded
    assert not {"scml", "negmas", "scml_agents", "litaagent_std"} & loaded


def test_help_loads_nothing_heavy() -> None:
    loaded = modules_after("import lita.main as lita; lita.usage()")
    assert not {"torch", "numpy", "tyro", "pydantic", "scml"} & loaded

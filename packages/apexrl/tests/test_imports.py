"""The package-level names: all there, typed once, and imported only when they are used."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import apexrl

DOORS = ["apexrl", "apexrl.agent", "apexrl.algorithms", "apexrl.envs", "apexrl.execution", "apexrl.export"]
HEAVY = {"torch", "numpy", "pydantic", "tensorboard", "rich", "gymnasium", "tyro"}


def loaded_by(statement):
    program = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


@pytest.mark.parametrize("package", [door for door in DOORS if door != "apexrl.envs"])
def test_a_door_loads_nothing_heavy(package):
    assert loaded_by(f"import {package}").isdisjoint(HEAVY)


@pytest.mark.parametrize("package", [*DOORS, "apexrl.models"])
def test_every_public_name_exists(package):
    module = import_module(package)
    assert sorted(module.__all__) == sorted(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("package", ["apexrl", "apexrl.agent", "apexrl.algorithms", "apexrl.export"])
def test_type_checkers_see_the_names_that_exist(package):
    tree = ast.parse(Path(import_module(package).__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == set(import_module(package).__all__) - {"__version__"}


def test_names_are_those_of_their_modules():
    from apexrl.agent.on_policy_runner import OnPolicyRunner
    from apexrl.algorithms.ppo import PPO

    assert apexrl.PPO is PPO
    assert apexrl.OnPolicyRunner is OnPolicyRunner


def test_a_misspelt_name_is_an_import_error():
    with pytest.raises(ImportError, match="PPP"):
        from apexrl import PPP  # noqa: F401
    with pytest.raises(AttributeError, match="no attribute 'PPP'"):
        apexrl.PPP  # noqa: B018


def test_the_version_is_the_distributions():
    assert apexrl.__version__.count(".") == 2


MODULES = ["atomic", "digest", "errors", "metrics.jsonl", "metrics.logger", "run_dir", "session", "signals"]


@pytest.mark.parametrize("module", MODULES)
def test_modules_that_need_no_torch_do_not_load_it(module):
    assert loaded_by(f"import apexrl.runs.{module}").isdisjoint({"torch", "numpy", "tensorboard", "rich"})


def test_checkpoints_do_not_load_tensorboard():
    assert loaded_by("import apexrl.runs.checkpoints.checkpoint").isdisjoint({"tensorboard", "rich"})


def test_a_numpy_policy_needs_no_torch():
    assert "torch" not in loaded_by("from apexrl import NumpyPolicy")

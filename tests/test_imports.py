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


IMPORT_ALL = """
import builtins, importlib, pkgutil, sys

ABSENT = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
original = builtins.__import__

def without_unix(name, globals=None, locals=None, fromlist=(), level=0):
    if name in ABSENT and globals and globals.get("__name__", "").partition(".")[0] == sys.argv[1]:
        raise ModuleNotFoundError(f"{globals['__name__']} imports {name}", name=name)
    return original(name, globals, locals, fromlist, level)

builtins.__import__ = without_unix
package = importlib.import_module(sys.argv[1])
names = [info.name for info in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""


@pytest.mark.parametrize("package", ["apexrl", "hmasd", "litaagent_std", "lita"])
def test_no_module_needs_unix_to_be_imported(package: str) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, package], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) > 5

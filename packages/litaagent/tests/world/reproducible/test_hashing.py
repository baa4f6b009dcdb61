import os
import subprocess
import sys
import warnings

import pytest

from litaagent_std.world.reproducible import hashing

PROGRAM = """
from litaagent_std.world.reproducible.hashing import is_fixed, restart_with_fixed_hashing
if __name__ == "__main__":
    restart_with_fixed_hashing()
    print(is_fixed(), hash("a partner"))
"""


def run_program(tmp_path, salt):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    if salt is not None:
        environment["PYTHONHASHSEED"] = salt
    done = subprocess.run([sys.executable, program, "x"], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def test_programs_restart_into_the_same_hashing(tmp_path):
    outputs = {run_program(tmp_path, salt) for salt in (None, "0", "7")}
    assert len(outputs) == 1
    assert outputs.pop().startswith("True ")


def test_a_process_that_salts_its_hashes_warns(monkeypatch):
    monkeypatch.setattr(hashing, "is_fixed", lambda: False)
    with pytest.warns(hashing.UnstableHashingWarning, match="PYTHONHASHSEED=0"):
        hashing.warn_unless_fixed()


def test_a_process_with_fixed_hashing_does_not_warn(monkeypatch):
    monkeypatch.setattr(hashing, "is_fixed", lambda: True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hashing.warn_unless_fixed()

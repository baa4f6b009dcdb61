"""``lita train-online``, killed again and again, ends with the very weights of a run that nobody killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPERVISOR = Path(__file__).with_name("kill_supervisor.py")


@pytest.mark.parametrize(("method", "seed"), [("ppo", 2), ("es", 2), ("surface", 2)])
def test_a_run_that_is_killed_at_random_moments_ends_bit_by_bit_the_same(method, seed, tmp_path):
    environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SUPERVISOR), str(tmp_path), method, str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["different"] == []
    assert told["kills"] >= 2
    assert len(told["begun"]) == told["kills"] + 1
    assert told["begun"] == sorted(told["begun"])  # nothing that was saved is lost
    assert told["begun"][-1] > 0  # and something was
    assert (told["weights"], told["gates"]) == (6, 2)  # there was something to compare
    assert len(told["pool"]["selves"]) == 3

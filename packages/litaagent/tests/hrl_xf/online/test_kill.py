"""``lita train-online``, killed at random moments and resumed, ends with the weights of an uninterrupted run.

The command is the same for every method; ``tests/learners`` kills and resumes each of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

SUPERVISOR = Path(__file__).with_name("kill_supervisor.py")


def test_a_run_that_is_killed_at_random_moments_resumes_bit_by_bit(tmp_path):
    environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SUPERVISOR), str(tmp_path), "2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert result["different"] == []
    assert result["kills"] >= 2
    assert len(result["begun"]) == result["kills"] + 1
    assert result["begun"] == sorted(result["begun"])  # nothing that was saved is lost
    assert result["begun"][-1] > 0  # and something was
    assert (result["weights"], result["gates"]) == (6, 2)  # there was something to compare
    assert len(result["pool"]["selves"]) == 3

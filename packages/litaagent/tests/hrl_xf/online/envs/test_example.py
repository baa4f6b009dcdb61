import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[6] / "examples" / "train_league.py"
SMALL = ("--steps", "16", "--rollout", "8", "--envs", "2", "--days", "4", "--levels", "2")


@pytest.mark.parametrize("library", ["apexrl", "sb3"])
def test_any_library_that_speaks_gymnasium_trains_in_the_league(library, tmp_path):
    command = [sys.executable, str(EXAMPLE), "--library", library, *SMALL]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "the heuristic agent scores" in done.stdout
    assert "reached 16 steps" in done.stdout

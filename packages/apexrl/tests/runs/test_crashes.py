import json
import os
import subprocess
import sys
from pathlib import Path

SUPERVISOR = Path(__file__).with_name("crash_supervisor.py")


def run_supervisor(*arguments: str) -> dict[str, int]:
    result = subprocess.run(
        [sys.executable, str(SUPERVISOR), *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    counts: dict[str, int] = json.loads(result.stdout)
    return counts


def test_kills_at_random_moments_lose_no_finished_checkpoint(tmp_path):
    counts = run_supervisor("kill", str(tmp_path / "store"), "60", "1")

    assert counts["kills"] == 60
    # Without these the kills would have missed what they are meant to hit.
    assert counts["during_a_save"] >= 12
    assert counts["left_a_partial_file"] >= 4
    assert counts["saved"] >= 40  # 0, 1 or 2 awaited per kill, drawn from the seed


def test_death_before_any_line_of_a_save_leaves_the_old_or_the_new_checkpoint(tmp_path):
    counts = run_supervisor("lines", str(tmp_path))

    assert counts["lines"] >= 100
    assert counts["old"] > 0
    assert counts["new"] > 0
    assert counts["left_a_partial_file"] > 0

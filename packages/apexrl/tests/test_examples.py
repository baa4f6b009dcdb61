"""The example programs do what their first lines say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(name, *arguments, folder):
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_train_resumes_and_evaluate_reads_its_checkpoint(tmp_path):
    small = ("--env", "Acrobot-v1", "--envs", "2", "--folder", "run")
    first = run("train.py", *small, "--steps", "5120", folder=tmp_path)
    assert "reached 5120 steps, exactly as asked" in first
    again = run("train.py", *small, "--steps", "5632", folder=tmp_path)
    assert "resuming after iteration 10" in again
    assert "reached 5632 steps" in again
    checkpoint = "run/checkpoints/final_model.pt"
    played = run("evaluate.py", checkpoint, "--env", "Acrobot-v1", "--episodes", "4", "--envs", "2", folder=tmp_path)
    assert "eval/num_episodes    4.000" in played


def test_resume_shows_equal_fingerprints(tmp_path):
    at_once, in_parts = run("resume.py", folder=tmp_path).splitlines()
    assert at_once.split()[-1] == in_parts.split()[-1]

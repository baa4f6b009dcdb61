"""The example programs do what their first lines say."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def run(warm_python):
    """Runs an example in a folder and returns what it printed."""

    def run(name, *arguments, folder):
        done = warm_python.run("python", EXAMPLES / name, *arguments, folder=folder)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return run


def test_train_resumes_and_evaluate_reads_its_checkpoint(run, tmp_path):
    small = ("--env", "FrozenLake-v1", "--envs", "2", "--folder", "run")
    first = run("train.py", *small, "--steps", "5120", folder=tmp_path)
    assert "reached 5120 steps, exactly as asked" in first
    again = run("train.py", *small, "--steps", "5632", folder=tmp_path)
    assert "resuming after iteration 10" in again
    assert "reached 5632 steps" in again
    checkpoint = "run/checkpoints/final_model.pt"
    played = run("evaluate.py", checkpoint, "--env", "FrozenLake-v1", "--episodes", "4", "--envs", "2", folder=tmp_path)
    assert "eval/num_episodes    4.000" in played


def test_resume_shows_equal_fingerprints(run, tmp_path):
    at_once, in_parts = run("resume.py", folder=tmp_path).splitlines()
    assert at_once.split()[-1] == in_parts.split()[-1]

"""The README's program runs as it stands, and its names exist."""

import re
from pathlib import Path

import apexrl

README = Path(__file__).parents[1] / "README.md"


def test_the_program_runs(tmp_path, warm_python):
    (program,) = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(program.strip().splitlines()) <= 10
    done = warm_python.run("python", "-c", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "reached 20480 steps, exactly as asked" in done.stdout
    assert (tmp_path / "runs/cartpole/checkpoints/final_model.pt").is_file()


def test_classes_and_functions_that_it_names_are_public():
    table = README.read_text(encoding="utf-8").partition("## What it has")[2].partition("## What it guarantees")[0]
    names = [name for name in re.findall(r"`(\w+)`", table) if name[0].isupper() or name == "check_env"]
    assert len(names) > 8
    assert set(names) <= set(apexrl.__all__)

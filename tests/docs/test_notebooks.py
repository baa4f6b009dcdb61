"""The notebooks are what their scripts say, are valid, and their code runs."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples/notebooks").glob("*.py"))


def test_notebooks_are_made_from_their_scripts():
    done = subprocess.run([sys.executable, ROOT / "scripts/notebooks.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in SCRIPTS} == {path.stem for path in SCRIPTS[0].parent.glob("*.ipynb")}
    page = (ROOT / "docs/tutorials/notebooks.md").read_text(encoding="utf-8")
    assert [path.stem for path in SCRIPTS if path.stem not in page] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_its_code_runs(script, tmp_path, warm_python):
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(notebook)
    code = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    (tmp_path / "notebook.py").write_text(code)
    done = warm_python.run("python", "notebook.py", folder=tmp_path)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    assert done.stdout

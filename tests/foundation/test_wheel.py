"""The wheel builds, installs in a clean environment with its own requirements, and answers."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*words: str | Path, folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, ROOT, folder=target)
    (built,) = target.glob("litaagent-*.whl")
    return built


def test_wheel_holds_the_packages_and_their_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in ("apexrl", "hmasd", "litaagent_std"):
        assert {f"{package}/__init__.py", f"{package}/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs"))]


@pytest.mark.timeout(900)
def test_wheel_installs_in_a_clean_environment_and_answers(wheel: Path, tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(python, *install, "-c", ROOT / "constraints.txt", wheel, folder=tmp_path)
    assert "usage: lita" in run(python.parent / "lita", "--help", folder=tmp_path)
    where = run(python, "-c", "import litaagent_std; print(litaagent_std.__file__)", folder=tmp_path)
    assert where.startswith(str(tmp_path))
    assert '"litaagent"' in run(python.parent / "lita", "info", "--json", folder=tmp_path)

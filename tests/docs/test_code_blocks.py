"""Every Python and bash block of the documentation runs, in order, in one namespace per page."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.warm_python import WarmPython, environment

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").glob("**/*.md")])
PAGES = [
    page for page in PAGES if not re.search(r"\.(zh-CN|ja)\.", page.name)
]  # test_languages: their code is the same
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONTINUED = re.compile(r"\\\n\s*")
PROGRAM = re.compile(r"(lita|python) [^|&;<>$*~]*$")
"""A command that needs no shell."""


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def run(words: list[str], folder: Path) -> None:
    options = {"capture_output": True, "text": True, "check": False}
    check(subprocess.run(words, cwd=folder, env=environment(), timeout=600, **options))


def check_options(command: str, folder: Path) -> None:
    """Check that a script of the repository exists and that its help lists every option of the command."""
    script, *words = shlex.split(command)
    path = ROOT / script
    assert os.access(path, os.X_OK), f"{script} is not an executable of the repository"
    done = subprocess.run([path, "--help"], cwd=ROOT, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in done.stdout]
    assert not unknown, f"{script} --help does not know {unknown}"


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks_run(page: Path, tmp_path: Path, warm_python: WarmPython) -> None:
    script = tmp_path / "page.py"
    # Spawned workers import the script again, so the code needs the usual guard.
    body = "\n".join(blocks(page, "python"))
    indented = "".join(f"    {line}" if line.strip() else line for line in body.splitlines(keepends=True))
    script.write_text(f'if __name__ == "__main__":\n{indented}\n')
    check(warm_python.run("python", script, folder=tmp_path))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "bash")], ids=lambda p: str(p.relative_to(ROOT)))
def test_bash_blocks_run(page: Path, tmp_path: Path, warm_python: WarmPython) -> None:
    """Run commands in an empty folder; check the words of ``make`` and of scripts, which may run for hours."""
    for block in blocks(page, "bash"):
        for line in CONTINUED.sub("", block).splitlines():
            command = line.split("  #")[0].strip()
            if not command or command.startswith("#"):
                continue
            if command.startswith("make "):
                run(["make", "--dry-run", "-C", str(ROOT), *shlex.split(command)[1:]], tmp_path)
            elif command.startswith("./"):
                check_options(command, tmp_path)
            elif PROGRAM.match(command):
                check(warm_python.run(*shlex.split(command, comments=True), folder=tmp_path))
            else:
                run(["bash", "-euc", command], tmp_path)

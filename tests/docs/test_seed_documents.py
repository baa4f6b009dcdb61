"""Every row of the page that maps the five documents to this project is true."""

import functools
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/seed_documents.md"
ROW = re.compile(
    r"^\| (?P<term>.+?) \| (?P<here>.+?) \| (?P<check>import|parameter|option|file|text) \|$", re.MULTILINE
)
ROWS = [match.groupdict() for match in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
CODE = re.compile(r"`([^`]+)`")


def resolved(path):
    module, _, name = path.partition(":")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


@functools.cache
def help_of(command):
    words = command.split()
    if words[0] == "lita":
        words[0] = str(Path(sys.executable).parent / "lita")
    elif words[0].endswith(".py"):
        words.insert(0, sys.executable)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    options = {"capture_output": True, "text": True, "check": True, "cwd": ROOT, "env": environment}
    return subprocess.run([*words, "--help"], **options).stdout


def terms(text):
    return CODE.findall(text) or [text]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['term']} {row['here']}".replace("`", ""))
def test_the_row_is_true(row):
    here = CODE.findall(row["here"])
    match row["check"]:
        case "import":
            assert resolved(here[0]) is not None
        case "parameter":
            assert set(terms(row["term"])) <= set(inspect.signature(resolved(here[0])).parameters)
        case "option":
            option, command = (here[0], here[1]) if len(here) == 2 else (terms(row["term"])[0], here[0])
            assert re.search(rf"{re.escape(option)}\b", help_of(command))
        case "file":
            assert (ROOT / here[0]).exists()
        case "text":
            content = (ROOT / here[0]).read_text(encoding="utf-8")
            assert [term for term in terms(row["term"]) if term not in content] == []


def test_no_row_is_left_unchecked():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.startswith(("| in the document", "| check |", "| ---"))]
    legend = [line for line in rows if re.match(r"^\| (import|parameter|option|file|text) \| ", line)]
    assert len(ROWS) == len(rows) - len(heads) - len(legend) > 130


@pytest.mark.parametrize("number", range(5))
def test_every_document_has_its_table(number):
    assert f"## Document 00{number}:" in PAGE.read_text(encoding="utf-8")

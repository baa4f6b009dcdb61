import importlib
import sys
from pathlib import Path

import pytest

from apexrl.execution import make_executor


@pytest.fixture(scope="session")
def tasks():
    """The module of functions that workers run."""
    folder = str(Path(__file__).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("execution_tasks")


@pytest.fixture(scope="module")
def processes(tasks):
    with make_executor("processes", workers=2) as executor:
        yield executor


@pytest.fixture(scope="module")
def inline(tasks):
    with make_executor("inline") as executor:
        yield executor


@pytest.fixture(params=["inline", "processes"])
def executor(request):
    """Each engine that starts quickly."""
    return request.getfixturevalue(request.param)

import importlib.util
from pathlib import Path

import pytest

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"


@pytest.fixture(scope="session")
def docs_extension():
    """Return a function that imports an extension of the documentation by its name."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, EXTENSIONS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load

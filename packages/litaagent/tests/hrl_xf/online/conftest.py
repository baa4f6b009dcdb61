import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def patient_market():
    """The module of a market with a known optimum, importable by name as its agents need it."""
    name = "patient_market"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]

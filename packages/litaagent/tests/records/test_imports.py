"""Records and results can be read where neither scml nor torch is wanted."""

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    [
        "litaagent_std.records.reader",
        "litaagent_std.records.scml_form",
        "litaagent_std.tournament.standings",
        "litaagent_std.tournament.config",
    ],
)
def test_reading_needs_neither_scml_nor_torch(module):
    code = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert module in loaded
    assert not {"scml", "negmas", "scml_agents", "torch", "pandas"} & loaded

import json
import subprocess
import sys

import pytest


def loaded_by(statement: str) -> set[str]:
    program = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def test_apexrl_loads_neither_the_league_nor_torch():
    assert loaded_by("import apexrl").isdisjoint({"scml", "negmas", "torch", "numpy", "tensorboard", "rich"})


@pytest.mark.parametrize("module", ["atomic", "console", "digest", "errors", "jsonl", "metrics", "run_dir", "signals"])
def test_modules_that_need_no_torch_do_not_load_it(module):
    loaded = loaded_by(f"import apexrl.runs.{module}")

    assert loaded.isdisjoint({"scml", "negmas", "torch", "numpy", "tensorboard", "rich"})


def test_checkpoints_do_not_load_the_league_or_tensorboard():
    assert loaded_by("import apexrl.runs.checkpoints.checkpoint").isdisjoint({"scml", "negmas", "tensorboard", "rich"})

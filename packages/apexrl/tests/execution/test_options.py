"""Execution options: flags of a command, and the executor that they describe."""

import subprocess
import sys

import pytest

from apexrl.configuration import configuration, from_command_line, to_mapping
from apexrl.execution import EXECUTION_FIELDS, ExecutionOptions
from apexrl.execution.engines.inline import InlineExecutor


@configuration
class Command(ExecutionOptions):
    """Run something."""

    games: int = 3
    """How many."""


def test_a_command_has_the_options_as_its_own() -> None:
    config = from_command_line(Command, ["--executor", "inline", "--workers", "2", "--time-limit", "5"], "command")
    assert (config.executor, config.workers, config.address, config.time_limit) == ("inline", 2, None, 5.0)
    assert tuple(to_mapping(config)) == ("games", *EXECUTION_FIELDS)


def test_the_executor_is_the_one_asked_for() -> None:
    with ExecutionOptions(executor="inline").make_executor() as executor:
        assert isinstance(executor, InlineExecutor)
    with ExecutionOptions(workers=1).make_executor(tasks_per_worker=5) as executor:
        assert executor.workers == 1


def test_an_address_needs_ray() -> None:
    with pytest.raises(ValueError, match="ray executor only"):
        ExecutionOptions(address="auto").make_executor()


def test_workers_import_no_pydantic() -> None:
    code = "import sys, apexrl.execution; print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

"""The log file of a run."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from apexrl.runs.logs import log_to_file

Limit = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def shown() -> Iterator[list[str]]:
    """Return the messages that another handler of the root shows."""
    messages: list[str] = []

    class _Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    handler = _Shown(logging.WARNING)
    logging.getLogger().addHandler(handler)
    yield messages
    logging.getLogger().removeHandler(handler)


def test_a_log_file_that_cannot_be_written_ends_with_one_warning(
    tmp_path: Path, file_size_limit: Limit, shown: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    path, root = tmp_path / "train.log", logging.getLogger()
    level = root.level

    with file_size_limit(100), log_to_file(path):
        for index in range(20):
            logging.getLogger("job").info("line %d of a job that continues", index)

    assert len(shown) == 1
    assert f"cannot write the log file {str(path)!r}: File too large" in shown[0]
    assert root.level == level
    assert "Traceback" not in capfd.readouterr().err
    assert path.stat().st_size <= 100


def test_closing_a_log_file_on_a_full_disk_does_not_hide_the_error_of_the_job(
    tmp_path: Path, file_size_limit: Limit
) -> None:
    def job() -> None:
        with log_to_file(tmp_path / "train.log"):
            logging.getLogger("job").info("%s", "x" * 200)
            raise ValueError("of the job")

    level = logging.getLogger().level

    with file_size_limit(100), pytest.raises(ValueError, match="of the job"):
        job()

    assert logging.getLogger().level == level

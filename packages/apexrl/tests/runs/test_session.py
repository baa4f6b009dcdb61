import json
import os
import signal

import pytest

from apexrl.runs.errors import ConfigMismatchError, ConfigurationError, RunDirError, RunLockedError
from apexrl.runs.session import Files, Session


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def work(folder, steps, resumed_at=None, **options):
    with Session(folder, sinks=("jsonl",), show_progress=False, **options) as session:
        session.begin(steps, resumed_at)
        for step in range((resumed_at or 0) + 1, steps + 1):
            session.report(step, {"value": float(step)})
    return session


def test_a_job_has_a_record_a_log_and_metrics_that_resume(tmp_path):
    config = {"worlds": 3}
    assert not work(tmp_path, 3, config=config, seed=1).is_resumed
    assert {"run.json", "config.yaml", "run.log", "metrics.jsonl"} <= {path.name for path in tmp_path.iterdir()}
    resumed = work(tmp_path, 4, resumed_at=2, config=config, seed=1)
    assert resumed.is_resumed
    assert (resumed.path, resumed.config, resumed.record.seed, resumed.exit_code) == (tmp_path, config, 1, 0)
    assert [line["step"] for line in lines(tmp_path / "metrics.jsonl")] == [1, 2, 3, 4]


def test_other_settings_are_refused_resumed_or_archived_as_asked(tmp_path):
    first = work(tmp_path, 2, config={"size": 1}, seed=1)
    with pytest.raises(ConfigMismatchError, match="size: 1 -> 2"):
        work(tmp_path, 2, config={"size": 2}, seed=1)
    with pytest.raises(RunDirError, match="already holds a run"):
        work(tmp_path, 2, config={"size": 1}, seed=1, existing="refuse")
    adopted = work(tmp_path, 3, resumed_at=2, config={"size": 2}, seed=1, existing="adopt")
    assert adopted.run_id == first.run_id
    assert adopted.record.starts[-1]["changed"] == ["size: 1 -> 2"]
    other = work(tmp_path, 1, config={"size": 2}, seed=1, existing="archive")
    assert other.run_id != first.run_id
    assert [line["step"] for line in lines(tmp_path / "metrics.jsonl")] == [1]
    assert [line["step"] for line in lines(tmp_path / "earlier/1/metrics.jsonl")] == [1, 2, 3]
    again = work(tmp_path, 2, resumed_at=1, config={"size": 2}, seed=1, existing="archive", run_id=other.run_id)
    assert again.is_resumed  # its own run is not archived
    assert not (tmp_path / "earlier" / "2").exists()


def test_files_without_a_record_are_archived_or_adopted_and_foreign_ones_are_left(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text('{"step": 1, "value": 1.0}\n')
        (tmp_path / name / "notes.txt").write_text("mine")
        (tmp_path / name / "config.yaml").write_text("mine: too")
    files = Files(has_log=False)
    work(tmp_path / "one", 1, existing="archive", files=files)
    assert lines(tmp_path / "one/earlier/1/metrics.jsonl") == [{"step": 1, "value": 1.0}]
    work(tmp_path / "two", 2, resumed_at=1, existing="adopt", files=files)
    assert [line["step"] for line in lines(tmp_path / "two/metrics.jsonl")] == [1, 2]
    for name in ("one", "two"):
        assert (tmp_path / name / "notes.txt").read_text() == "mine"
        assert (tmp_path / name / "config.yaml").read_text() == "mine: too"


def test_a_folder_has_one_writer_and_other_folders_can_be_claimed(tmp_path):
    with Session(tmp_path / "a", show_progress=False) as session:
        session.claim(tmp_path / "b")
        for taken in ("a", "b"):
            with pytest.raises(RunLockedError), Session(tmp_path / taken):
                pass
    record = json.loads((tmp_path / "b" / "run.json").read_text())
    assert record["run_id"] == session.run_id
    with Session(tmp_path / "b", existing="adopt"):
        pass


def test_signals_and_the_clock_ask_to_stop_here_and_in_sessions_inside():
    with Session(show_progress=False) as outer, Session(parent=outer, show_progress=False) as inner:
        assert not inner.should_stop
        os.kill(os.getpid(), signal.SIGTERM)
        assert inner.should_stop
        assert outer.should_stop
    assert outer.exit_code == inner.exit_code == 143
    with (
        Session(max_seconds=0.0, show_progress=False) as outer,
        Session(parent=outer, max_seconds=99.0, show_progress=False) as inner,
    ):
        assert inner.should_stop
        assert inner.exit_code == 0


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Session(show_progress=False) as session:
        session.begin(2)
        session.report(1, {"value": 1.0})
        assert not session.is_resumed
        assert session.record is None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigurationError, match="no folder"):
        _ = session.path

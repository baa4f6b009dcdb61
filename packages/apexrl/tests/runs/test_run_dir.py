import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

import pytest
import yaml

from apexrl.runs.digest import digest_config
from apexrl.runs.errors import ConfigMismatchError, RunDirError, RunLockedError, UnwritableError
from apexrl.runs.run_dir import RunDir, RunRecord, archive_run


@dataclass(frozen=True)
class Config:
    lr: float = 0.1
    steps: int = 12
    note: str = "利塔"


def test_a_new_run_says_what_it_is_made_from(tmp_path):
    with RunDir.start(tmp_path / "run", config=Config(), seed=7) as run:
        assert not run.is_resumed
        logging.getLogger("somewhere").info("hello")

    record = RunRecord.read(tmp_path / "run")
    assert record.config == {"lr": 0.1, "steps": 12, "note": "利塔"}
    assert record.seed == 7
    assert record.config_digest == digest_config(Config())
    (start,) = record.starts
    assert start["versions"]["torch"] == metadata.version("torch")  # without the local part of torch.__version__
    assert start["commit"] is None or len(start["commit"]) >= 40
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text(encoding="utf-8")) == record.config
    assert "INFO somewhere: hello" in (tmp_path / "run/run.log").read_text(encoding="utf-8")
    assert sorted(os.listdir(tmp_path / "run")) == ["config.yaml", "run.json", "run.lock", "run.log"]


def test_the_same_settings_resume_and_others_are_refused_with_the_difference(tmp_path):
    RunDir.start(tmp_path, config=Config(), seed=7).close()
    before = (tmp_path / "run.json").read_bytes()

    with pytest.raises(ConfigMismatchError, match=r"lr: 0\.1 -> 0\.2; steps: 12 -> 5; seed of the run: 7 -> 8"):
        RunDir.start(tmp_path, config=Config(lr=0.2, steps=5), seed=8)
    assert (tmp_path / "run.json").read_bytes() == before

    with RunDir.start(tmp_path, config=Config(), seed=7) as run:
        assert run.is_resumed
    assert len(RunRecord.read(tmp_path).starts) == 2


def test_free_fields_may_change_and_the_change_is_recorded(tmp_path):
    RunDir.start(tmp_path, config=Config(), seed=7).close()

    with RunDir.start(tmp_path, config=Config(steps=50), seed=7, free=["steps"]) as run:
        assert run.record.config["steps"] == 50

    record = RunRecord.read(tmp_path)
    assert record.config["steps"] == 50
    assert [start["changed"] for start in record.starts] == [[], ["steps: 12 -> 50"]]
    assert yaml.safe_load((tmp_path / "config.yaml").read_text(encoding="utf-8"))["steps"] == 50
    with pytest.raises(ConfigMismatchError, match="lr"):
        RunDir.start(tmp_path, config=Config(lr=1.0, steps=50), seed=7, free=["steps"])


def test_a_run_can_be_refused_instead_of_resumed(tmp_path):
    RunDir.start(tmp_path, config={}, seed=0).close()

    with pytest.raises(RunDirError, match="already holds a run"):
        RunDir.start(tmp_path, config={}, seed=0, existing="refuse")


def test_a_folder_with_files_of_others_is_refused_and_untouched(tmp_path):
    (tmp_path / "config.yaml").write_text("mine: 1")

    with pytest.raises(RunDirError, match=r"config\.yaml but no run\.json"):
        RunDir.start(tmp_path, config={}, seed=0)

    assert (tmp_path / "config.yaml").read_text() == "mine: 1"


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(UnwritableError, match="file"):
        RunDir.start(tmp_path / "file" / "run", config={}, seed=0)


def _resealed(text, **changes):
    content = json.loads(text) | changes
    del content["sha256"]
    return json.dumps({**content, "sha256": digest_config(content)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], "run.json' cannot be used"),
        (lambda text: text.replace("0.1", "0.3"), "does not match its digest"),
        (lambda text: text.replace('"seed": 7', '"seed": 8'), "does not match its digest"),
        (lambda text: text.replace('"sha256"', '"sha257"'), "does not match its digest"),
        (lambda text: "[]", "holds a list"),
        (lambda text: "[" * 100_000, "RecursionError"),
        (lambda text: _resealed(text, format="other"), "not marked"),
        (lambda text: _resealed(text, format_version=9), "format is 9"),
        (lambda text: _resealed(text, starts=[1]), "no usable starts"),
        (lambda text: _resealed(text, seed="7"), "no usable seed"),
    ],
)
def test_a_damaged_record_is_named(tmp_path, change, message):
    RunDir.start(tmp_path, config=Config(), seed=7).close()
    path = tmp_path / "run.json"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")

    with pytest.raises(RunDirError, match=message):
        RunDir.start(tmp_path, config=Config(), seed=7)


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(RunDirError, match="is not a run"):
        RunRecord.read(tmp_path)


def test_one_process_at_a_time_writes_a_run(tmp_path):
    with RunDir.start(tmp_path, config={}, seed=0):
        with pytest.raises(RunLockedError, match=rf"process {os.getpid()} on"):
            RunDir.start(tmp_path, config={}, seed=0)
        assert RunRecord.read(tmp_path).seed == 0, "reading needs no lock"

    RunDir.start(tmp_path, config={}, seed=0).close()


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    program = (
        "import os, sys\n"
        "from apexrl.runs.run_dir import RunDir\n"
        "run = RunDir.start(sys.argv[1], config={}, seed=0)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(RunLockedError, match=f"process {holder.pid} on"):
            RunDir.start(tmp_path, config={}, seed=0)
        holder.kill()

    with RunDir.start(tmp_path, config={}, seed=0) as run:
        assert run.is_resumed


def test_a_kill_between_record_and_copy_is_repaired(tmp_path):
    RunDir.start(tmp_path, config=Config(), seed=7).close()
    (tmp_path / "config.yaml").unlink()
    (tmp_path / f".run.json.{'0' * 16}.partial").write_text("{")

    RunDir.start(tmp_path, config=Config(), seed=7).close()

    assert (tmp_path / "config.yaml").exists()
    assert not list(tmp_path.glob(".*.partial"))


def test_logging_is_left_as_it_was_and_warnings_still_reach_the_terminal(tmp_path, capfd):
    program = (
        "import logging, sys\n"
        "from apexrl.runs.run_dir import RunDir\n"
        "with RunDir.start(sys.argv[1], config={}, seed=0):\n"
        "    logging.getLogger('x').warning('careful'); logging.getLogger('x').info('quiet')\n"
        "root = logging.getLogger()\n"
        "assert (root.handlers, root.level) == ([], logging.WARNING)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)

    assert capfd.readouterr().err.splitlines() == ["careful"]
    log = (tmp_path / "run.log").read_text()
    assert "WARNING x: careful" in log
    assert "INFO x: quiet" in log


def test_an_error_ends_in_the_log(tmp_path):
    with pytest.raises(ZeroDivisionError), RunDir.start(tmp_path, config={}, seed=0):
        _ = 1 / 0

    assert "ERROR" in (tmp_path / "run.log").read_text()
    RunDir.start(tmp_path, config={}, seed=0).close()


@pytest.mark.parametrize(
    ("error", "level", "message"),
    [
        (RunDirError("the disk is full"), "INFO", "the run ends: the disk is full."),
        (KeyboardInterrupt(), "INFO", "the run ends: interrupted"),
        (ZeroDivisionError("by zero"), "ERROR", "the run ends with ZeroDivisionError: by zero"),
    ],
)
def test_an_error_that_leaves_two_folders_is_logged_once(tmp_path, caplog, error, level, message):
    caplog.set_level(logging.INFO)
    starts = (RunDir.start(tmp_path / name, config={}, seed=0) for name in ("logs", "models"))
    with pytest.raises(type(error)), next(starts), next(starts):
        raise error
    ends = [(record.levelname, record.getMessage()) for record in caplog.records if "ends" in record.getMessage()]
    assert ends == [(level, message)]
    assert message in (tmp_path / "logs/run.log").read_text(encoding="utf-8")


def test_what_makes_room_is_said_to_have_a_checkpoint_only_if_it_has_one(tmp_path, caplog, sealed_bytes):
    (tmp_path / "metrics.jsonl").write_text("{}")
    archive_run(tmp_path)
    assert "held files of an earlier run and no checkpoint to resume from: they are now in" in caplog.text
    assert (tmp_path / "earlier/1/metrics.jsonl").exists()
    caplog.clear()
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/checkpoint_3.pt").write_bytes(sealed_bytes)
    archive_run(tmp_path)
    assert "held an earlier run, which is not resumed: it is now in" in caplog.text
    assert (tmp_path / "earlier/2/checkpoints").exists()


def test_a_first_start_that_fails_before_it_wrote_anything_leaves_the_folder_free(tmp_path, capsys):
    with pytest.raises(RunDirError), RunDir.start(tmp_path / "run", config=Config(), seed=7):
        raise RunDirError("there is no input")
    assert capsys.readouterr().err == ""  # whoever called shows it, once
    assert "the run ends: there is no input" in (tmp_path / "run/run.log").read_text(encoding="utf-8")
    with RunDir.start(tmp_path / "run", config=Config(lr=0.2), seed=8) as run:
        assert not run.is_resumed


def test_a_start_that_wrote_something_keeps_the_folder(tmp_path):
    def fails(run):
        (run.path / "metrics.jsonl").write_text("")
        raise RunDirError("the disk is full")

    with pytest.raises(RunDirError), RunDir.start(tmp_path / "run", config=Config(), seed=7) as run:
        fails(run)
    with pytest.raises(ConfigMismatchError):
        RunDir.start(tmp_path / "run", config=Config(lr=0.2), seed=7)
    with RunDir.start(tmp_path / "run", config=Config(), seed=7) as run:
        assert run.is_resumed
    with pytest.raises(RunDirError), RunDir.start(tmp_path / "run", config=Config(), seed=7):
        raise RunDirError("a later start")
    assert (tmp_path / "run/run.json").exists()

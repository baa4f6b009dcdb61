import json
import os
import signal
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apexrl.runs.checkpoints.checkpoint import CheckpointStore, Retention, Schema
from apexrl.runs.errors import ConfigMismatchError, ConfigurationError, RunDirError, RunLockedError, UnwritableError
from apexrl.runs.metrics.jsonl import read_jsonl
from apexrl.runs.session import Files, Session


@dataclass(frozen=True)
class Config:
    lr: float = 0.1
    steps: int = 12


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


# -- jobs of your own that resume exactly


class Killed(BaseException):
    """Stands for the end of a process, at any moment."""


def train(folder, config: Config, die_at: tuple[int, str] | None = None) -> torch.Tensor:
    """A small run with every kind of state: weights, Adam's moments, global and own random streams."""
    options = {"config": config, "seed": 3, "free": ["steps"], "sinks": ("jsonl",), "show_progress": False}
    with Session(folder, **options) as session:
        torch.manual_seed(session.record.seed)
        noise = np.random.default_rng(session.record.seed)
        network = torch.nn.Linear(2, 1)
        optimiser = torch.optim.Adam(network.parameters(), lr=config.lr)
        schema, retention = Schema(name="tests.train", version=1), Retention(keep_last=2)
        store = CheckpointStore(folder / "checkpoints", schema, retention=retention, before_save=session.flush)
        checkpoint = store.resume()
        first = 1
        if checkpoint is not None:
            network.load_state_dict(checkpoint.state["network"])
            optimiser.load_state_dict(checkpoint.state["optimiser"])
            checkpoint.restore_rng({"noise": noise})
            first = checkpoint.step + 1
        session.begin(config.steps, checkpoint.step if checkpoint else None)
        for step in range(first, config.steps + 1):
            loss = (network(torch.randn(4, 2)) - float(noise.normal())).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            session.log(step, {"loss": loss.item(), "time/now": float(os.getpid())})
            if die_at == (step, "before saving"):
                raise Killed
            if die_at == (step, "politely"):
                os.kill(os.getpid(), signal.SIGTERM)
            if step % 3 == 0 or session.stop.requested:
                state = {"network": network.state_dict(), "optimiser": optimiser.state_dict()}
                store.save(step, state, generators={"noise": noise})
            if die_at == (step, "after saving"):
                raise Killed
            if session.stop.requested:
                break
        return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


@pytest.mark.usefixtures("global_rng")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deaths=st.lists(st.tuples(st.integers(1, 12), st.sampled_from(["before saving", "after saving"])), max_size=3))
def test_a_resumed_run_equals_an_uninterrupted_one_bit_by_bit(tmp_path_factory, deaths):
    folder = tmp_path_factory.mktemp("resume")
    expected = train(folder / "whole", Config())

    result = None
    for die_at in [*deaths, None]:
        try:
            result = train(folder / "killed", Config(), die_at)
        except Killed:
            continue

    assert result is not None
    assert torch.equal(result, expected)
    assert (folder / "killed/metrics.jsonl").read_bytes() == (folder / "whole/metrics.jsonl").read_bytes()
    assert os.listdir(folder / "killed/checkpoints") == os.listdir(folder / "whole/checkpoints")


@pytest.mark.usefixtures("global_rng")
def test_a_run_that_was_asked_to_stop_has_saved_and_goes_on_exactly(tmp_path):
    expected = train(tmp_path / "whole", Config())
    train(tmp_path / "stopped", Config(), die_at=(7, "politely"))

    assert (tmp_path / "stopped/checkpoints/checkpoint_7.pt").exists()
    assert len(read_jsonl(tmp_path / "stopped/metrics.jsonl")) == 7
    assert torch.equal(train(tmp_path / "stopped", Config()), expected)
    assert (tmp_path / "stopped/metrics.jsonl").read_bytes() == (tmp_path / "whole/metrics.jsonl").read_bytes()


@pytest.mark.usefixtures("global_rng")
def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path):
    expected = train(tmp_path / "whole", Config(steps=12))
    train(tmp_path / "parts", Config(steps=6))

    assert torch.equal(train(tmp_path / "parts", replace(Config(), steps=12)), expected)


@pytest.mark.usefixtures("global_rng")
def test_a_run_with_a_damaged_newest_checkpoint_goes_on_from_the_one_before(tmp_path, caplog):
    expected = train(tmp_path / "whole", Config())
    train(tmp_path / "damaged", Config(steps=11))
    newest = tmp_path / "damaged/checkpoints/checkpoint_9.pt"
    newest.write_bytes(newest.read_bytes()[:-30])

    result = train(tmp_path / "damaged", Config())

    assert torch.equal(result, expected)
    assert "checkpoint_9.pt" in caplog.text
    whole, damaged = (read_jsonl(tmp_path / name / "metrics.jsonl") for name in ("whole", "damaged"))
    assert json.dumps(whole) == json.dumps(damaged)


def test_metrics_are_flushed_before_each_checkpoint(tmp_path):
    class Sink:
        def __init__(self) -> None:
            self.events: list[str] = []

        def write(self, step, metrics) -> None:
            self.events.append(f"write {step}")

        def flush(self) -> None:
            self.events.append(f"flush, {len(list(tmp_path.glob('checkpoints/*.pt')))} checkpoints on disk")

        def close(self) -> None:
            self.events.append("close")

    sink = Sink()
    with Session(tmp_path, sinks=(sink,), show_progress=False) as session:
        session.begin()
        session.log(1, {"a": 1})
        folder, schema = tmp_path / "checkpoints", Schema(name="x", version=1)
        CheckpointStore(folder, schema, before_save=session.flush).save(1, {})

    # A sink of the caller's is flushed at the end, and stays open.
    assert sink.events == ["write 1", "flush, 0 checkpoints on disk", "flush, 1 checkpoints on disk"]


def test_a_folder_of_events_beside_the_runs_is_named_without_detours(tmp_path):
    (tmp_path / "tf-logs").write_text("a file in the way")
    files = Files(events="../tf-logs")

    with (
        Session(tmp_path / "logs", sinks=("tensorboard",), files=files) as session,
        pytest.raises(UnwritableError, match=f"'{tmp_path}/tf-logs'"),
    ):
        session.begin()

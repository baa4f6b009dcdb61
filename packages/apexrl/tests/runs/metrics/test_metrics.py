import io
import json
import math
import os
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from apexrl.runs.errors import DiskFullError, MetricError, UnwritableError
from apexrl.runs.metrics.jsonl import JsonlSink, read_jsonl
from apexrl.runs.metrics.logger import ConsoleSink, MetricLogger, WandbSink


class ListSink:
    def __init__(self) -> None:
        self.records: list[tuple[int, dict[str, float]]] = []
        self.closed = 0

    def write(self, step, metrics) -> None:
        self.records.append((step, dict(metrics)))

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed += 1


def test_the_logger_feeds_every_sink_with_floats_and_closes_them():
    sinks = [ListSink(), ListSink()]
    with MetricLogger(sinks) as metrics:
        metrics.log(1, {"a": 1, "b": torch.tensor(2.5), "c": np.float32(0.5), "d": True})
        metrics.log(1, {"e": float("-inf")})

    for sink in sinks:
        assert sink.records == [(1, {"a": 1.0, "b": 2.5, "c": 0.5, "d": 1.0}), (1, {"e": -math.inf})]
        assert sink.closed == 1
    metrics.close()
    metrics.flush()
    assert sinks[0].closed == 1
    with pytest.raises(ValueError, match="closed"):
        metrics.log(2, {"a": 1})


def test_a_sink_that_cannot_be_closed_does_not_keep_the_others_open():
    class Failing(ListSink):
        def close(self) -> None:
            raise RuntimeError("cannot")

    sinks = [ListSink(), Failing(), ListSink()]
    metrics = MetricLogger(sinks)
    with pytest.raises(RuntimeError, match="cannot"):
        metrics.close()

    assert (sinks[0].closed, sinks[2].closed) == (1, 1)


@pytest.mark.parametrize("name", ["", "step", "time", "two\nlines"])
def test_impossible_names_are_refused(name):
    with pytest.raises(MetricError, match="is named"):
        MetricLogger([]).log(0, {name: 1.0})


@pytest.mark.parametrize("value", [torch.zeros(2), "high", None, np.zeros(3)])
def test_values_that_are_not_one_number_are_refused(value):
    with pytest.raises(MetricError, match="metric 'a'"):
        MetricLogger([]).log(0, {"a": value})


def test_steps_never_go_back():
    metrics = MetricLogger([], after_step=5)
    with pytest.raises(MetricError, match="step 4 after step 5"):
        metrics.log(4, {"a": 1})


def test_lines_are_strict_json_and_come_back_with_their_values(tmp_path):
    sink = JsonlSink(tmp_path / "metrics.jsonl")
    sink.write(1, {"loss": 0.1, "time/fps": 100.0})
    sink.write(2, {"nan": math.nan, "up": math.inf, "down": -math.inf})
    sink.write(3, {"time/fps": 50.0})
    sink.close()

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not strict JSON")

    for line in (tmp_path / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    first, second = read_jsonl(tmp_path / "metrics.jsonl")
    assert first == {"step": 1, "loss": 0.1}
    assert math.isnan(second["nan"])
    assert (second["up"], second["down"]) == (math.inf, -math.inf)
    timings = read_jsonl(tmp_path / "timings.jsonl")
    assert [record["step"] for record in timings] == [1, 2, 3]
    assert timings[0]["time/fps"] == 100.0
    assert timings[0]["time"] > 1e9


def log_steps(path, steps, after_step) -> None:
    sink = JsonlSink(path, after_step)
    for step in steps:
        sink.write(step, {"loss": 1 / (step + 1)})
        if step % 2:
            sink.write(step, {"eval/return": step * 0.1, "time/eval": 1.0})
    sink.close()


@given(checkpoint=st.integers(0, 9), more=st.integers(0, 5), torn=st.integers(0, 60))
def test_a_resumed_file_equals_an_uninterrupted_one(tmp_path_factory, checkpoint, more, torn):
    folder = tmp_path_factory.mktemp("jsonl")
    log_steps(folder / "whole" / "metrics.jsonl", range(10), None)
    whole = (folder / "whole" / "metrics.jsonl").read_bytes()

    path = folder / "killed" / "metrics.jsonl"
    log_steps(path, range(min(10, checkpoint + 1 + more)), None)
    for name in ("metrics.jsonl", "timings.jsonl"):
        with open(path.with_name(name), "ab") as file:
            file.write(b'{"step": 99, "loss": 0.123456789, "a longer name": 1.0}'[:torn])
    log_steps(path, range(checkpoint + 1, 10), checkpoint)

    assert path.read_bytes() == whole
    expected = [record["step"] for record in read_jsonl(folder / "whole" / "timings.jsonl")]
    assert [record["step"] for record in read_jsonl(path.with_name("timings.jsonl"))] == expected


def test_a_torn_last_line_is_ignored_when_reading(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1, "a": 2.0}\n{"step": 2, "a": 3.0}')  # whole by chance, but not finished

    assert read_jsonl(path) == [{"step": 1, "a": 2.0}]


@pytest.mark.parametrize("line", [b"{oops\n", b"[1]\n", b'{"a": 1}\n', b'{"step": 1.5}\n', b"\n", b"\xff\n"])
def test_a_damaged_line_in_the_middle_is_named(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line + b'{"step": 3}\n')

    with pytest.raises(MetricError, match=r"line 2 of .*metrics\.jsonl"):
        read_jsonl(path)
    with pytest.raises(MetricError, match="line 2"):
        JsonlSink(path, after_step=9)


def test_a_full_disk_leaves_whole_lines_only_and_logging_can_go_on(tmp_path, file_size_limit):
    path = tmp_path / "metrics.jsonl"
    sink = JsonlSink(path)
    sink.write(1, {"a": 1.0})
    before = path.read_bytes()

    with file_size_limit(len(before) + 10), pytest.raises(DiskFullError, match=r"metrics\.jsonl"):
        sink.write(2, {"a": 2.0})
    assert path.read_bytes() == before

    sink.write(3, {"a": 3.0})
    sink.close()
    assert [record["step"] for record in read_jsonl(path)] == [1, 3]


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableError, match="file"):
        JsonlSink(tmp_path / "file" / "metrics.jsonl")
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(UnwritableError, match=r"metrics\.jsonl"):
        JsonlSink(tmp_path / "metrics.jsonl")


def test_plain_lines_when_not_a_terminal():
    output, now = io.StringIO(), [0.0]
    console = Console(file=output, force_terminal=False, width=20)
    sink = ConsoleSink(100, title="iteration", seconds=5.0, console=console, clock=lambda: now[0])
    for step in range(1, 13):
        now[0] = float(step)
        sink.write(step, {"loss": 1 / step, "[red]name[/red] that is long": 3.0})
    sink.close()

    lines = output.getvalue().splitlines()
    assert lines == [
        "iteration 1/100  loss 1  [red]name[/red] that is long 3",
        "iteration 6/100  loss 0.1667  [red]name[/red] that is long 3",
        "iteration 11/100  loss 0.09091  [red]name[/red] that is long 3",
        "iteration 12/100  loss 0.08333  [red]name[/red] that is long 3",
    ]


def test_chosen_metrics_only_and_no_total():
    output = io.StringIO()
    console = Console(file=output, force_terminal=False)
    sink = ConsoleSink(shown=["b", "a"], seconds=0, console=console)
    sink.write(1, {"a": 1.0, "hidden": 2.0})
    sink.write(2, {"b": 3.0})
    sink.close()

    assert output.getvalue().splitlines() == ["step 1  a 1", "step 2  a 1  b 3"]


def test_a_progress_bar_on_a_terminal():
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=120)
    sink = ConsoleSink(10, console=console)
    sink.write(4, {"loss": 0.25})
    sink.close()

    shown = output.getvalue()
    assert "4/10" in shown
    assert "loss 0.25" in shown
    assert "\x1b[" in shown


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")  # it would print a traceback
def test_tensorboard_on_a_full_disk_is_one_clear_error(tmp_path, file_size_limit):
    from apexrl.runs.metrics.logger import TensorBoardSink

    sink = TensorBoardSink(tmp_path / "events")

    with file_size_limit(500):
        with pytest.raises(DiskFullError, match="events"):
            sink.write(1, {f"metric_{index}": 1.0 for index in range(100)})
        with pytest.raises(DiskFullError, match="events"):
            sink.close()


def test_tensorboard_sees_what_is_logged_at_once_and_as_it_was_logged(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from apexrl.runs.metrics.logger import TensorBoardSink

    sink = TensorBoardSink(tmp_path)
    metrics = {"loss/value": 0.25, "eval/mean_reward": math.nan, "lr": math.inf, "命中率 %": -3.0}
    sink.write(7, metrics)

    accumulator = EventAccumulator(os.fspath(tmp_path))
    accumulator.Reload()
    shown = {name: [(event.step, repr(event.value)) for event in accumulator.Scalars(name)] for name in metrics}
    sink.close()

    assert accumulator.Tags()["scalars"] == list(metrics)
    assert shown == {name: [(7, repr(value))] for name, value in metrics.items()}


def test_tensorboard_shows_a_resumed_run_like_an_uninterrupted_one(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from apexrl.runs.metrics.logger import TensorBoardSink

    def log(folder, steps, after_step, offset=0.0) -> None:
        sink = TensorBoardSink(folder, after_step)
        for step in steps:
            sink.write(step, {"loss": step * 2.0 + offset})
        sink.flush()
        sink.close()

    def shown(folder) -> list[tuple[int, float]]:
        accumulator = EventAccumulator(os.fspath(folder))
        accumulator.Reload()
        return [(event.step, event.value) for event in accumulator.Scalars("loss")]

    log(tmp_path / "whole", range(10), None)
    log(tmp_path / "killed", range(8), None, offset=0.0)
    log(tmp_path / "killed", range(6, 10), 5)
    log(tmp_path / "afresh", range(8), None, offset=100.0)
    log(tmp_path / "afresh", range(10), None)

    assert shown(tmp_path / "whole") == [(step, step * 2.0) for step in range(10)]
    assert shown(tmp_path / "killed") == shown(tmp_path / "whole")
    assert shown(tmp_path / "afresh") == shown(tmp_path / "whole")


def test_weights_and_biases_offline(tmp_path, monkeypatch):
    for name, value in {"MODE": "offline", "SILENT": "true", "CONSOLE": "off"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    sink = WandbSink(tmp_path, project="test", settings={"x_disable_stats": True})
    sink.write(1, {"loss": 0.5})
    sink.write(2, {"loss": 0.25})
    sink.flush()
    sink.close()
    [file] = tmp_path.glob("wandb/offline-run-*/*.wandb")
    deadline = time.monotonic() + 60.0  # another process of the library writes it
    while b"loss" not in file.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert b"loss" in file.read_bytes()


def test_weights_and_biases_missing_is_said_with_the_way_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MetricError, match=r"ip install 'apexrl\[wandb\]'"):
        WandbSink(tmp_path)

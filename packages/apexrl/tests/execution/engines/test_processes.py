"""Worker processes: crashes, hangs, their environment, and that none of them outlives its parent."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from apexrl.execution import FailureKind, RunOptions, Task, make_executor
from apexrl.execution.pool import WorkerStartError


def test_a_hundred_tasks_survive_kills_and_hangs_with_the_same_bytes(inline, processes, tasks, tmp_path):
    accidents = {20: "kill", 41: "hang", 42: "exit", 60: "crash", 80: "hang with the interpreter lock"}
    reference = inline.map(tasks.simulate, range(100), RunOptions(seed=3))

    run = processes.run(
        (Task(tasks.simulate_with_accidents, (i, accidents, str(tmp_path))) for i in range(100)),
        RunOptions(seed=3, time_limit=8.0),
    )
    values = [result.unwrap() for result in run]

    assert pickle.dumps(values) == pickle.dumps(reference)
    report = run.report
    assert (report.succeeded, report.failed, report.retried) == (100, 0, 5)
    reasons = {task.index: [str(attempt.failure) for attempt in task.attempts] for task in report.troubled}
    assert reasons == {
        20: ["worker died: killed by SIGKILL", "None"],
        41: ["timed out: longer than the limit of 8 s", "None"],
        42: ["worker died: exited with code 3", "None"],
        60: ["worker died: killed by SIGSEGV", "None"],
        80: ["timed out: longer than the limit of 8 s", "None"],
    }
    assert "task 41: timed out: longer than the limit of 8 s after 8." in report.summary()


def test_a_task_that_always_kills_its_worker_fails_alone(processes, tasks):
    run = processes.run((Task(tasks.end_badly, (how,)) for how in ("a", "kill", "b")), RunOptions(retries=1))
    first, second, third = run
    assert (first.value, third.value) == ("a", "b")
    assert second.failure.kind is FailureKind.WORKER_DIED
    assert second.failure.message == "killed by SIGKILL"
    assert [len(task.attempts) for task in run.report.troubled] == [2]


def test_a_worker_that_dies_beside_a_child_holding_its_channel_is_noticed(processes, tasks):
    begun = time.monotonic()
    (result,) = processes.run([Task(tasks.end_badly, ("fork and die",))], RunOptions(retries=0))
    assert result.failure.message == "killed by SIGKILL"
    assert time.monotonic() - begun < 60


def test_results_stream_as_they_finish_when_order_is_not_asked_for(processes, tasks, tmp_path):
    processes.map(tasks.meet, [str(tmp_path)] * 2)  # both workers are up
    run = processes.run(
        (Task(tasks.sleep_then_return, (item,)) for item in [(2.0, "slow"), (0.0, "quick"), (0.0, "quick too")]),
        RunOptions(ordered=False),
    )
    assert [result.value for result in run] == ["quick", "quick too", "slow"]


def test_asked_to_raise_a_failure_stops_the_others(processes, tasks):
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match="asked to raise"):
        list(
            processes.run(
                [Task(tasks.end_badly, ("raise",)), Task(tasks.end_badly, ("hang",))], RunOptions(on_failure="raise")
            )
        )
    assert processes.map(tasks.square, [5]) == [25]
    assert time.monotonic() - begun < 60


def test_messages_larger_than_any_buffer_pass_both_ways(processes, tasks):
    size = 20_000_000
    assert [len(data) for data in processes.map(tasks.blob, [size] * 4, RunOptions(time_limit=30))] == [size] * 4
    assert processes.map(tasks.length, [bytes(size)] * 4) == [size] * 4


def test_workers_are_replaced_after_so_many_tasks(tasks):
    with make_executor("processes", workers=1, tasks_per_worker=3) as executor:
        ids = executor.map(tasks.process_id, range(8))
    assert [ids.count(worker) for worker in dict.fromkeys(ids)] == [3, 3, 2]


def test_workers_have_one_thread_a_fixed_hash_seed_and_light_imports(tasks, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with make_executor("processes", workers=1) as executor:
        (variables,) = executor.map(tasks.environment, [["OMP_NUM_THREADS", "PYTHONHASHSEED"]])
        (heavy,) = executor.map(tasks.imported_modules, [["numpy", "torch", "ray", "pydantic", "pytest"]])
    assert variables == {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    assert heavy == []
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_closing_ends_the_workers_and_their_children(tasks, tmp_path):
    up, ids = tmp_path / "up", tmp_path / "ids"
    up.mkdir()
    ids.mkdir()
    executor = make_executor("processes", workers=2)
    executor.map(tasks.meet, [str(up)] * 2)  # both workers are up: what follows is sent to them at once
    run = executor.run([Task(tasks.square, (1,)), Task(tasks.announce_then_sleep, (str(ids),))])
    next(run)
    wait_until(lambda: len(list(ids.iterdir())) == 2)
    processes = [int(path.name) for path in ids.iterdir()]
    assert all(is_running(process) for process in processes)
    executor.close()
    wait_until(lambda: not any(is_running(process) for process in processes))
    with pytest.raises(RuntimeError, match="closed"):
        next(run)


def test_workers_that_cannot_start_are_reported(tasks, monkeypatch):
    monkeypatch.setattr("apexrl.execution.engines.processes._BOOT", "raise SystemExit(7)")
    with (
        make_executor("processes", workers=2) as executor,
        pytest.raises(WorkerStartError, match=r"3 workers in a row could not be started .*exited with code 7"),
    ):
        executor.map(tasks.square, [1])


PARENT = """
    import sys
    import signal
    sys.path.append({folder!r})
    import execution_tasks
    from apexrl.execution import Task, make_executor

    if __name__ == "__main__":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with it ignored
        with make_executor("processes", workers=2) as executor:
            for result in executor.run(Task(execution_tasks.announce_then_sleep, ({ids!r},)) for _ in range(2)):
                pass
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_the_parent(tasks, tmp_path, how):
    ids = tmp_path / "ids"
    ids.mkdir()
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT).format(folder=os.path.dirname(tasks.__file__), ids=str(ids)))
    parent = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(list(ids.iterdir())) == 4)
    processes = [int(path.name) for path in ids.iterdir()]
    assert all(is_running(process) for process in processes)

    parent.send_signal(how)
    _, errors = parent.communicate(timeout=60)

    assert parent.returncode == -how
    wait_until(lambda: not any(is_running(process) for process in processes))
    assert errors.count("Traceback") == (1 if how == signal.SIGINT else 0)


SCRIPT = """
    import multiprocessing
    from dataclasses import dataclass
    from apexrl.execution import make_executor

    @dataclass
    class Point:
        x: int

    def shift(point):
        return Point(point.x + 1)

    if __name__ == "__main__":
        with make_executor("processes", workers=2) as executor:
            executor.map(callable, [multiprocessing.TimeoutError] * 4)  # it has a __mp_main__ of its own
            print(executor.map(shift, [Point(1), Point(2)]) == [Point(2), Point(3)])
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_a_scripts_own_functions_and_classes_work(tmp_path, as_module):
    (tmp_path / "a_script.py").write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, *(["-m", "a_script"] if as_module else ["a_script.py"])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_functions_typed_into_a_session_are_refused(tmp_path):
    code = textwrap.dedent("""
        from apexrl.execution import make_executor
        def typed(value): return value
        with make_executor("processes", workers=1) as executor:
            executor.map(typed, [1])
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "TypeError: __main__.typed can't be sent to a worker because it was defined in an interactive" in done.stderr


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def is_running(process):
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

"""The ray engine. Ray takes many seconds to start, so one executor serves all tests that need it."""

import builtins
import pickle

import pytest

from apexrl.execution import FailureKind, RunOptions, Task, make_executor
from apexrl.execution.actors import ActorLostError, ActorOptions

pytestmark = pytest.mark.xdist_group("ray")  # in one process of a parallel test run


@pytest.fixture(scope="module")
def ray_executor(tasks):
    pytest.importorskip("ray")
    with make_executor("ray", workers=2) as executor:
        yield executor


def test_a_hundred_tasks_survive_kills_and_hangs_with_the_same_bytes(inline, ray_executor, tasks, tmp_path):
    accidents = {20: "kill", 41: "hang", 60: "exit"}
    reference = inline.map(tasks.simulate, range(100), RunOptions(seed=3))

    healthy = ray_executor.map(tasks.simulate, range(100), RunOptions(seed=3))
    run = ray_executor.run(
        (Task(tasks.simulate_with_accidents, (i, accidents, str(tmp_path))) for i in range(100)),
        RunOptions(seed=3, time_limit=5.0),
    )
    values = [result.unwrap() for result in run]

    assert pickle.dumps(healthy) == pickle.dumps(reference)
    assert pickle.dumps(values) == pickle.dumps(reference)
    assert (run.report.succeeded, run.report.failed, run.report.retried) == (100, 0, 3)
    reasons = {
        task.index: [attempt.failure and attempt.failure.kind for attempt in task.attempts]
        for task in run.report.troubled
    }
    assert reasons == {
        20: [FailureKind.WORKER_DIED, None],
        41: [FailureKind.TIMED_OUT, None],
        60: [FailureKind.WORKER_DIED, None],
    }


def test_failures_and_environment_are_those_of_the_other_engines(inline, ray_executor, tasks):
    hows = ["raise", "sys.exit", "unpicklable", "bad to unpickle", "fine"]
    outcomes = [list(engine.run(Task(tasks.end_badly, (how,)) for how in hows)) for engine in (inline, ray_executor)]
    assert outcomes[0] == outcomes[1]
    (found,) = ray_executor.map(tasks.environment, [["OMP_NUM_THREADS", "PYTHONHASHSEED"]])
    assert found["OMP_NUM_THREADS"] == "1"
    assert found["PYTHONHASHSEED"] is not None


def test_actors_are_those_of_the_other_engines_and_can_be_rebuilt(inline, ray_executor, tasks):
    values = []
    for engine in (inline, ray_executor):
        with engine.actors(tasks.Counter, [0, 1, 2], ActorOptions(seed=5)) as group:
            values.append([group.call("add", 1), group.map("add", {2: (5,)})])
            if engine is ray_executor:
                with pytest.raises(ActorLostError, match=r"\[1\] are lost"):
                    group.call("die_if", 1)
                assert group.rebuild() == [1]
                assert [total for _, total, _ in group.call("add", 0)] == [1, 0, 6]
    assert pickle.dumps(values[0]) == pickle.dumps(values[1])


def test_without_ray_the_message_says_what_to_install(monkeypatch):
    original = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "ray":
            raise ModuleNotFoundError("No module named 'ray'", name="ray")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ModuleNotFoundError, match=r"pip install litaagent\[ray\]"):
        make_executor("ray", workers=1)

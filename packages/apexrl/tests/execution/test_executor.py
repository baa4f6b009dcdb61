"""What holds on every engine; ray, which starts slowly, is in test_ray.py."""

import functools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrl.execution import ENGINES, FailureKind, RunOptions, Task, TaskFailedError, make_executor, task_seed


def test_values_come_in_the_order_of_the_items(executor, tasks):
    items = [(0.2, 0), (0.0, 1), (0.05, 2), (0.0, 3)]
    assert executor.map(tasks.sleep_then_return, items) == [0, 1, 2, 3]


def test_results_hold_index_label_and_value(executor, tasks):
    run = executor.run(Task(tasks.square, (i,), label=f"square of {i}") for i in range(3))
    assert [(result.index, result.label, result.unwrap()) for result in run] == [
        (0, "square of 0", 0),
        (1, "square of 1", 1),
        (2, "square of 2", 4),
    ]


def test_a_hundred_seeded_tasks_are_the_same_bytes_on_inline_and_processes(inline, processes, tasks):
    options = RunOptions(seed=7)
    one = inline.map(tasks.simulate, range(100), options)
    other = processes.map(tasks.simulate, range(100), options)
    assert pickle.dumps(one) == pickle.dumps(other)
    assert len({entry["score"] for entry in one}) == 100


def test_a_seed_depends_on_the_index_and_not_on_the_number_of_workers(tasks):
    with make_executor("processes", workers=1) as alone, make_executor("processes", workers=3) as many:
        assert pickle.dumps(alone.map(tasks.simulate, range(9), RunOptions(seed=1))) == pickle.dumps(
            many.map(tasks.simulate, range(9), RunOptions(seed=1))
        )


@given(seed=st.integers(0, 2**64), index=st.integers(0, 40))
def test_task_seeds_are_those_of_spawned_seed_sequences(seed, index):
    words = np.random.SeedSequence(seed).spawn(index + 1)[index].generate_state(2)
    assert task_seed(seed, index) == (int(words[0]) * 2**32 + int(words[1])) // 2
    assert task_seed(seed, index) != task_seed(seed, index + 1)


def test_an_exception_is_recorded_with_its_place_and_stops_nobody(executor, tasks):
    run = executor.run(Task(tasks.end_badly, (how,)) for how in ("a", "raise", "b"))
    first, second, third = run
    assert (first.value, third.value) == ("a", "b")
    assert second.failure.kind is FailureKind.RAISED
    assert second.failure.message == "ValueError: asked to raise"
    assert "execution_tasks.py" in second.failure.traceback
    assert "end_badly" in second.failure.traceback
    assert (run.report.succeeded, run.report.failed, run.report.retried) == (2, 1, 0)


def test_failures_are_the_same_on_inline_and_processes(inline, processes, tasks):
    hows = ["raise", "sys.exit", "unpicklable", "bad to unpickle", "fine"]
    outcomes = [list(engine.run(Task(tasks.end_badly, (how,)) for how in hows)) for engine in (inline, processes)]
    assert outcomes[0] == outcomes[1]
    assert [result.ok for result in outcomes[0]] == [False] * 4 + [True]
    assert "can't be unpickled" in outcomes[0][3].failure.message


def test_map_raises_the_tasks_failure(executor, tasks):
    with pytest.raises(TaskFailedError, match="task 1 raised: ValueError: asked to raise") as caught:
        executor.map(tasks.end_badly, ["a", "raise", "b"])
    assert caught.value.index == 1
    assert executor.map(tasks.square, [3]) == [9]


def test_an_exception_is_retried_only_when_asked(executor, tasks):
    once = executor.run([Task(tasks.end_badly, ("raise",))], RunOptions(retries=3))
    list(once)
    assert len(once.report.troubled[0].attempts) == 1
    often = executor.run([Task(tasks.end_badly, ("raise",))], RunOptions(retries=3, retry_raised=True))
    list(often)
    assert len(often.report.troubled[0].attempts) == 4


def test_a_task_over_its_limit_has_timed_out_on_every_engine(executor, tasks):
    options = RunOptions(time_limit=0.5, retries=0)
    run = executor.run([Task(tasks.sleep_then_return, ((1.5, 1),)), Task(tasks.square, (3,))], options)
    late, good = run
    assert late.failure.kind is FailureKind.TIMED_OUT
    assert late.failure.message == "longer than the limit of 0.5 s"
    assert good.value == 9
    assert run.report.troubled[0].attempts[0].seconds >= 0.5


def test_tasks_are_taken_lazily_and_never_more_than_the_window(executor, tasks):
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield Task(tasks.square, (taken,))

    run = executor.run(endless(), RunOptions(window=5))
    assert taken == 0
    for read in range(1, 200):
        next(run)
        assert taken <= read + 5
    run.close()
    assert executor.map(tasks.square, [2]) == [4]


def test_progress_sees_every_report(executor, tasks):
    seen = []
    options = RunOptions(progress=lambda task, run: seen.append((task.index, task.seconds >= 0, run.finished)))
    list(executor.run((Task(tasks.square, (i,)) for i in range(10)), options))
    assert sorted(index for index, _, _ in seen) == list(range(10))
    assert all(measured for _, measured, _ in seen)
    assert [finished for _, _, finished in seen] == list(range(1, 11))


def test_a_second_run_must_wait_for_the_first(executor, tasks):
    run = executor.run(Task(tasks.square, (i,)) for i in range(3))
    next(run)
    with pytest.raises(RuntimeError, match="busy with another run"):
        executor.map(tasks.square, [1])
    run.close()
    assert executor.map(tasks.square, [1]) == [1]


def test_arguments_reach_a_task_as_copies(executor, tasks):
    data = [1]
    (result,) = executor.map(functools.partial(list.__add__, data), [[2]])
    assert result == [1, 2]
    result.append(3)
    assert data == [1]


def module_level(value):
    return value


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda value: value, "it is a lambda"),
        (functools.partial(lambda value: value, 1), "it is a lambda"),
        (functools.wraps(print)(module_level), "gives something else"),
        (3, "must be callable, got 3"),
    ],
)
def test_functions_that_workers_cannot_import_are_refused(executor, function, reason):
    with pytest.raises(TypeError, match=reason):
        executor.map(function, [1])


def test_functions_inside_functions_are_refused_with_the_way_out(executor):
    def inner(value):
        return value

    with pytest.raises(TypeError, match="inside another function; workers import functions by name, so define it"):
        executor.map(inner, [1])


def test_a_bound_method_of_something_unpicklable_is_refused(executor):
    with pytest.raises(TypeError, match="can't be pickled"):
        executor.map((x for x in ()).send, [1])


def test_arguments_that_cannot_travel_are_named(executor, tasks):
    with pytest.raises(TypeError, match=r"a call of <function square at .* can't be pickled"):
        executor.map(tasks.square, [(x for x in ())])
    with executor.actors(tasks.Counter, [0]) as group, pytest.raises(TypeError, match=r"arguments of add\(\) can't be"):
        group.call("add", lambda: None)


def test_an_error_in_the_callers_own_code_ends_the_run_and_not_the_executor(executor, tasks):
    def faulty():
        yield Task(tasks.square, (1,))
        raise OSError("no more tasks")

    with pytest.raises(OSError, match="no more tasks"):
        list(executor.run(faulty()))
    assert executor.map(tasks.square, [2]) == [4]


def test_a_seed_given_twice_is_refused(executor, tasks):
    with pytest.raises(ValueError, match="drop one"):
        list(executor.run([Task(tasks.simulate, (1,), {"seed": 3})], RunOptions(seed=1)))


def test_a_closed_executor_says_so(tasks):
    executor = make_executor("inline")
    run = executor.run(Task(tasks.square, (i,)) for i in range(3))
    next(run)
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(run)
    with pytest.raises(RuntimeError, match="closed"):
        executor.map(tasks.square, [1])
    with pytest.raises(RuntimeError, match="closed"):
        executor.actors(tasks.Counter, [1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "threads"}, re.escape(f"unknown executor 'threads': choose one of {', '.join(ENGINES)}")),
        ({"name": "processes", "address": "auto"}, "address='auto' is for the ray executor only"),
        ({"name": "processes", "workers": 0}, "workers must be at least 1"),
        ({"name": "processes", "tasks_per_worker": 0}, "tasks_per_worker must be at least 1"),
    ],
)
def test_wrong_executors_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_executor(**arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": 0}, "time_limit must be more than 0 seconds"),
        ({"time_limit": float("nan")}, "time_limit must be more than 0 seconds"),
        ({"retries": -1}, "retries must be 0 or more, got -1"),
        ({"window": 0}, "window must be at least 1"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"on_failure": "ignore"}, "on_failure must be 'record' or 'raise', got 'ignore'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RunOptions(**options)

import os
import pickle
import signal
import time

import pytest

from apexrl.execution import make_executor
from apexrl.execution.actors import ActorCallError, ActorLostError, ActorOptions


def history(executor, tasks):
    with executor.actors(tasks.Counter, list(range(5)), ActorOptions(seed=11)) as group:
        values = [group.call("add", 1)]
        values.append(group.map("add", {4: (10,), 0: (20,)}, scale=2))
        values.append(group[3].call("add", 5, scale=3))
        return [*values, group.call("add", 0)]


def test_actors_keep_their_state_and_answer_in_the_order_of_their_keys(inline, tasks):
    first, second, third, last = history(inline, tasks)
    assert [(key, total) for key, total, _ in first] == [(key, 1) for key in range(5)]
    assert list(second) == [0, 4]
    assert [total for _, total, _ in second.values()] == [41, 21]
    assert third[:2] == (3, 16)
    assert [total for _, total, _ in last] == [41, 1, 1, 16, 21]


def test_actors_are_the_same_bytes_on_inline_and_processes_for_any_number_of_workers(inline, tasks):
    expected = pickle.dumps(history(inline, tasks))
    for workers in (1, 2, 3):
        with make_executor("processes", workers=workers) as executor:
            assert pickle.dumps(history(executor, tasks)) == expected


def test_an_actor_stays_on_its_worker(processes, tasks):
    with processes.actors(tasks.Counter, list("abcd")) as group:
        places = group.call("where")
        assert places == group.call("where")
        assert places[0] == places[2] != places[1] == places[3]
        assert processes.map(tasks.process_id, [0])[0] not in places


def test_a_method_that_raises_is_raised_here_after_all_have_run(executor, tasks):
    with executor.actors(tasks.Counter, [0, 1, 2]) as group:
        group.call("add", 1)
        with pytest.raises(ActorCallError, match=r"fail_if\(\) of actor 1 raised: ValueError: 1 was asked") as caught:
            group.call("fail_if", 1)
        assert list(caught.value.failures) == [1]
        assert [total for _, total, _ in group.call("add", 1)] == [2, 2, 2]
        with pytest.raises(ActorCallError, match="AttributeError"):
            group[0].call("no_such_method")


@pytest.mark.parametrize("how", ["kill", "hang"])
def test_a_dead_workers_actors_are_lost_until_rebuilt(processes, tasks, how):
    options = ActorOptions(time_limit=3.0)
    with processes.actors(tasks.Counter, [0, 1, 2], options) as group:  # 0 and 2 share a worker
        group.call("add", 7)
        with pytest.raises(ActorLostError, match=r"actors \[0, 2\] are lost .*rebuild\(\)") as caught:
            group.call("die_if", 0, how)
        assert caught.value.keys == [0, 2]
        with pytest.raises(ActorLostError):
            group[2].call("add", 0)
        assert group[1].call("add", 0)[1] == 7
        assert group.rebuild() == [0, 2]
        assert [total for _, total, _ in group.call("add", 0)] == [0, 7, 0]


def test_a_worker_killed_between_two_calls_is_noticed(processes, tasks):
    with processes.actors(tasks.Counter, [0, 1]) as group:
        group.call("add", 1)
        os.kill(group[1].call("where"), signal.SIGKILL)
        time.sleep(0.2)
        assert group[0].call("add", 0)[1] == 1
        with pytest.raises(ActorLostError, match=r"\[1\] are lost with their state \(worker died: killed by SIGKILL"):
            group[1].call("add", 0)
        assert group.rebuild() == [1]
        assert group[1].call("add", 0)[1] == 0


@pytest.mark.parametrize("how", ["kill", "hang"])
def test_calls_without_history_are_repeated_on_rebuilt_actors(processes, inline, tasks, tmp_path, how):
    options = ActorOptions(on_loss="rebuild", time_limit=3.0)
    with processes.actors(tasks.Counter, [0, 1, 2, 3], options) as group:
        assert group.call("die_once", 2, str(tmp_path), how) == [0, 10, 20, 30]
        assert group.report.retried == 1
        (troubled,) = group.report.troubled
        assert troubled.label == "die_once of 2"
        assert troubled.attempts[0].failure is not None
    with inline.actors(tasks.Counter, [0, 1, 2, 3], options) as group:
        assert group.call("die_once", 2, str(tmp_path), how) == [0, 10, 20, 30]


def test_a_call_that_always_kills_is_given_up(processes, tasks):
    with (
        processes.actors(tasks.Counter, [0, 1], ActorOptions(on_loss="rebuild", retries=1)) as group,
        pytest.raises(ActorLostError, match="killed by SIGKILL"),
    ):
        group.call("die_if", 1)


def test_a_late_call_loses_its_actor_inline_too(inline, tasks, monkeypatch):
    monkeypatch.setattr(tasks.Counter, "slow", lambda self: time.sleep(0.1), raising=False)
    with inline.actors(tasks.Counter, [0], ActorOptions(time_limit=0.02)) as group:
        with pytest.raises(ActorLostError, match="timed out"):
            group.call("slow")
        assert group.rebuild() == [0]


def test_factories_that_fail_are_raised(executor, processes, tasks):
    with pytest.raises(ActorCallError, match="the factory of actor 'x' raised: RuntimeError: cannot build x"):
        executor.actors(tasks.broken_factory, ["x"])
    with pytest.raises(ActorLostError, match="exited with code 4"):
        processes.actors(tasks.deadly_factory, ["x", "y"])


def test_wrong_groups_and_calls_are_refused(executor, tasks):
    with pytest.raises(ValueError, match="keys must be distinct"):
        executor.actors(tasks.Counter, [1, 1])
    with pytest.raises(TypeError, match="lambda"):
        executor.actors(lambda key: key, [1])
    group = executor.actors(tasks.Counter, [1])
    with pytest.raises(KeyError, match="no actor 2: the keys are"):
        group.map("add", {2: (1,)})
    group.close()
    with pytest.raises(RuntimeError, match="closed"):
        group.call("add", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": -1}, "time_limit must be more than 0"),
        ({"build_time_limit": 0}, "build_time_limit must be more than 0"),
        ({"on_loss": "ignore"}, "on_loss must be 'raise' or 'rebuild'"),
        ({"retries": -1}, "retries must be 0 or more"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ActorOptions(**options)

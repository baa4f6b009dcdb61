"""Shared values: sent once to a worker, resolved where they are arguments, and forgotten when they are long unused."""

import pytest

from apexrl.execution import RunOptions, Shared, Task, make_executor
from apexrl.execution.server import Server, call_request, carry, read_reply
from apexrl.execution.shared import latest


def test_tasks_get_the_value_on_every_engine(executor, tasks):
    shared = Shared(b"x" * 1000)
    run = executor.run(Task(tasks.length, (shared,)) for _ in range(5))
    assert [result.unwrap() for result in run] == [1000] * 5


def test_a_worker_is_sent_a_value_once(tasks, monkeypatch):
    sent = []
    monkeypatch.setattr(
        "apexrl.execution.engines.inline.carry", lambda request, shared: sent.extend(shared) or carry(request, shared)
    )
    one, two = Shared(b"one"), Shared(b"three")
    with make_executor("inline") as executor:
        run = executor.run([Task(tasks.length, (value,)) for value in (one, two, one, two, one)], RunOptions())
        assert [result.unwrap() for result in run] == [3, 5, 3, 5, 3]
    assert sent == [one, two]


def test_actors_share_large_arguments_of_one_call(executor, tasks):
    with executor.actors(tasks.Counter, [0, 1, 2]) as group:
        large = 1 << 800_000  # 100 kB
        assert [total for _, total, _ in group.call("add", large)] == [large] * 3
        assert [total for _, total, _ in group.call("add", 2)] == [large + 2] * 3


def test_a_part_of_an_argument_is_refused():
    with pytest.raises(TypeError, match="an argument of a task itself"):
        call_request(len, ([Shared(1)],), {})


def test_old_values_are_forgotten():
    server = Server()
    values = [Shared([number]) for number in range(4)]
    for value in values:
        _, length, failure = read_reply(server.handle(carry(call_request(len, (value,), {}), [value])))
        assert (length, failure) == (1, None)
    _, _, failure = read_reply(server.handle(call_request(len, (values[0],), {})))
    assert failure is not None


def test_both_sides_forget_by_the_same_rule():
    assert latest(["a", "b"], ["c"]) == ["b", "c"]
    assert latest(["a", "b"], ["a"]) == ["b", "a"]
    assert latest(["a"], ["b", "c", "d", "b"]) == ["b", "c", "d"]

"""The ray engine. Ray takes many seconds to start, so one test does all that needs it."""

import builtins
import importlib
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from apexrl.execution import FailureKind, RunOptions, Shared, Task, make_executor
from apexrl.execution.actors import ActorLostError, ActorOptions


def test_ray_gives_the_same_bytes_as_inline_through_kills_and_hangs(inline, tasks, tmp_path):
    pytest.importorskip("ray")
    with make_executor("ray", workers=2) as ray_executor:
        check_a_hundred_tasks_survive_kills_and_hangs(inline, ray_executor, tasks, tmp_path)
        check_failures_and_environment(inline, ray_executor, tasks)
        check_actors(inline, ray_executor, tasks)


def check_a_hundred_tasks_survive_kills_and_hangs(inline, ray_executor, tasks, tmp_path):
    accidents = {20: "kill", 41: "hang", 60: "exit"}
    reference = inline.map(tasks.simulate, range(100), RunOptions(seed=3))

    healthy = ray_executor.map(tasks.simulate, range(100), RunOptions(seed=3))
    run = ray_executor.run(
        (Task(tasks.simulate_with_accidents, (i, accidents, str(tmp_path))) for i in range(100)),
        RunOptions(seed=3, time_limit=8.0),
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


def check_failures_and_environment(inline, ray_executor, tasks):
    hows = ["raise", "sys.exit", "unpicklable", "bad to unpickle", "fine"]
    outcomes = [list(engine.run(Task(tasks.end_badly, (how,)) for how in hows)) for engine in (inline, ray_executor)]
    assert outcomes[0] == outcomes[1]
    (variables,) = ray_executor.map(tasks.environment, [["OMP_NUM_THREADS", "PYTHONHASHSEED"]])
    assert variables["OMP_NUM_THREADS"] == "1"
    assert variables["PYTHONHASHSEED"] is not None


def check_actors(inline, ray_executor, tasks):
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


def test_an_address_where_nobody_listens_is_named_at_once(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(ConnectionError, match=r"no Ray cluster answers at address '127.0.0.1:1' .*ray start --head"):
        make_executor("ray", workers=1, address="127.0.0.1:1")


def test_without_ray_the_message_says_what_to_install(monkeypatch):
    original = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "ray":
            raise ModuleNotFoundError("No module named 'ray'", name="ray")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ModuleNotFoundError, match=r"pip install apexrl\[ray\]"):
        make_executor("ray", workers=1)


def test_on_a_cluster_all_cpus_are_used_and_lost_nodes_are_waited_for(inline, tasks, monkeypatch, tmp_path):
    """A simulated cluster: a node is removed without grace while tasks run, and others are added."""
    ray = pytest.importorskip("ray")
    from apexrl.execution.simulated_cluster import SimulatedCluster

    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "only_here.py").write_text("def where(_):\n    return __file__\n")
    monkeypatch.syspath_prepend(str(shipped))
    only_here = importlib.import_module("only_here")
    monkeypatch.setattr("apexrl.execution.engines.ray._LOOK_AROUND", 0.1)  # the tasks are over in seconds

    with SimulatedCluster([1, 1]) as cluster:
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        with make_executor("ray", ray={"memory_gb": 0.05, "working_dir": str(shipped)}) as executor:
            assert executor.workers == 2, "all CPUs of the cluster"
            check_nodes_come_and_go(inline, executor, cluster, tasks, tmp_path)
            assert executor.workers >= 3, "the CPU that was added is used; Ray may still count that of the lost node"
            names = [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)]
            assert any(name.startswith("apexrl-") for name in names)
            [where] = executor.map(only_here.where, [0])
            assert not where.startswith(str(shipped)), "the node's own copy was imported"


def check_nodes_come_and_go(inline, executor, cluster, tasks, folder):
    """Without retries: a lost node is not held against the task that ran on it."""
    shared, doomed = Shared(list(range(1000))), cluster.nodes[1].node_id
    reference = [Task(tasks.simulate_slowly, (i, shared)) for i in range(60)]
    work = [Task(tasks.simulate_on_a_cluster, (i, shared, doomed, str(folder))) for i in range(60)]
    run = executor.run(work, RunOptions(seed=3, retries=0))
    with ThreadPoolExecutor(1) as pool:  # the main thread changes the nodes, because Ray starts them in no other
        collected = pool.submit(lambda: [result.unwrap() for result in run])
        try:
            wait_until((folder / "reached").exists, collected.done, seconds=120)
            cluster.add(1)
            cluster.add(1)
            cluster.remove(1)
        finally:
            (folder / "removed").touch()
        values = collected.result()
    expected = [result.unwrap() for result in inline.run(reference, RunOptions(seed=3))]
    assert pickle.dumps(values) == pickle.dumps(expected)
    lost = [attempt.failure.kind for task in run.report.troubled for attempt in task.attempts[:-1]]
    assert lost == [FailureKind.NODE_LOST]


def wait_until(*conditions, seconds):
    """Wait for any of the conditions: how long a worker takes to start differs by seconds."""
    deadline = time.monotonic() + seconds
    while not any(condition() for condition in conditions):
        assert time.monotonic() < deadline, f"nothing happened within {seconds} seconds"
        time.sleep(0.01)

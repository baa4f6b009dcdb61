"""The scheduler over a fleet that fails at random: what must hold however workers behave."""

import random
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from apexrl.execution import FailureKind, RunOptions, Shared, Task
from apexrl.execution.executor import Executor
from apexrl.execution.pool import Died, Reply
from apexrl.execution.report import MOST_NODES_LOST
from apexrl.execution.server import Server, carry


class FragileLink:
    def __init__(self):
        self.requests = deque()
        self.server = Server()
        self.ready = False
        self.alive = True

    def send(self, request, shared):
        self.requests.append(carry(request, shared))

    def kill(self):
        self.alive = False


class FragileFleet:
    """Serves requests in an arbitrary order of workers, and lets workers die at arbitrary moments, idle or busy."""

    start_limit = 60.0
    longest_wait = 60.0

    def __init__(self, rng, death_rate, *, is_lost=False, most=1):
        self.rng = rng
        self.death_rate = death_rate
        self.is_lost = is_lost
        self.most = most
        self.links = []

    def capacity(self):
        return self.rng.randint(0, self.most)

    def start(self):
        self.links.append(FragileLink())
        return self.links[-1]

    def wait(self, timeout):
        self.links = [link for link in self.links if link.alive]
        for link in self.rng.sample(self.links, self.rng.randint(1, len(self.links))):
            if not link.ready:
                link.ready = True
                yield Reply(link)
            elif self.rng.random() < self.death_rate:
                link.alive = False
                yield Died(link, "bad luck", is_lost=self.is_lost)
            elif link.requests:
                yield Reply(link, link.server.handle(link.requests.popleft()))


@given(
    seed=st.integers(0, 2**32),
    death_rate=st.sampled_from([0.0, 0.05, 0.4]),
    workers=st.integers(1, 4),
    count=st.integers(0, 60),
    window=st.integers(1, 20),
    retries=st.integers(0, 3),
    ordered=st.booleans(),
)
def test_every_task_has_one_outcome_whatever_workers_do(seed, death_rate, workers, count, window, retries, ordered):
    rng = random.Random(seed)
    with Executor(lambda: FragileFleet(rng, death_rate), workers) as executor:
        options = RunOptions(retries=retries, window=window, ordered=ordered)
        run = executor.run((Task(abs, (-index,), label=str(index)) for index in range(count)), options)
        results = list(run)

    indices = [result.index for result in results]
    assert (indices if ordered else sorted(indices)) == list(range(count))
    attempts = {task.index: len(task.attempts) for task in run.report.troubled}
    for result in results:
        assert result.label == str(result.index)
        if result.ok:
            assert result.value == result.index
            assert attempts.get(result.index, 1) <= retries + 1
        else:
            assert result.failure.kind is FailureKind.WORKER_DIED
            assert attempts[result.index] == retries + 1
    assert run.report.failed == sum(not result.ok for result in results)
    assert run.report.finished == count


@given(seed=st.integers(0, 2**32), workers=st.integers(1, 3), count=st.integers(1, 40))
def test_tasks_of_lost_machines_are_repeated_whatever_the_retries(seed, workers, count):
    rng = random.Random(seed)
    with Executor(lambda: FragileFleet(rng, 0.3, is_lost=True, most=5), workers) as executor:
        run = executor.run((Task(abs, (-index,)) for index in range(count)), RunOptions(retries=0))
        assert [result.unwrap() for result in run] == list(range(count))
        assert workers <= executor.workers <= max(workers, 5), "it grows with the cluster, and does not shrink"
    kinds = {attempt.failure.kind for task in run.report.troubled for attempt in task.attempts[:-1]}
    assert kinds <= {FailureKind.NODE_LOST}


def test_a_task_that_brings_down_every_machine_is_given_up():
    with Executor(lambda: FragileFleet(random.Random(0), 1.0, is_lost=True), 1) as executor:
        [result] = executor.run([Task(abs, (-1,))], RunOptions(retries=5))
    assert result.failure.kind is FailureKind.NODE_LOST
    assert MOST_NODES_LOST < 100


@given(seed=st.integers(0, 2**32), death_rate=st.sampled_from([0.0, 0.2]), workers=st.integers(1, 3))
def test_shared_values_arrive_whatever_workers_do(seed, death_rate, workers):
    rng = random.Random(seed)
    shared = [Shared(list(range(number))) for number in range(5)]
    chosen = [(rng.choice(shared), rng.choice(shared), rng.choice(shared)) for _ in range(20)]
    with Executor(lambda: FragileFleet(rng, death_rate, is_lost=True), workers) as executor:
        run = executor.run(Task(_lengths, (one, 7, two), {"last": three}) for one, two, three in chosen)
        values = [result.unwrap() for result in run]
    assert values == [[len(one.value), 7, len(two.value), len(three.value)] for one, two, three in chosen]


def _lengths(one, number, two, *, last):
    one.append("what a task does to its copy, no other task sees")
    return [len(one) - 1, number, len(two), len(last)]


class SlowFleet(FragileFleet):
    """Its second worker never starts, as on a cluster that has lost a machine for good."""

    def start(self):
        link = super().start()
        if len(self.links) > 1:
            self.links.remove(link)
        return link


def test_a_worker_that_never_starts_holds_nobody_up():
    with Executor(lambda: SlowFleet(random.Random(0), 0.0), 2) as executor:
        run = executor.run((Task(abs, (-index,)) for index in range(20)), RunOptions(window=4))
        assert [result.unwrap() for result in run] == list(range(20))

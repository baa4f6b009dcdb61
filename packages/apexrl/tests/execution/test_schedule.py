"""The scheduler over a fleet that fails at random: what must hold however workers behave."""

import random
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from apexrl.execution import FailureKind, RunOptions, Task
from apexrl.execution.executor import Executor
from apexrl.execution.pool import Died, Reply
from apexrl.execution.server import Server


class FragileLink:
    def __init__(self):
        self.requests = deque()
        self.ready = False
        self.alive = True

    def send(self, request):
        self.requests.append(request)

    def kill(self):
        self.alive = False


class FragileFleet:
    """Serves requests in an arbitrary order of workers, and lets workers die at arbitrary moments, idle or busy."""

    start_limit = 60.0

    def __init__(self, rng, death_rate):
        self.rng = rng
        self.death_rate = death_rate
        self.links = []

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
                yield Died(link, "bad luck")
            elif link.requests:
                yield Reply(link, Server().handle(link.requests.popleft()))


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

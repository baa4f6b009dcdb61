"""What workers do: worlds as independent tasks, whose results depend on their arguments alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apexrl.execution import Executor, RunOptions, Task
from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.hrl_xf.online.rollout import WorldRollout, play_world
from litaagent_std.hrl_xf.online.worlds import WorldPlan
from litaagent_std.hrl_xf.rewards import DayWeights

__all__ = ["Job", "play_jobs"]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A world to play.

    Attributes:
        plan: The world.
        policies: Who plays our seats; no policies at all are the reference, the heuristic agent.
        luck_seed: Seed of the exploration; None for none.
        rounds: Whether rounds are steered.
    """

    plan: WorldPlan
    policies: PolicySet
    luck_seed: int | None
    rounds: bool


def _work(job: Job, weights: DayWeights) -> WorldRollout:
    return play_world(job.plan, job.policies, weights, job.luck_seed, rounds=job.rounds)


def play_jobs(
    executor: Executor,
    jobs: Sequence[Job],
    weights: DayWeights,
    *,
    time_limit: float | None = None,
    done: Callable[[int], None] | None = None,
) -> list[WorldRollout]:
    """Plays all jobs and waits for all of them: the barrier.

    Args:
        executor: Where; the result is the same on every engine.
        jobs: The worlds.
        weights: For the form of the potential.
        time_limit: Seconds per world.
        done: Told the number of worlds finished so far.

    Returns:
        Rollouts in the order of the jobs.

    Raises:
        TaskFailedError: If a world could not be played; nothing is learned from an incomplete batch.
    """
    options = RunOptions(time_limit=time_limit, on_failure="raise")
    tasks = (Task(_work, (job, weights), label=f"world {job.plan.seed}") for job in jobs)
    found = []
    for result in executor.run(tasks, options):
        found.append(result.unwrap())
        if done is not None:
            done(len(found))
    return found

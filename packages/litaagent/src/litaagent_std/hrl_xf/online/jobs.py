"""Worlds as independent tasks of an executor; a result depends on the task's arguments alone."""

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
        policies: Policies of our seats; an empty set is the reference, the heuristic agent.
        rng_seed: Seed of the exploration; None for none.
        rounds: Whether rounds have residual actions.
    """

    plan: WorldPlan
    policies: PolicySet
    rng_seed: int | None
    rounds: bool


def _play_job(job: Job, weights: DayWeights) -> WorldRollout:
    return play_world(job.plan, job.policies, weights, job.rng_seed, rounds=job.rounds)


def play_jobs(
    executor: Executor,
    jobs: Sequence[Job],
    weights: DayWeights,
    *,
    time_limit: float | None = None,
    done: Callable[[int], None] | None = None,
) -> list[WorldRollout]:
    """Play all jobs and wait for all of them: the barrier.

    Args:
        executor: Runs the tasks; the result is the same on every engine.
        jobs: The worlds.
        weights: Form and discount of the potential.
        time_limit: Seconds per world.
        done: Callback with the number of finished worlds.

    Returns:
        Rollouts in the order of the jobs.

    Raises:
        TaskFailedError: If a world could not be played; nothing is learned from an incomplete batch.
    """
    options = RunOptions(time_limit=time_limit, on_failure="raise")
    tasks = (Task(_play_job, (job, weights), label=f"world {job.plan.seed}") for job in jobs)
    rollouts = []
    for result in executor.run(tasks, options):
        rollouts.append(result.unwrap())
        if done is not None:
            done(len(rollouts))
    return rollouts

"""Worlds as tasks of an executor, a group of worlds in lockstep per task.

A rollout depends on its own job alone, not on the group or the worker. Networks are sent to a worker once per version,
not with every task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from apexrl.execution import Executor, RunOptions, Shared, Task
from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.rollout import WorldRollout
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world
from litaagent_std.hrl_xf.rewards import DayWeights

__all__ = ["Job", "groups_of", "play_jobs"]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A world to play.

    Attributes:
        plan: The world.
        policies: Networks of our seats; without any it is the reference, the heuristic agent.
        rng_seed: Seed of the exploration; None for none.
    """

    plan: WorldPlan
    policies: Hierarchy
    rng_seed: int | None


def groups_of(jobs: Sequence[Job], size: int, workers: int = 1) -> list[list[int]]:
    """Return the jobs that are played in lockstep together, as indices.

    The worlds of a group are decided as one batch, so they have the same networks. Rollouts do not depend on groups.

    Args:
        jobs: The jobs.
        size: Worlds of a group at most.
        workers: Groups that are played at once; there are as many for each set of networks if there are enough jobs.
    """
    alike: dict[int, list[int]] = {}
    for index, job in enumerate(jobs):
        alike.setdefault(id(job.policies), []).append(index)
    groups = []
    for indices in alike.values():
        count = min(len(indices), max(workers, ceil(len(indices) / size)))
        groups += [indices[part::count] for part in range(count)]
    return groups


def _play_group(
    plans: Sequence[WorldPlan], policies: Hierarchy, rng_seeds: Sequence[int | None], weights: DayWeights
) -> list[WorldRollout]:
    return play_worlds([draw_world(plan) for plan in plans], policies, weights, rng_seeds)


def play_jobs(
    executor: Executor,
    jobs: Sequence[Job],
    weights: DayWeights,
    *,
    group: int = 32,
    time_limit: float | None = None,
    done: Callable[[int], None] | None = None,
) -> list[WorldRollout]:
    """Play all jobs and wait for all of them: the barrier.

    Args:
        executor: Runs the tasks; the result is the same on every engine.
        jobs: The worlds.
        weights: Form and discount of the potential.
        group: Worlds that are played in lockstep at most.
        time_limit: Seconds per world.
        done: Callback with the number of finished worlds.

    Returns:
        Rollouts in the order of the jobs.

    Raises:
        TaskFailedError: If a world could not be played; nothing is learned from an incomplete batch.
    """
    groups = groups_of(jobs, group, executor.workers)
    largest = max((len(indices) for indices in groups), default=1)
    options = RunOptions(time_limit=None if time_limit is None else time_limit * largest, on_failure="raise")
    shared = {id(job.policies): job.policies for job in jobs}
    networks = {key: Shared(policies) for key, policies in shared.items()}

    def task_of(indices: Sequence[int]) -> Task[list[WorldRollout]]:
        group = [jobs[index] for index in indices]
        plans, seeds = [job.plan for job in group], [job.rng_seed for job in group]
        arguments = (plans, networks[id(group[0].policies)], seeds, weights)
        return Task(_play_group, arguments, label=f"worlds {_seeds(jobs, indices)}")

    tasks = map(task_of, groups)
    rollouts: dict[int, WorldRollout] = {}
    for indices, result in zip(groups, executor.run(tasks, options), strict=True):
        rollouts |= dict(zip(indices, result.unwrap(), strict=True))
        if done is not None:
            done(len(rollouts))
    return [rollouts[index] for index in range(len(jobs))]


def _seeds(jobs: Sequence[Job], indices: Sequence[int]) -> str:
    """Return the seeds of a group for messages."""
    first = jobs[indices[0]].plan.seed
    return f"{first}" if len(indices) == 1 else f"{first} and {len(indices) - 1} more"

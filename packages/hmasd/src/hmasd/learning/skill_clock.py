"""Timing of skills: clocks, the intervals between choices, their advantages, and sequences for the GRU.

Each environment has its own clock, which starts with its episode: a skill ends after k steps or at the end of the
episode. It does not end at the barrier between two batches. The steps under one choice that are in one batch are an
*interval*. An interval that begins with a choice is one sample of the high level; an interval whose skills were chosen
in an earlier batch, by an earlier policy version, is none.
"""

from dataclasses import dataclass

import numpy as np
import torch

from apexrl.arrays import Bools, Floats, Ints
from apexrl.storage.samples import gae


class SkillClock:
    """Age of the current skills in each environment.

    Args:
        num_envs: Number of environments.
        skill_steps: k.
    """

    def __init__(self, num_envs: int, skill_steps: int) -> None:
        self._k = skill_steps
        self._age = np.full(num_envs, skill_steps, dtype=np.int64)

    @property
    def age(self) -> Ints:
        """Steps that the current skills have lasted, ``(E,)``; k where new ones are due."""
        return self._age.copy()

    def restore(self, age: Ints) -> None:
        """Continue from :attr:`age` of another clock, ``(E,)``."""
        self._age = np.minimum(age, self._k).astype(np.int64)

    def due(self) -> Bools:
        """Return which environments need new skills before their next step, ``(E,)``."""
        due: Bools = self._age >= self._k
        return due

    def assign(self, envs: Bools) -> None:
        """Start new skills in these environments, ``(E,)``."""
        self._age[envs] = 0

    def tick(self, dones: Bools) -> None:
        """Count one step; where an episode ended, ``dones (E,)``, its skills end too."""
        self._age += 1
        self._age[dones] = self._k


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """The steps of a rollout by the choice that they are under, ordered by environment and time; M intervals."""

    env: Ints
    """Environment of each interval, ``(M,)``."""
    start: Ints
    """Its first step, ``(M,)``."""
    length: Ints
    """Its number of steps in the rollout, ``(M,)``."""
    age: Ints
    """Steps under the same skills in earlier batches, ``(M,)``; 0 if the skills were chosen at ``start``."""
    left: Ints
    """Steps that its skills still last after the rollout, ``(M,)``; 0 if they ended in it."""
    reward: Floats
    """Σ_p γ_step^p · r_{start + p}, ``(M,)``."""
    terminated: Bools
    """The episode terminated at its last step, so the value after it is 0, ``(M,)``."""
    continues: Bools
    """The next interval in this table is of the same episode, ``(M,)``."""

    @property
    def end(self) -> Ints:
        """Its last step, ``(M,)``."""
        return self.start + self.length - 1

    @property
    def chosen(self) -> Bools:
        """Whether the skills were chosen at its start, so that it is a sample of the high level, ``(M,)``."""
        chosen: Bools = self.age == 0
        return chosen


def cut_intervals(
    assigned: Bools,
    rewards: Floats,
    terminated: Bools,
    truncated: Bools,
    gamma: float,
    *,
    skill_steps: int,
    age: Ints | None = None,
) -> Intervals:
    """Derive the intervals of a rollout.

    Args:
        assigned: Skills were chosen before this step, ``(T, E)``.
        rewards: Team rewards, ``(T, E)``.
        terminated: The episode terminated in this step, ``(T, E)``.
        truncated: The episode was truncated in this step, ``(T, E)``.
        gamma: Discount of one environment step.
        skill_steps: k.
        age: Steps that the skills in force at the first step had lasted, ``(E,)``; 0 where they were chosen there.
            If None, they were chosen there everywhere.

    Raises:
        ValueError: An environment starts without skills, or keeps old skills in a new episode.
    """
    dones = terminated | truncated
    before = np.zeros(assigned.shape[1], dtype=np.int64) if age is None else age
    without = (before == 0) != assigned[0]
    if without.any():
        raise ValueError(f"environments {np.flatnonzero(without).tolist()} start the rollout without skills of any age")
    stale = dones[:-1] & ~assigned[1:]
    if stale.any():
        step, env = np.argwhere(stale)[0]
        raise ValueError(f"environment {env} began an episode at step {step + 1} with the skills of the one before")
    n_steps = assigned.shape[0]
    begins = assigned.copy()
    begins[0] = True
    env, start = np.nonzero(begins.T)  # (M,) each, ordered by environment and time
    stop = _next_start(env, start, n_steps)
    length = stop - start
    # rewards discounted from the start of their interval, summed per interval in environment-major order
    discounts = gamma ** _steps_since(begins)
    sums = np.add.reduceat((rewards * discounts).T.reshape(-1), env * n_steps + start)
    end = start + length - 1
    ages = np.where(start == 0, before[env], 0)
    is_open = (stop == n_steps) & ~dones[end, env]
    return Intervals(
        env=env,
        start=start,
        length=length,
        age=ages,
        left=np.where(is_open, skill_steps - ages - length, 0),
        reward=sums,
        terminated=terminated[end, env],
        continues=(stop < n_steps) & ~dones[end, env],
    )


def finished_rewards(intervals: Intervals, carried: Floats, gamma: float) -> tuple[Floats, Floats]:
    """Sum rewards over whole intervals, those parts included that earlier batches held.

    Args:
        intervals: M intervals of a rollout.
        carried: Σ_p γ^p·r over the steps before the rollout under the skills in force at its start, ``(E,)``.
        gamma: Discount of one environment step.

    Returns:
        The reward of every interval that ended in the rollout, and what the next rollout takes as ``carried``.
    """
    continued = intervals.age > 0
    total = np.where(continued, carried[intervals.env], 0.0) + gamma**intervals.age * intervals.reward
    is_open = intervals.left > 0
    following = np.zeros_like(carried)
    following[intervals.env[is_open]] = total[is_open]
    return total[~is_open], following


def ever_within(flags: Bools, intervals: Intervals) -> Bools:
    """Return whether a flag was true in any step of each interval, ``(M, n)`` from ``(T, E, n)``."""
    n_steps, _, n_flags = flags.shape
    rows = flags.transpose(1, 0, 2).reshape(-1, n_flags)  # (E·T, n)
    any_true: Bools = np.logical_or.reduceat(rows, intervals.env * n_steps + intervals.start, axis=0)
    return any_true


def steps_left(assigned: Bools, age: Ints, skill_steps: int) -> Ints:
    """Return how many steps the skills in force still last, the step itself included, ``(T, E)``.

    Args:
        assigned: Skills were chosen before this step, ``(T, E)``.
        age: Steps that the skills in force at the first step had lasted, ``(E,)``; 0 where they were chosen there.
        skill_steps: k.
    """
    begins = assigned.copy()
    begins[0] = True
    is_first = np.cumsum(assigned[1:], axis=0) == 0  # (T − 1, E) still under the skills of the first step
    ages = np.where(np.concatenate([begins[:1], is_first]), age, 0)
    left: Ints = skill_steps - ages - _steps_since(begins)
    return left


def _next_start(env: Ints, start: Ints, n_steps: int) -> Ints:
    """Return the step after each piece: the next start in the same environment, or ``n_steps``, ``(M,)``."""
    stop = np.append(start[1:], n_steps)
    stop[np.append(env[1:] != env[:-1], True)] = n_steps
    return stop


def _steps_since(starts: Bools) -> Ints:
    """Return the steps since the last true row, ``(T, E)``; the first row counts as true."""
    rows = np.arange(starts.shape[0])[:, None]
    last: Ints = np.maximum.accumulate(np.where(starts, rows, 0), axis=0)
    return rows - last


def interval_advantages(
    intervals: Intervals, values: Floats, next_values: Floats, discount: Floats, lam: float
) -> Floats:
    """Compute generalised advantage estimates over intervals of varying length.

    δ_m = R_m + γ_m·V'_m − V_m and A_m = δ_m + γ_m·λ·A_{m+1} within an episode, with γ_m = γ_step^length.

    Args:
        intervals: M intervals.
        values: V_h at their starts, ``(M, tokens)``.
        next_values: V_h after their ends, 0 where terminated, ``(M, tokens)``.
        discount: γ_m, ``(M,)``.
        lam: λ.

    Returns:
        Advantages ``(M, tokens)``.
    """
    # (M, 1): no advantage flows over the end of an episode or of the rollout
    rewards, ends, gammas = (
        torch.from_numpy(column[:, None]) for column in (intervals.reward, ~intervals.continues, discount)
    )
    advantages: Floats = gae(
        rewards, torch.from_numpy(values), torch.from_numpy(next_values), ends, gammas, lam
    ).numpy()
    return advantages


@dataclass(frozen=True, kw_only=True)
class Chunks:
    """Sequences of at most L steps within one episode, for truncated back-propagation through time; R of them."""

    env: Ints
    """Environment of each sequence, ``(R,)``."""
    start: Ints
    """Its first step, ``(R,)``."""
    step: Ints
    """Step at each position of each sequence, clipped to the rollout, ``(L, R)``."""
    valid: Bools
    """True for steps of the sequence, false for padding, ``(L, R)``."""


def cut_chunks(episode_starts: Bools, length: int) -> Chunks:
    """Cut each environment's steps at episode starts and then every ``length`` steps.

    Args:
        episode_starts: ``(T, E)``.
        length: L.
    """
    n_steps = episode_starts.shape[0]
    begins = _steps_since(episode_starts) % length == 0  # (T, E)
    env, start = np.nonzero(begins.T)  # (R,)
    sizes = _next_start(env, start, n_steps) - start
    positions = np.arange(int(sizes.max()))[:, None]  # (L, 1)
    step = np.minimum(start + positions, n_steps - 1)
    return Chunks(env=env, start=start, step=step, valid=positions < sizes)

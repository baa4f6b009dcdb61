"""When skills change, and the high-level samples that follow from it.

Each environment has its own clock, which starts with its episode: a skill ends after k steps, at the end of the
episode, or at the barrier, where the policy that chose it is replaced. What lies between is an *interval*, one
sample of the high level.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class SkillClock:
    """Ages of the skills under way.

    Args:
        num_envs: Number of environments.
        skill_steps: k.
    """

    def __init__(self, num_envs: int, skill_steps: int) -> None:
        self._k = skill_steps
        self._age = np.full(num_envs, skill_steps, dtype=np.int64)

    def due(self) -> Bools:
        """Which environments need new skills before their next step, ``(E,)``."""
        due: Bools = self._age >= self._k
        return due

    def assign(self, envs: Bools) -> None:
        """New skills begin in these environments."""
        self._age[envs] = 0

    def tick(self, dones: Bools) -> None:
        """One step was made; where an episode ended, the skill ended with it."""
        self._age += 1
        self._age[dones] = self._k

    def barrier(self) -> None:
        """Return the policy version changes: all skills end."""
        self._age[:] = self._k


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """The high-level samples of a rollout, ordered by environment and time; M of them."""

    env: Ints
    """Environment of each interval, ``(M,)``."""
    start: Ints
    """Its first step, ``(M,)``."""
    length: Ints
    """Its number of steps, ``(M,)``."""
    reward: Floats
    """Σ_p γ_step^p · r_{start + p}, ``(M,)``."""
    terminated: Bools
    """The episode ended by itself at its last step: nothing comes after, ``(M,)``."""
    continues: Bools
    """The next interval in this table goes on with the same episode, ``(M,)``."""

    @property
    def end(self) -> Ints:
        """Its last step, ``(M,)``."""
        return self.start + self.length - 1


def cut_intervals(assigned: Bools, rewards: Floats, terminated: Bools, truncated: Bools, gamma: float) -> Intervals:
    """Read the intervals off a rollout.

    Args:
        assigned: Skills were drawn before this step, ``(T, E)``; true in the first row.
        rewards: Team rewards, ``(T, E)``.
        terminated: The episode ended by itself in this step, ``(T, E)``.
        truncated: The episode was cut in this step, ``(T, E)``.
        gamma: Discount of one environment step.

    Raises:
        ValueError: An environment starts without skills, or goes on with old skills in a new episode.
    """
    dones = terminated | truncated
    if not assigned[0].all():
        raise ValueError(f"environments {np.flatnonzero(~assigned[0]).tolist()} start the rollout without new skills")
    stale = dones[:-1] & ~assigned[1:]
    if stale.any():
        step, env = np.argwhere(stale)[0]
        raise ValueError(f"environment {env} began an episode at step {step + 1} with the skills of the one before")
    n_steps = assigned.shape[0]
    env, start = np.nonzero(assigned.T)
    following = np.append(start[1:], n_steps)
    following[np.append(env[1:] != env[:-1], True)] = n_steps
    length = following - start
    discounts = gamma ** _steps_since(assigned)
    sums = np.add.reduceat((rewards * discounts).T.reshape(-1), env * n_steps + start)
    end = start + length - 1
    return Intervals(
        env=env,
        start=start,
        length=length,
        reward=sums,
        terminated=terminated[end, env],
        continues=(following < n_steps) & ~dones[end, env],
    )


def ever_within(flags: Bools, intervals: Intervals) -> Bools:
    """Whether a flag was true in any step of each interval, ``(M, n)`` from ``(T, E, n)``."""
    n_steps, _, n_flags = flags.shape
    rows = flags.transpose(1, 0, 2).reshape(-1, n_flags)
    found: Bools = np.logical_or.reduceat(rows, intervals.env * n_steps + intervals.start, axis=0)
    return found


def _steps_since(starts: Bools) -> Ints:
    """Step since the last true row, ``(T, E)``; the first row counts as one."""
    rows = np.arange(starts.shape[0])[:, None]
    last: Ints = np.maximum.accumulate(np.where(starts, rows, 0), axis=0)
    return rows - last


def interval_advantages(
    intervals: Intervals, values: Floats, following: Floats, discount: Floats, lam: float
) -> Floats:
    """Generalised advantage estimation over intervals of varying length.

    δ_m = R_m + γ_m·V'_m − V_m and A_m = δ_m + γ_m·λ·A_{m+1} while the episode goes on, with γ_m = γ_step^length.

    Args:
        intervals: M intervals.
        values: V_h at their starts, ``(M, tokens)``.
        following: V_h after their ends, 0 where terminated, ``(M, tokens)``.
        discount: γ_m, ``(M,)``.
        lam: λ.
    """
    delta = intervals.reward[:, None] + discount[:, None] * following - values
    carry = np.where(intervals.continues, discount * lam, 0.0)
    advantages = np.zeros_like(delta)
    running = np.zeros(delta.shape[1])
    for index in range(delta.shape[0] - 1, -1, -1):
        running = delta[index] + carry[index] * running
        advantages[index] = running
    return advantages


@dataclass(frozen=True, kw_only=True)
class Chunks:
    """Sequences of at most L steps within one episode, for truncated back-propagation through time; R of them."""

    env: Ints
    """``(R,)``."""
    start: Ints
    """``(R,)``."""
    step: Ints
    """Step of each place of each sequence, clipped to the rollout, ``(L, R)``."""
    valid: Bools
    """Whether a place holds a step of the sequence or padding, ``(L, R)``."""


def cut_chunks(episode_starts: Bools, length: int) -> Chunks:
    """Cut each environment's steps at episode starts and then every ``length`` steps.

    Args:
        episode_starts: ``(T, E)``.
        length: L.
    """
    n_steps = episode_starts.shape[0]
    begins = _steps_since(episode_starts) % length == 0
    env, start = np.nonzero(begins.T)
    following = np.append(start[1:], n_steps)
    following[np.append(env[1:] != env[:-1], True)] = n_steps
    sizes = following - start
    places = np.arange(int(sizes.max()))[:, None]
    step = np.minimum(start + places, n_steps - 1)
    return Chunks(env=env, start=start, step=step, valid=places < sizes)

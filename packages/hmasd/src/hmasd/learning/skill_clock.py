"""Timing of skills: clocks, the intervals between choices, their advantages, and sequences for the GRU.

Each environment has its own clock, which starts with its episode: a skill ends after k steps, at the end of the
episode, or at the barrier, where the policy that chose it is updated. The steps under one choice are an *interval*,
one sample of the high level.
"""

from dataclasses import dataclass

import numpy as np

from apexrl.arrays import Bools, Floats, Ints


class SkillClock:
    """Age of the current skills in each environment.

    Args:
        num_envs: Number of environments.
        skill_steps: k.
    """

    def __init__(self, num_envs: int, skill_steps: int) -> None:
        self._k = skill_steps
        self._age = np.full(num_envs, skill_steps, dtype=np.int64)

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

    def barrier(self) -> None:
        """End all skills, because the policy version changes."""
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
    """The episode terminated at its last step, so the value after it is 0, ``(M,)``."""
    continues: Bools
    """The next interval in this table is of the same episode, ``(M,)``."""

    @property
    def end(self) -> Ints:
        """Its last step, ``(M,)``."""
        return self.start + self.length - 1


def cut_intervals(assigned: Bools, rewards: Floats, terminated: Bools, truncated: Bools, gamma: float) -> Intervals:
    """Derive the intervals of a rollout.

    Args:
        assigned: Skills were chosen before this step, ``(T, E)``; true in the first row.
        rewards: Team rewards, ``(T, E)``.
        terminated: The episode terminated in this step, ``(T, E)``.
        truncated: The episode was truncated in this step, ``(T, E)``.
        gamma: Discount of one environment step.

    Raises:
        ValueError: An environment starts without skills, or keeps old skills in a new episode.
    """
    dones = terminated | truncated
    if not assigned[0].all():
        raise ValueError(f"environments {np.flatnonzero(~assigned[0]).tolist()} start the rollout without new skills")
    stale = dones[:-1] & ~assigned[1:]
    if stale.any():
        step, env = np.argwhere(stale)[0]
        raise ValueError(f"environment {env} began an episode at step {step + 1} with the skills of the one before")
    n_steps = assigned.shape[0]
    env, start = np.nonzero(assigned.T)  # (M,) each, ordered by environment and time
    stop = _next_start(env, start, n_steps)
    length = stop - start
    # rewards discounted from the start of their interval, summed per interval in environment-major order
    discounts = gamma ** _steps_since(assigned)
    sums = np.add.reduceat((rewards * discounts).T.reshape(-1), env * n_steps + start)
    end = start + length - 1
    return Intervals(
        env=env,
        start=start,
        length=length,
        reward=sums,
        terminated=terminated[end, env],
        continues=(stop < n_steps) & ~dones[end, env],
    )


def ever_within(flags: Bools, intervals: Intervals) -> Bools:
    """Return whether a flag was true in any step of each interval, ``(M, n)`` from ``(T, E, n)``."""
    n_steps, _, n_flags = flags.shape
    rows = flags.transpose(1, 0, 2).reshape(-1, n_flags)  # (E·T, n)
    any_true: Bools = np.logical_or.reduceat(rows, intervals.env * n_steps + intervals.start, axis=0)
    return any_true


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
    delta = intervals.reward[:, None] + discount[:, None] * next_values - values  # (M, tokens)
    # (M,) weight of the next interval's advantage; 0 at the end of an episode or of the rollout
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

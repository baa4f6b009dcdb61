"""Env groups in an executor's workers: every group hands in its fragment, then the barrier opens.

How environments are divided into groups is configuration. How many workers step them is not: the same groups give the
same batch inline, in processes and on Ray.
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Protocol

from apexrl.algorithms.actor_critic import PolicySnapshot
from apexrl.collect.env_group import AnyVecEnv, EnvGroup, consecutive_ranges
from apexrl.execution.actors import ActorLostError
from apexrl.execution.executor import Executor
from apexrl.storage.rollout import Fragment

logger = logging.getLogger(__name__)

EnvFactory = Callable[[], AnyVecEnv]


class Groups(Protocol):
    """Where the env groups live."""

    @property
    def num_envs(self) -> int:
        """Environments in all groups."""

    def collect(self, snapshot: PolicySnapshot, num_steps: int, sequence_length: int) -> Sequence[Fragment]:
        """Collect one fragment per group."""

    def state_dicts(self) -> list[dict[str, Any]]:
        """Return the state of each group."""

    def load_state_dicts(self, states: Sequence[dict[str, Any]], snapshot: PolicySnapshot) -> bool:
        """Restore states; return whether every group continues exactly."""

    def close(self) -> None:
        """Close the environments."""


class ExecutorGroups:
    """Groups that live in an executor's workers.

    When a worker dies, its groups are rebuilt, all groups return to the last barrier, and the rollout is collected
    again: the batch is the same as if nothing had happened, if the environments can restore their state.

    Args:
        executor: Inline, processes or Ray.
        make_envs: One function per group that makes its environments; importable by workers.
        group_sizes: Environments per group.
        seed: Seed of the run.
        retries: How often a rollout is collected again after workers died.
    """

    def __init__(
        self,
        executor: Executor,
        make_envs: Sequence[EnvFactory],
        group_sizes: Sequence[int],
        seed: int,
        retries: int = 2,
    ) -> None:
        self._ranges = consecutive_ranges(group_sizes)
        factory = partial(_build_group, make_envs=tuple(make_envs), ranges=tuple(self._ranges), seed=seed)
        self._actors = executor.actors(factory, range(len(make_envs)))
        self._retries = retries
        self._states: list[dict[str, Any]] | None = None

    @property
    def num_envs(self) -> int:
        """Environments in all groups."""
        return self._ranges[-1].stop

    def collect(self, snapshot: PolicySnapshot, num_steps: int, sequence_length: int) -> list[Fragment]:
        """Collect one fragment per group, all in parallel."""
        if self._states is None:
            self._states = self._actors.call("state_dict")
        for attempt in range(self._retries + 1):
            try:
                fragments: list[Fragment] = self._actors.call("collect", snapshot, num_steps, sequence_length)
                self._states = self._actors.call("state_dict")
            except ActorLostError as error:
                if attempt == self._retries:
                    raise
                logger.warning("collecting policy version %d again: %s", snapshot.version, error)
                self._actors.rebuild()
                self._load(self._states, snapshot)
            else:
                return fragments
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _load(self, states: Sequence[dict[str, Any]], snapshot: PolicySnapshot) -> bool:
        arguments: dict[Hashable, tuple[Any, ...]] = {
            index: (state, snapshot.policy, snapshot.version) for index, state in enumerate(states)
        }
        exact = all(self._actors.map("load_state_dict", arguments).values())
        if not exact:
            logger.warning(
                "environments without state_dict start fresh episodes: the rollout differs from the lost one"
            )
        return exact

    def state_dicts(self) -> list[dict[str, Any]]:
        """Return the state of each group at the last barrier."""
        if self._states is None:
            self._states = self._actors.call("state_dict")
        return self._states

    def load_state_dicts(self, states: Sequence[dict[str, Any]], snapshot: PolicySnapshot) -> bool:
        """Restore states; return whether every group continues exactly."""
        self._states = list(states)
        return self._load(states, snapshot)

    def close(self) -> None:
        """Close the environments and end the workers."""
        self._actors.call("close")
        self._actors.close()


def _build_group(index: int, make_envs: tuple[EnvFactory, ...], ranges: tuple[range, ...], seed: int) -> EnvGroup:
    return EnvGroup(make_envs[index](), ranges[index], seed)

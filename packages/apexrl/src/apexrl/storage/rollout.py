"""Preallocated storage of one rollout; it accepts fragments of one policy version only, each exactly once."""

import torch
from torch import Tensor

from apexrl.storage.fragment import EpisodeTable, Fragment


class MixedVersionsError(RuntimeError):
    """A fragment was made by another policy version than the one this rollout belongs to."""


class IncompleteRolloutError(RuntimeError):
    """A rollout is missing samples, or was offered samples that it does not expect."""


class RolloutStorage:
    """Time-major tensors ``[T, N, ...]`` that fragments are copied into, ordered by env id.

    ====================  ==========================================================================
    step field            meaning
    ====================  ==========================================================================
    observations          what the actor saw
    critic_observations   what the critic saw; absent when it sees what the actor sees
    actions               what was done
    log_probs             log π(a|s) under the policy that acted
    values                V(s), in units of reward
    following             V of what came after: 0 at a termination, V(final observation) at a time-out
    rewards               reward of the step
    dones                 an episode ended at the step
    episode_starts        the observation was the first of an episode; recurrent policies only
    action_masks          legal actions; only with environments that mask
    valid                 the sample may be learned from; absent when all may
    ====================  ==========================================================================

    Args:
        num_steps: T, steps per environment and rollout.
        num_envs: N.
        device: Where learning happens.
    """

    def __init__(self, num_steps: int, num_envs: int, device: torch.device | str = "cpu") -> None:
        self.num_steps = num_steps
        self.num_envs = num_envs
        self.device = torch.device(device)
        self.policy_version: int | None = None
        self.steps: dict[str, Tensor] = {}
        self.borders: dict[str, Tensor] = {}
        self._fragments: dict[int, Fragment] = {}

    def begin(self, policy_version: int) -> None:
        """Forget what is stored and expect fragments of ``policy_version``."""
        self.policy_version = policy_version
        self._fragments = {}

    def add(self, fragment: Fragment) -> None:
        """Copy a fragment to its rows.

        Raises:
            MixedVersionsError: It was made by another policy version.
            IncompleteRolloutError: It has another length, or environments that are unknown or already stored.
        """
        self._check(fragment)
        columns = slice(fragment.env_ids.start, fragment.env_ids.stop)
        for name, values in fragment.steps.items():
            self._field(self.steps, name, values)[:, columns] = values
        for name, values in fragment.borders.items():
            self._field(self.borders, name, values)[:, columns] = values
        self._fragments[fragment.env_ids.start] = fragment

    def _check(self, fragment: Fragment) -> None:
        if fragment.policy_version != self.policy_version:
            raise MixedVersionsError(
                f"a fragment of envs {fragment.env_ids.start}..{fragment.env_ids.stop - 1} was made by policy version "
                f"{fragment.policy_version}, but this rollout belongs to version {self.policy_version}; on-policy "
                "learning must not mix versions: collect the fragment again under the current snapshot"
            )
        steps = len(fragment.steps["rewards"])
        if steps != self.num_steps:
            raise IncompleteRolloutError(
                f"a fragment has {steps} steps, the rollout takes exactly {self.num_steps} per environment"
            )
        taken = {env for other in self._fragments.values() for env in other.env_ids}
        wrong = [env for env in fragment.env_ids if env in taken or env >= self.num_envs]
        if wrong:
            raise IncompleteRolloutError(
                f"environments {wrong} are stored already or outside 0..{self.num_envs - 1}; hand in each of them once"
            )

    def _field(self, fields: dict[str, Tensor], name: str, values: Tensor) -> Tensor:
        shape = (values.shape[0], self.num_envs, *values.shape[2:])
        stored = fields.get(name)
        if stored is None or stored.shape != shape or stored.dtype != values.dtype:
            stored = fields[name] = torch.empty(shape, dtype=values.dtype, device=self.device)
        return stored

    @property
    def num_samples(self) -> int:
        """Environment steps stored: exactly T × N in a complete rollout."""
        return self.num_steps * sum(len(fragment.env_ids) for fragment in self._fragments.values())

    def finish(self) -> None:
        """Check that the rollout is complete, and drop fields that none of its fragments brought.

        Raises:
            IncompleteRolloutError: Samples are missing, or fragments brought different fields.
        """
        if self.num_samples != self.num_steps * self.num_envs:
            raise IncompleteRolloutError(
                f"the rollout holds {self.num_samples} of {self.num_steps} steps × {self.num_envs} envs "
                f"= {self.num_steps * self.num_envs} samples; every env group hands in its fragment before the update"
            )
        for fields, kind in ((self.steps, "steps"), (self.borders, "borders")):
            brought = [getattr(fragment, kind).keys() for fragment in self._fragments.values()]
            if any(names != brought[0] for names in brought):
                raise IncompleteRolloutError(
                    f"env groups brought different fields ({kind}: {[sorted(b) for b in brought]})"
                )
            for name in fields.keys() - brought[0]:
                del fields[name]

    def flat(self, name: str) -> Tensor:
        """Return a step field as samples ``[T·N, ...]``, a view."""
        return self.steps[name].flatten(0, 1)

    def episodes(self) -> EpisodeTable:
        """Return episodes that ended in this rollout, ordered by env group."""
        return EpisodeTable.concatenate([self._fragments[start].episodes for start in sorted(self._fragments)])

    def log(self) -> dict[str, float]:
        """Compute means of ``extras["log"]`` over all groups, weighted by the steps that reported them."""
        totals: dict[str, float] = {}
        counts: dict[str, int] = {}
        for start in sorted(self._fragments):
            fragment = self._fragments[start]
            for name, mean in fragment.log.items():
                count = fragment.log_counts[name]
                totals[name] = totals.get(name, 0.0) + mean * count
                counts[name] = counts.get(name, 0) + count
        return {name: total / counts[name] for name, total in totals.items()}

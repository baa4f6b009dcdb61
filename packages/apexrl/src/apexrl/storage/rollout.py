"""One rollout: what env groups record, the fragments they hand in, and the storage that puts them together.

``StepBuffers`` and ``EpisodeTracker`` belong to an env group; a ``Fragment`` is what it hands in at the barrier;
``RolloutStorage`` accepts fragments of one policy version only, each exactly once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from apexrl.arrays import Bools, Floats, Indices, Ints
from apexrl.runs.errors import DivergedError


@dataclass(frozen=True, kw_only=True)
class EpisodeTable:
    """Episodes that ended within a fragment, in the order of their last steps; one entry per episode.

    Attributes:
        returns: Undiscounted sums of rewards over the whole episode, also over earlier rollouts [E].
        lengths: Steps of the whole episode [E].
        components: Sums of each named reward component, NaN if no step of the episode had it [E].
        successes: 1 if the environment called the episode a success, 0 if not, NaN if it did not say [E].
    """

    returns: Floats
    lengths: Ints
    components: dict[str, Floats] = field(default_factory=dict)
    successes: Floats | None = None

    def __len__(self) -> int:
        return len(self.returns)

    @staticmethod
    def concatenate(tables: "list[EpisodeTable]") -> "EpisodeTable":
        """Join several tables; a component that a table does not know counts as missing there."""
        names = dict.fromkeys(name for table in tables for name in table.components)
        unknown = [np.full(len(table), np.nan) for table in tables]
        successes = [none if t.successes is None else t.successes for t, none in zip(tables, unknown, strict=True)]
        return EpisodeTable(
            returns=np.concatenate([table.returns for table in tables]),
            lengths=np.concatenate([table.lengths for table in tables]),
            components={
                name: np.concatenate([t.components.get(name, none) for t, none in zip(tables, unknown, strict=True)])
                for name in names
            },
            successes=None if all(table.successes is None for table in tables) else np.concatenate(successes),
        )

    def last(self, count: int) -> "EpisodeTable":
        """Return the newest episodes, ``count`` at most."""
        return EpisodeTable(
            returns=self.returns[-count:],
            lengths=self.lengths[-count:],
            components={name: values[-count:] for name, values in self.components.items()},
            successes=None if self.successes is None else self.successes[-count:],
        )


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """T steps of ``len(env_ids)`` environments, all made by one policy version.

    Attributes:
        policy_version: Version of the snapshot that chose every action in it.
        env_ids: Global indices of its environments.
        steps: Tensors per step, ``[T, n, ...]``; see :class:`apexrl.storage.rollout.RolloutStorage` for the names.
        borders: Tensors per environment or per sequence, e.g. memories at sequence starts ``[T / L, n, ...]``.
        episodes: Episodes that ended in it.
        log: Means of what the environments reported in ``extras["log"]``.
        log_counts: How many steps each entry of ``log`` is a mean of.
    """

    policy_version: int
    env_ids: range
    steps: dict[str, Tensor]
    borders: dict[str, Tensor]
    episodes: EpisodeTable
    log: dict[str, float]
    log_counts: dict[str, int]


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

    def fill(self, policy_version: int, fragments: Iterable[Fragment]) -> None:
        """Store a whole rollout of one policy version.

        Raises:
            MixedVersionsError: A fragment was made by another policy version.
            IncompleteRolloutError: A fragment has the wrong size, or samples are missing.
        """
        self.begin(policy_version)
        for fragment in fragments:
            self.add(fragment)
        self.finish()

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


def check_finite(fields: Mapping[str, Tensor], env_ids: Sequence[int], source: str) -> None:
    """Refuse a rollout with NaN or infinities before anything learns from it.

    Args:
        fields: Tensors ``[T, n, ...]`` by name.
        env_ids: Numbers of the n environments.
        source: Who returned them, for the message.

    Raises:
        DivergedError: It names the environment, the step and the key.
    """
    for name, values in fields.items():
        if values.is_floating_point() and not bool(torch.isfinite(values).all()):
            t, env = (~torch.isfinite(values)).nonzero()[0, :2].tolist()
            raise not_finite(name, env_ids[env], t, values[t, env], source)


def not_finite(name: str, env: int, step: int, values: Tensor, source: str) -> DivergedError:
    """Return the error for a value of a rollout that is NaN or infinite."""
    shown = [round(value, 4) for value in values.flatten()[:8].tolist()]
    whose = "the actor's outputs" if name == "outputs" else f"what {source} returned as {name}"
    return DivergedError(
        f"{name} of environment {env} at step {step} of the rollout: {shown} is not finite",
        f"{whose} must be finite numbers, because one bad number spoils all weights",
        "the networks have diverged: lower the learning rate, and resume from the last checkpoint"
        if name == "outputs"
        else "run apexrl.check_env, and bound what the environment computes; checkpoints before it are sound",
    )


class StepBuffers:
    """Tensors ``[T, n, ...]`` by name; each comes into being when it is first written.

    Writing copies, so that an environment that reuses its own buffers cannot change what was stored. A field that a
    step does not bring holds its default there, and a field that no step of a rollout brings is absent.

    Args:
        num_steps: T.
    """

    def __init__(self, num_steps: int) -> None:
        self.num_steps = num_steps
        self._rows: dict[str, tuple[Tensor, ...]] = {}
        self._fields: dict[str, Tensor] = {}
        self._brought: dict[str, Bools] = {}

    def begin(self) -> None:
        """Forget which optional fields the last rollout brought."""
        self._brought = {}

    def put(self, name: str, step: int, values: Tensor) -> None:
        """Store the values ``[n, ...]`` of a step; the field is brought by every step."""
        rows = self._rows.get(name)
        if rows is None:
            rows = self._allocate(name, values)
        rows[step].copy_(values)

    def put_optional(self, name: str, step: int, values: Tensor, default: float | bool) -> None:
        """Store the values ``[n, ...]`` of a step; steps that do not bring the field hold ``default``."""
        if name not in self._brought:
            self._brought[name] = np.zeros(self.num_steps, dtype=bool)
            if name not in self._rows:
                self._allocate(name, values)
            self._fields[name].fill_(default)
        self._brought[name][step] = True
        self._rows[name][step].copy_(values)

    def _allocate(self, name: str, values: Tensor) -> tuple[Tensor, ...]:
        with torch.inference_mode(False):  # what is stored here is learned from later
            stored = torch.zeros((self.num_steps, *values.shape), dtype=values.dtype, device=values.device)
            self._fields[name] = stored
            self._rows[name] = rows = stored.unbind(0)
        return rows

    def take(self, required: tuple[str, ...]) -> dict[str, Tensor]:
        """Return the fields of the rollout that was recorded last: required ones, and the optional ones brought."""
        return {name: self._fields[name] for name in (*required, *self._brought)}

    def brought(self, name: str) -> Bools:
        """Return which steps brought an optional field ``[T]``."""
        return self._brought[name]


class EpisodeTracker:
    """Sums of the episodes that are under way, one per environment.

    Args:
        num_envs: n, environments in the group.
    """

    def __init__(self, num_envs: int) -> None:
        self._sums: dict[str, Floats] = {"reward": np.zeros(num_envs), "length": np.zeros(num_envs)}

    def advance(
        self,
        rewards: Tensor,
        dones: Tensor,
        counted: Tensor | None,
        components: dict[str, tuple[Tensor, Bools]],
        successes: Tensor | None = None,
    ) -> EpisodeTable:
        """Add the steps of a fragment and return the episodes that ended in it.

        Args:
            rewards: Reward of each step ``[T, n]``.
            dones: An episode ended at the step ``[T, n]``.
            counted: False for steps that were only a reset ``[T, n]``; None if there are none.
            components: Named parts of the reward, each ``[T, n]`` with 0 where absent, and which steps had it ``[T]``.
            successes: Whether the episode that ended at the step was a success, NaN if unknown ``[T, n]``.
        """
        ones = torch.ones_like(rewards) if counted is None else counted.to(rewards.dtype)
        series = {"reward": rewards * ones, "length": ones}
        # A component that only earlier fragments had still belongs to the episodes that go on.
        earlier = [key.removeprefix("part/") for key in self._sums if key.startswith("part/")]
        names = list(dict.fromkeys([*components, *earlier]))
        for name in names:
            values, brought = components.get(name, (torch.zeros_like(ones), np.zeros(len(ones), dtype=bool)))
            series[f"part/{name}"] = values * ones
            series[f"steps/{name}"] = torch.from_numpy(brought)[:, None].to(ones.dtype).to(ones.device) * ones
        envs, times = np.nonzero(dones.cpu().numpy().T)  # env-major, so that neighbours belong to one environment
        order = np.lexsort((envs, times))
        totals = {name: self._close(name, values, envs, times)[order] for name, values in series.items()}
        known = {name: np.where(totals[f"steps/{name}"] > 0, totals[f"part/{name}"], np.nan) for name in names}
        at_ends = None if successes is None else successes.cpu().numpy()[times, envs][order].astype(np.float64)
        return EpisodeTable(
            returns=totals["reward"],
            lengths=totals["length"].astype(np.int64),
            components={name: part for name, part in known.items() if name in components or np.isfinite(part).any()},
            successes=at_ends,
        )

    def _close(self, name: str, values: Tensor, envs: Indices, times: Indices) -> Floats:
        """Sum one series over each ended episode; the rest is carried to the next rollout."""
        running = np.cumsum(values.cpu().numpy().astype(np.float64), axis=0)  # [T, n] sums since the fragment's start
        carried = self._sums.get(name, np.zeros(running.shape[1]))  # [n] sums from earlier fragments
        ends = running[times, envs]  # [E] running sum at the end of each episode
        first = np.ones(len(envs), dtype=bool)  # [E] first episode of its environment in this fragment
        first[1:] = envs[1:] != envs[:-1]
        before = np.where(first, -carried[envs], np.roll(ends, 1))  # [E] running sum at the start of each episode
        left = running[-1] + carried  # [n] environments without an end carry everything on
        last = np.ones(len(envs), dtype=bool)  # [E] last episode of its environment in this fragment
        last[:-1] = first[1:]
        left[envs[last]] = (running[-1, envs] - ends)[last]  # the others carry what came after their last end
        self._sums[name] = left
        totals: Floats = ends - before
        return totals

    def restart(self) -> None:
        """Forget the episodes under way, because the environments were reset."""
        self._sums = {name: np.zeros_like(values) for name, values in self._sums.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the sums under way."""
        return {name: torch.from_numpy(values.copy()) for name, values in self._sums.items()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore sums from :meth:`state_dict`."""
        self._sums = {name: values.numpy().copy() for name, values in state.items()}

"""What a group of environments hands in at the barrier: steps, borders and finished episodes of one policy version."""

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from apexrl.arrays import Floats, Ints


@dataclass(frozen=True, kw_only=True)
class EpisodeTable:
    """Episodes that ended within a fragment, in the order of their last steps; one entry per episode.

    Attributes:
        returns: Undiscounted sums of rewards over the whole episode, also over earlier rollouts [E].
        lengths: Steps of the whole episode [E].
        components: Sums of each named reward component [E].
    """

    returns: Floats
    lengths: Ints
    components: dict[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.returns)

    @staticmethod
    def concatenate(tables: "list[EpisodeTable]") -> "EpisodeTable":
        """Join several tables; a component that a table does not know counts as missing there."""
        names = dict.fromkeys(name for table in tables for name in table.components)
        return EpisodeTable(
            returns=np.concatenate([table.returns for table in tables]),
            lengths=np.concatenate([table.lengths for table in tables]),
            components={
                name: np.concatenate([t.components.get(name, np.full(len(t), np.nan)) for t in tables])
                for name in names
            },
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

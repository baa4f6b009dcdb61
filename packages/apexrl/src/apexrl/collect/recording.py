"""What an env group records while it steps: values per step, and totals of the episodes under way."""

import numpy as np
import torch
from torch import Tensor

from apexrl.arrays import Floats, Indices
from apexrl.storage.fragment import EpisodeTable


class StepBuffers:
    """Tensors ``[T, n, ...]`` by name; each comes into being when it is first written.

    Writing copies, so that an environment that reuses its own buffers cannot change what was stored.

    Args:
        num_steps: T.
    """

    def __init__(self, num_steps: int) -> None:
        self.num_steps = num_steps
        self.fields: dict[str, Tensor] = {}
        self._rows: dict[str, tuple[Tensor, ...]] = {}

    def put(self, name: str, step: int, values: Tensor) -> None:
        """Store the values ``[n, ...]`` of a step."""
        rows = self._rows.get(name)
        if rows is None:
            rows = self._allocate(name, values)
        rows[step].copy_(values)

    def _allocate(self, name: str, values: Tensor) -> tuple[Tensor, ...]:
        with torch.inference_mode(False):  # what is stored here is learned from later
            field = torch.zeros((self.num_steps, *values.shape), dtype=values.dtype, device=values.device)
            self.fields[name] = field
            self._rows[name] = rows = field.unbind(0)
        return rows


class EpisodeTracker:
    """Sums of the episodes that are under way, one per environment.

    Args:
        num_envs: n, environments in the group.
    """

    def __init__(self, num_envs: int) -> None:
        self._sums: dict[str, Floats] = {"reward": np.zeros(num_envs), "length": np.zeros(num_envs)}

    def advance(
        self, rewards: Tensor, dones: Tensor, counted: Tensor | None, components: dict[str, Tensor]
    ) -> EpisodeTable:
        """Add the steps of a fragment and return the episodes that ended in it.

        Args:
            rewards: Reward of each step ``[T, n]``.
            dones: An episode ended at the step ``[T, n]``.
            counted: False for steps that were only a reset ``[T, n]``; None if there are none.
            components: Named parts of the reward, each ``[T, n]``.
        """
        ones = torch.ones_like(rewards) if counted is None else counted.to(rewards.dtype)
        series = {"reward": rewards * ones, "length": ones} | {f"part/{k}": v * ones for k, v in components.items()}
        envs, times = np.nonzero(dones.cpu().numpy().T)  # env-major, so that neighbours belong to one environment
        order = np.lexsort((envs, times))
        totals = {name: self._close(name, values, envs, times)[order] for name, values in series.items()}
        return EpisodeTable(
            returns=totals["reward"],
            lengths=totals["length"].astype(np.int64),
            components={name: totals[f"part/{name}"] for name in components},
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

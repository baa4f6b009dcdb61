"""Preallocated buffers of a fragment: one copy per value and step, and no allocation after the first rollout."""

import torch
from torch import Tensor


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

"""Metrics as TensorBoard events."""

from __future__ import annotations

import os
from collections.abc import Mapping

from apexrl.runs.atomic import StrPath, ensure_folder


class TensorBoardSink:
    """Writes scalars for ``tensorboard --logdir``.

    Args:
        folder: Where the event files go; each start of a run adds one.
        after_step: The step a resumed run goes on from; TensorBoard hides what earlier starts logged after it.
            None hides all of it.
    """

    def __init__(self, folder: StrPath, after_step: int | None = None) -> None:
        # Imported here: it takes longer than everything else in this package together.
        from torch.utils.tensorboard import SummaryWriter

        ensure_folder(folder)
        purge_step = 0 if after_step is None else after_step + 1
        self._writer = SummaryWriter(os.fspath(folder), purge_step=purge_step)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add one scalar per metric."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._writer.flush()

    def close(self) -> None:
        """Flush and close; a second call does nothing."""
        self._writer.close()

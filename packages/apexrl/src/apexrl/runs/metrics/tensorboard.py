"""Metrics as TensorBoard events."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from apexrl.runs.atomic import StrPath, ensure_folder, write_failure


class TensorBoardSink:
    """Writes scalars for ``tensorboard --logdir``.

    Args:
        folder: Where the event files go; each start of a run adds one.
        after_step: The step a resumed run continues from; TensorBoard hides what earlier starts logged after it.
            None hides all of it.
    """

    def __init__(self, folder: StrPath, after_step: int | None = None) -> None:
        # Imported here: it takes longer than everything else in this package together.
        from torch.utils.tensorboard import SummaryWriter

        ensure_folder(folder)
        self._folder = folder
        purge_step = 0 if after_step is None else after_step + 1
        with self._explained():
            self._writer = SummaryWriter(os.fspath(folder), purge_step=purge_step)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add one scalar per metric."""
        with self._explained():
            for name, value in metrics.items():
                self._writer.add_scalar(name, value, step)

    def flush(self) -> None:
        """Hand everything to the operating system."""
        with self._explained():
            self._writer.flush()

    def close(self) -> None:
        """Flush and close the event file."""
        with self._explained():
            self._writer.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise write_failure(error, self._folder) from error

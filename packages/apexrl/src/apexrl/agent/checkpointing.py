"""How a runner saves and loads checkpoints."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apexrl.configuration import to_mapping
from apexrl.runs.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointStore,
    Retention,
    Schema,
    load_checkpoint,
    save_checkpoint,
)
from apexrl.runs.errors import SchemaMismatchError
from apexrl.runs.rng import capture_rng

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 1
Restore = Callable[[Mapping[str, Any]], None]


class Checkpointing:
    """Named checkpoints and periodic ones, all with the random-number states of the process.

    Args:
        folder: ``save_dir``; None turns periodic saving off, and relative names are then resolved in the current
            folder.
        schema_name: What kind of state it is.
        cfg: The configuration that goes into every checkpoint.
        keep_last: How many periodic checkpoints stay, beside the best one evaluated; None keeps all.
    """

    def __init__(self, folder: Path | None, schema_name: str, cfg: Any, keep_last: int | None) -> None:  # noqa: ANN401
        self.folder = folder
        self._schema = Schema(name=schema_name, version=SCHEMA_VERSION)
        self._config = to_mapping(cfg)
        self._store: CheckpointStore | None = None
        if folder is not None:
            retention = Retention(keep_last=keep_last, metric="eval/mean_reward")
            self._store = CheckpointStore(folder, self._schema, config=self._config, retention=retention)

    def save_periodic(self, iteration: int, state: dict[str, Any], metrics: Mapping[str, float]) -> None:
        """Write ``checkpoint_<iteration>.pt``, and remove what need not stay."""
        if self._store is not None:
            self._store.save(iteration, state, metrics=metrics)

    def save_interrupted(self, iteration: int, state: dict[str, Any], metrics: Mapping[str, float]) -> None:
        """Write the checkpoint that a signal asked for."""
        if self._store is None:
            logger.warning("stopped at iteration %d without saving: there is no save_dir and no log_dir", iteration)
            return
        logger.info("saved %s", self._store.save(iteration, state, metrics=metrics))

    def save_named(self, name: str | Path, iteration: int, state: dict[str, Any], metrics: Mapping[str, float]) -> Path:
        """Write a checkpoint under a name of the user's choice."""
        path = self.resolve(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint = Checkpoint(
            schema=self._schema,
            step=iteration,
            state=state,
            config=self._config,
            metrics=dict(metrics),
            rng=capture_rng(),
        )
        save_checkpoint(path, checkpoint)
        return path

    def load_named(self, name: str | Path, restore: Restore) -> None:
        """Load a checkpoint and restore the run from it."""
        path = self.resolve(name)
        self._restore(load_checkpoint(path, self._schema), str(path), restore)

    def load_latest(self, restore: Restore) -> bool:
        """Restore the run from the newest undamaged checkpoint, if there is one; return whether there was."""
        checkpoint = None if self._store is None else self._store.latest()
        if checkpoint is None:
            return False
        self._restore(checkpoint, f"iteration {checkpoint.step} in {self.folder}", restore)
        return True

    def _restore(self, checkpoint: Checkpoint, source: str, restore: Restore) -> None:
        changed = [
            f"{key}: {checkpoint.config.get(key)!r} then, {self._config.get(key)!r} now"
            for key in sorted(checkpoint.config.keys() | self._config.keys())
            if checkpoint.config.get(key) != self._config.get(key)
        ]
        if changed:
            logger.warning("checkpoint %s was made with another configuration (%s)", source, "; ".join(changed))
        try:
            restore(checkpoint.state)
        except (RuntimeError, ValueError, KeyError) as error:
            raise SchemaMismatchError(
                f"checkpoint {source} does not fit this runner: {error}",
                "networks, normalisers and optimiser must have the shapes that were saved",
                "build the runner with the same classes and configuration, or load another checkpoint",
            ) from error
        checkpoint.restore_rng()

    def resolve(self, name: str | Path) -> Path:
        """Return the path of a name: absolute as it is, relative under ``save_dir``."""
        path = Path(name)
        return path if path.is_absolute() or self.folder is None else self.folder / path

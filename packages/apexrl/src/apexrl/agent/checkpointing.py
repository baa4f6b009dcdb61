"""How a runner saves and loads checkpoints, and whose run a folder holds."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apexrl.agent.learner import Learner
from apexrl.runs.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointStore,
    Retention,
    Schema,
    fitting,
    load_checkpoint,
    save_checkpoint,
)
from apexrl.runs.errors import CheckpointDamagedError, CheckpointMissingError, DivergedError
from apexrl.runs.rng import capture_rng
from apexrl.runs.run_dir import RunDir, RunRecord
from apexrl.runs.session import Session

logger = logging.getLogger(__name__)

Restore = Callable[[Mapping[str, Any]], None]


class Checkpointing:
    """Named checkpoints and periodic ones, all with the random-number states of the process.

    Before the first file is written, the folder becomes the run's: files of another run are moved to ``earlier/``.

    Args:
        learner: Whose state is saved.
        folder: Where; None turns periodic saving off, and relative names are then resolved in the current folder.
        retention: Which periodic checkpoints stay.

    Attributes:
        run_id: Identity of the run in its folders; None before it has one.
        is_resumed: Whether the run continues what a folder holds.
        saved_iteration: The iteration of the newest periodic checkpoint of this process.
        metrics: Of the latest evaluation, saved with every checkpoint and restored from it.
    """

    def __init__(self, learner: Learner, folder: Path | None, retention: Retention) -> None:
        self.folder = folder
        self.run_id: str | None = None
        self.is_resumed = False
        self.saved_iteration: int | None = None
        self.metrics: Mapping[str, float] = {}
        self._learner = learner
        self._schema = Schema(name=learner.name, version=learner.schema_version)
        self._session: Session | None = None
        self._diverged: DivergedError | None = None
        self._final_is_damaged = False
        self._store: CheckpointStore | None = None
        if folder is not None:
            self._store = CheckpointStore(
                folder,
                self._schema,
                pattern=learner.files.checkpoint,
                config=learner.config,
                retention=retention,
            )

    def begin(self, session: Session, iteration: int, progress: int) -> bool:
        """Join a session: its run is the folder's, and checkpoints after this point are set aside.

        Returns:
            Whether there were later checkpoints, so that the run goes back in time.
        """
        self._session = session
        if self._store is None:
            return False
        if self._store.folder.is_dir():
            self._claim()
        self.run_id = session.run_id
        step = self._learner.checkpoint_step(iteration, progress, 0)
        final = self._final()
        ahead = final is not None and self._progress(final) > progress
        finals = [self._store.folder / str(self._learner.files.final)] if ahead else []
        return bool(self._store.rewind(step) + self._store.set_aside(finals, step))

    def end(self) -> None:
        """Leave the session."""
        if self._session is not None:
            self.run_id = self._session.run_id
        self._session = None

    def _claim(self) -> None:
        """Make sure that the folder holds no other run."""
        if self.folder is None:
            return
        if self._session is not None:
            self._session.claim(self.folder)
            self.run_id = self._session.run_id
            return
        with RunDir.start(
            self.folder,
            config=self._learner.config,
            seed=self._learner.seed,
            existing="adopt" if self.is_resumed else "archive",
            run_id=self.run_id,
            has_log=False,
        ) as run:
            self.run_id = run.record.run_id

    def refuse(self, error: DivergedError) -> None:
        """Refuse to save until a sound checkpoint is loaded."""
        self._diverged = error

    def check_sound(self) -> None:
        """Refuse to save what training has spoilt.

        Raises:
            DivergedError: Training diverged, and no sound checkpoint was loaded since.
        """
        if self._diverged is not None:
            raise DivergedError(
                f"nothing is saved, because training diverged: {self._diverged.got}",
                "a checkpoint holds a state that learning can continue from",
                "load the last checkpoint first (resume), or build a new runner",
            )

    def save_periodic(self, step: int, iteration: int, state: dict[str, Any]) -> None:
        """Write the periodic checkpoint of a step, and remove what need not stay."""
        if self._store is None:
            return
        self.check_sound()
        self._claim()
        self._learner.before_save(step)
        logger.debug("saved %s", self._store.save(step, state, metrics=self.metrics))
        self.saved_iteration = iteration

    def save_named(self, name: str | Path, iteration: int, state: dict[str, Any]) -> Path:
        """Write a checkpoint under a name of the user's choice."""
        path = Path(name)
        if self.folder is not None and not path.is_absolute():
            path = self.folder / path
            self._claim()
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint = Checkpoint(
            schema=self._schema,
            step=iteration,
            state=state,
            config=dict(self._learner.config),
            metrics=dict(self.metrics),
            rng=capture_rng(),
        )
        save_checkpoint(path, checkpoint)
        logger.debug("saved %s", path)
        return path

    def load_named(self, name: str | Path, restore: Restore, reset_learning_rate: bool = False) -> None:
        """Load a checkpoint and restore the run from it."""
        path = self.resolve(name)
        self._restore(load_checkpoint(path, self._schema), str(path), restore, reset_learning_rate)
        is_ours = self.folder is not None and path.resolve().parent == self.folder.resolve()
        self._continue(self.folder if is_ours else None)

    def load_latest(self, restore: Restore, reset_learning_rate: bool = False) -> bool:
        """Restore the run from the newest undamaged checkpoint, if there is one; return whether there was."""
        checkpoint = self.newest()
        if checkpoint is None:
            return False
        source = f"iteration {checkpoint.step} in {self.folder}"
        self._restore(checkpoint, source, restore, reset_learning_rate)
        self._continue(self.folder)
        return True

    @property
    def newest_path(self) -> Path | None:
        """Path of the furthest periodic checkpoint, if there is one."""
        steps = [] if self._store is None else self._store.steps()
        return self._store.path(steps[-1]) if self._store is not None and steps else None

    def newest(self) -> Checkpoint | None:
        """Return the undamaged checkpoint that is furthest, the final one included, if there is one."""
        latest, final = None if self._store is None else self._store.latest(), self._final()
        if final is not None and (latest is None or self._progress(latest) <= self._progress(final)):
            return final
        return latest

    def _final(self) -> Checkpoint | None:
        """Load the checkpoint that was written at the goal, if there is one; a damaged one is named in a warning."""
        name = self._learner.files.final
        if self.folder is None or name is None:
            return None
        try:
            return load_checkpoint(self.folder / name, self._schema)
        except CheckpointMissingError:
            return None
        except CheckpointDamagedError as error:
            if not self._final_is_damaged:  # warn once, though a run that resumes looks several times
                logger.warning("skipping the final checkpoint %s: %s", name, error.got)
            self._final_is_damaged = True
            return None

    def _progress(self, checkpoint: Checkpoint) -> int:
        return self._learner.counters(checkpoint.state)[1]

    def _continue(self, folder: Path | None) -> None:
        """Take over the identity of the run in a folder; None begins a run of its own."""
        self._diverged = None
        self.is_resumed = folder is not None
        has_record = folder is not None and (folder / "run.json").exists()
        self.run_id = RunRecord.read(folder).run_id if has_record and folder is not None else None

    def _restore(self, checkpoint: Checkpoint, source: str, restore: Restore, reset_learning_rate: bool) -> None:
        learner = self._learner
        config = learner.config
        changed = [
            f"{key}: {checkpoint.config.get(key)!r} then, {config.get(key)!r} now"
            for key in sorted((checkpoint.config.keys() | config.keys()) - learner.free)
            if checkpoint.config.get(key) != config.get(key)
        ]
        if changed:
            rate = "this runner's" if reset_learning_rate else "the checkpoint's (reset_learning_rate=True changes it)"
            logger.warning(
                "checkpoint %s was made with another configuration (%s): this runner's holds from now on, but the "
                "learning rate is %s",
                source,
                "; ".join(changed),
                rate,
            )
        with learner.running():
            with fitting(f"checkpoint {source}", "runner"):
                restore(checkpoint.state)
            checkpoint.restore_rng()
        self.metrics = dict(checkpoint.metrics)
        if reset_learning_rate:
            learner.reset_learning_rate()

    def resolve(self, name: str | Path) -> Path:
        """Return the path of a name: as it is if there is such a file or it is absolute, else under ``save_dir``."""
        path = Path(name)
        if path.is_absolute() or self.folder is None:
            return path
        return self.folder / path if (self.folder / path).exists() or not path.exists() else path

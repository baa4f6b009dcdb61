"""The run loop: collect → update → adjust → evaluate → log → save, the same for everything that learns.

Glossary:
    iteration: one ``collect`` and the ``update`` that learns from it.
    progress: what the learner counts, ``learner.unit``: environment steps, epochs, updates.
"""

import inspect
import logging
import math
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, SupportsFloat

import numpy as np

from apexrl.agent.checkpointing import Checkpointing
from apexrl.agent.learner import IterationAbandoned, Learner
from apexrl.runs.checkpoints.checkpoint import Retention
from apexrl.runs.errors import ConfigurationError, DivergedError
from apexrl.runs.session import DEFAULT_SINKS, Session, Sink

logger = logging.getLogger(__name__)

EVENTS = ("pre_iteration", "post_iteration", "pre_rollout", "post_rollout", "pre_update", "post_update")
SHOWN = ("episode/mean_reward", "episode/mean_length", "eval/mean_reward", "train/loss", "time/steps_per_second")
"""What the progress line shows, where it exists."""

Callback = Callable[..., bool | np.bool_ | None]


class StopTraining(Exception):  # noqa: N818 - a request, not an error
    """Raised by a callback to end training; its message says why."""


@dataclass(frozen=True)
class Goal:
    """How far one call of ``learn`` goes.

    Attributes:
        asked: The total of progress that was asked for.
        start: Progress that the call counts from.
        per_iteration: Progress per iteration.
        done: Progress of the run when the call begins.
    """

    asked: int
    start: int
    per_iteration: int
    done: int = 0

    @property
    def reached_at(self) -> int:
        """The total after the last full iteration that is needed: ``asked``, or up to one iteration more."""
        missing = max(0, self.asked - self.start)
        return self.start + math.ceil(missing / self.per_iteration) * self.per_iteration

    def progress(self, total: int) -> float:
        """Return the share of the whole run that is done."""
        return min(1.0, total / self.reached_at) if self.reached_at else 1.0


@dataclass(frozen=True)
class LearnResult:
    """Result of a call of ``learn``.

    Attributes:
        total_timesteps: Progress of the whole run: environment steps for on-policy learners.
        asked_timesteps: What was asked for.
        iterations: Iterations of the whole run.
        stopped_by: ``goal``, ``learner``, ``callback``, ``signal`` or ``time``.
        reason: One sentence.
        exit_code: The exit status that shells expect after a signal, or 0.
    """

    total_timesteps: int
    asked_timesteps: int
    iterations: int
    stopped_by: str
    reason: str
    exit_code: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether exactly the asked number of steps was made."""
        return self.total_timesteps == self.asked_timesteps


class Runner:
    """Trains a learner: iterations, callbacks, metrics, evaluation, checkpoints, exact resume, signals, time limits.

    Args:
        learner: What to train.
        log_dir: Where metrics go; None logs nowhere.
        save_dir: Where checkpoints go and relative names are resolved; if None, in ``log_dir``.
        log_interval: Log every so often, and at the end; 0 never logs.
        save_interval: Save every so often; 0 never saves.
        eval_interval: Evaluate every so often; 0 never does by itself.
        interval_unit: What intervals count: iterations, or the learner's progress (when it passes a multiple).
        save_last: Whether to save at the end, too.
        eval_last: Whether to evaluate when the goal is reached, too.
        keep_last: How many periodic checkpoints stay, beside the best one evaluated; None keeps all.
        sinks: Where metrics go: ``"tensorboard"``, ``"jsonl"``, ``"csv"``, ``"wandb"``, or objects with ``write``,
            ``flush`` and ``close``.
        show_progress: Whether to draw a progress bar (plain lines where there is no terminal).
        shown: Metrics that the progress line shows.
        raise_interrupt: Whether Ctrl-C raises ``KeyboardInterrupt`` after saving; False returns instead.
        session: A session around the runner, if there is one.

    Attributes:
        learner: What is trained.
        iteration: Iterations finished so far, those before a resume included.
        total_timesteps: Progress so far, likewise.
    """

    def __init__(
        self,
        learner: Learner,
        *,
        log_dir: str | Path | None = None,
        save_dir: str | Path | None = None,
        log_interval: int = 1,
        save_interval: int = 0,
        eval_interval: int = 0,
        interval_unit: Literal["iterations", "progress"] = "iterations",
        save_last: bool = False,
        eval_last: bool = False,
        keep_last: int | None = None,
        sinks: Sequence[Sink] | None = None,
        show_progress: bool = True,
        shown: Sequence[str] | None = SHOWN,
        raise_interrupt: bool = False,
        session: Session | None = None,
    ) -> None:
        for name, value in (("log", log_interval), ("save", save_interval), ("eval", eval_interval)):
            if value < 0:
                raise ValueError(f"{name}_interval={value} must be 0 (never) or a positive number of iterations")
        self.learner = learner
        self.iteration = 0
        self.total_timesteps = 0
        self.log_dir = Path(log_dir) if log_dir is not None else None
        if self.log_dir is None and session is not None:
            self.log_dir = session.path
        self.log_interval, self.save_interval, self.eval_interval = log_interval, save_interval, eval_interval
        self.interval_unit, self.save_last, self.eval_last = interval_unit, save_last, eval_last
        if isinstance(sinks, str):
            raise ConfigurationError(f"sinks={sinks!r} is one name", "sinks is a list", f"write sinks=[{sinks!r}]")
        self.sinks: tuple[Sink, ...] = DEFAULT_SINKS if sinks is None else tuple(sinks)
        self.show_progress, self.shown, self.raise_interrupt = show_progress, shown, raise_interrupt
        self._parent = session
        self._callbacks: dict[str, list[tuple[Callback, bool]]] = {event: [] for event in EVENTS}
        self._stop_reason: str | None = None
        self._logged: dict[str, float] = {}
        self._counted_from = 0
        self._is_running = False
        folder = Path(save_dir) if save_dir is not None else None
        if folder is None and self.log_dir is not None:
            folder = self.log_dir / learner.files.checkpoints
        retention = Retention(keep_last=keep_last, metric="eval/mean_reward")
        self._checkpoints = Checkpointing(learner, folder, retention)

    # -- the loop

    def learn(
        self, total_timesteps: int | None = None, num_iterations: int | None = None, max_seconds: float | None = None
    ) -> LearnResult:
        """Train. Iterations are whole: it ends with the first one that reaches what was asked.

        Args:
            total_timesteps: Progress to make, in the learner's unit. A second call makes as much again. What a
                resumed run had done before counts, so that the same program resumes an interrupted run.
            num_iterations: Instead: so many further iterations.
            max_seconds: Wall-clock budget; the iteration under way is finished.

        Returns:
            How far it came, and why it ended: at the goal, by the learner, a callback, a signal or the clock.

        Raises:
            DivergedError: A reward, an observation or a loss is not a finite number. Nothing is saved after it.
            KeyboardInterrupt: After Ctrl-C, when the run is saved, if ``raise_interrupt``.
        """
        goal, learner = self._goal(total_timesteps, num_iterations), self.learner
        with self._open_session(goal, max_seconds) as session, self._running():
            learner.start(goal.progress(self.total_timesteps))
            while not self._is_over(session, goal):
                self._emit("pre_iteration")
                if self._is_over(session, goal):
                    break
                try:
                    stats = self._collect()

                    self._emit("pre_update")
                    stats |= self._finite(learner.update())
                    self._emit("post_update", stats)
                except IterationAbandoned:  # the learner is half-way: its state is not saved
                    return self._result(session, goal)

                before = self.iteration, self.total_timesteps
                self.iteration += 1
                self.total_timesteps += learner.per_iteration
                learner.adjust(goal.progress(self.total_timesteps))

                last = self._is_over(session, goal)
                if self._due(self.eval_interval, before, self.eval_last and self.total_timesteps >= goal.asked):
                    stats |= self.eval()
                stats |= session.lap(learner.per_iteration) | self._logged
                self._report(session, stats, self._due(self.log_interval, before, last))
                if self._due(self.save_interval, before):
                    self._save(session, self.save_interval)
                self._emit("post_iteration", stats)
                self._log_late(session)
            self._save_at_end(session, goal)
        return self._result(session, goal)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Enter the learner's own random streams, unless they are entered already."""
        if self._is_running:
            yield
            return
        self._is_running = True
        try:
            with self.learner.running():
                yield
        finally:
            self._is_running = False

    def _collect(self) -> dict[str, float]:
        if not self.learner.collects:
            return {}
        self._emit("pre_rollout")
        stats = self.learner.collect()
        self._emit("post_rollout", stats)
        return stats

    def _goal(self, total_timesteps: int | None, num_iterations: int | None) -> Goal:
        if (total_timesteps is None) == (num_iterations is None):
            raise ValueError(
                f"learn() got total_timesteps={total_timesteps} and num_iterations={num_iterations}; give exactly one"
            )
        self._stop_reason = None
        per_iteration = self.learner.per_iteration
        if total_timesteps is not None:
            if total_timesteps < 1:
                raise ValueError(f"total_timesteps={total_timesteps} must be at least 1")
            return Goal(self._counted_from + total_timesteps, self._counted_from, per_iteration, self.total_timesteps)
        assert num_iterations is not None  # checked above
        if num_iterations < 1:
            raise ValueError(f"num_iterations={num_iterations} must be at least 1")
        done = self.total_timesteps
        return Goal(done + num_iterations * per_iteration, done, per_iteration, done)

    def _is_over(self, session: Session, goal: Goal) -> bool:
        """Return whether the loop should end before another iteration."""
        return (
            self.total_timesteps >= goal.asked
            or self._stop_reason is not None
            or session.should_stop
            or self.learner.finished is not None
        )

    def _due(self, interval: int, before: tuple[int, int], also: bool = False) -> bool:
        """Return whether something is due that happens every ``interval``; 0 is never."""
        if interval == 0:
            return False
        if self.interval_unit == "iterations":
            return also or self.iteration // interval > before[0] // interval
        return also or self.total_timesteps // interval > before[1] // interval

    def _finite(self, stats: dict[str, float]) -> dict[str, float]:
        """Return what an update reported, if all of it is finite."""
        bad = {name: value for name, value in stats.items() if not math.isfinite(value)}
        if bad:
            names = ", ".join(f"{name} is {value}" for name, value in bad.items())
            raise DivergedError(
                f"iteration {self.iteration + 1}: {names}",
                "what an update reports are finite numbers",
                "lower the learning rate or bound rewards and observations; checkpoints before it are sound",
            )
        return stats

    @contextmanager
    def _open_session(self, goal: Goal, max_seconds: float | None) -> Iterator[Session]:
        learner, checkpoints = self.learner, self._checkpoints
        with Session(
            self.log_dir,
            files=learner.files,
            config=learner.config,
            seed=learner.seed,
            free=learner.free,
            existing="adopt" if checkpoints.is_resumed else "archive",
            run_id=checkpoints.run_id,
            sinks=self.sinks,
            shown=self.shown,
            show_progress=self.show_progress,
            unit=learner.unit,
            max_seconds=max_seconds,
            parent=self._parent,
        ) as session:
            if checkpoints.begin(session, self.iteration, self.total_timesteps):
                session.set_metrics_aside()
            session.begin(goal.reached_at, self.total_timesteps or None)
            learner.session = session
            try:
                yield session
            except DivergedError as error:
                checkpoints.refuse(error)
                raise
            finally:
                checkpoints.end()

    def _report(self, session: Session, stats: Mapping[str, float], log: bool) -> None:
        session.show(self.total_timesteps, stats)
        if log:
            session.log(self.total_timesteps, stats)
            self._logged = {}

    def _log_late(self, session: Session) -> None:
        """Log what ``post_iteration`` callbacks logged, at this iteration's step."""
        if self._logged:
            session.log(self.total_timesteps, self._logged)
            self._logged = {}

    def _save(self, session: Session, interval: int = 0) -> None:
        """Write a periodic checkpoint, after the metrics that belong to it."""
        session.flush()
        step = self.learner.checkpoint_step(self.iteration, self.total_timesteps, interval)
        self._checkpoints.save_periodic(step, self.iteration, self.state_dict())

    def _save_at_end(self, session: Session, goal: Goal) -> None:
        """Write what the end of a call asks for: the final checkpoint, or one to resume from."""
        checkpoints, final = self._checkpoints, self.learner.files.final
        is_saved = self.save_interval > 0 and checkpoints.folder is not None
        if final is not None and is_saved and self.total_timesteps >= goal.asked:
            session.flush()
            self.save_checkpoint(final)
        elif session.stop.requested or self.save_last:
            if checkpoints.folder is None:
                logger.warning("stopped at iteration %d without saving: there is no folder", self.iteration)
            elif checkpoints.saved_iteration != self.iteration:
                self._save(session)

    def _result(self, session: Session, goal: Goal) -> LearnResult:
        """Return the result of a call of ``learn``, log it, and pass Ctrl-C on."""
        total, asked, unit = self.total_timesteps, goal.asked, self.learner.unit
        finished = self.learner.finished
        if total >= asked:
            self._counted_from = goal.reached_at
            over, stopped_by, reason = total - asked, "goal", f"reached {total} {unit}, exactly as asked"
            if goal.done >= asked:
                reason = (
                    f"the run already had {total} {unit} of the {asked} asked; nothing was trained "
                    "(num_iterations=… makes further ones)"
                )
            elif over:
                size = goal.per_iteration
                reason = f"reached {total} {unit}: {asked} asked, {over} more to the end of the last rollout of {size}"
        elif finished is not None:
            stopped_by, reason = "learner", finished
        elif self._stop_reason is not None:
            stopped_by, reason = "callback", self._stop_reason
        elif session.stop.requested:
            stopped_by, reason = "signal", f"stopped by {getattr(session.stop.signal, 'name', 'request')}"
        else:
            stopped_by, reason = "time", "the wall-clock budget is used up"
        logger.info("learn ended after %d iterations: %s", self.iteration, reason)
        if self.raise_interrupt and session.stop.signal is signal.SIGINT:
            raise KeyboardInterrupt(f"{reason}, at iteration {self.iteration}; the same program resumes with resume()")
        return LearnResult(total, asked, self.iteration, stopped_by, reason, session.exit_code)

    # -- callbacks

    def add_callback(self, event: str, callback: Callback) -> None:
        """Call ``callback`` at an event of every iteration.

        Args:
            event: ``pre_`` or ``post_`` with ``iteration``, ``rollout`` or ``update``.
            callback: Takes the runner, or at ``post_`` events the runner and the statistics so far. Returning False,
                or raising :class:`StopTraining`, ends training at the end of the iteration (from ``pre_iteration``,
                before it begins); other exceptions are raised.

        Raises:
            ValueError: The event does not exist, or never comes with this learner.
            TypeError: The callback needs other arguments than the event gives.
        """
        if event not in self._callbacks:
            raise ValueError(f"unknown event {event!r}: choose one of {', '.join(EVENTS)}")
        if event in ("pre_rollout", "post_rollout") and not self.learner.collects:
            raise ValueError(
                f"event {event!r} never comes: offline training has no rollouts; use pre_update or post_update"
            )
        self._callbacks[event].append((callback, _wants_stats(event, callback)))

    def remove_callback(self, event: str, callback: Callback) -> None:
        """Stop calling ``callback`` at an event.

        Raises:
            ValueError: It was not added for this event.
        """
        # By equality: each access to a method makes a new object.
        kept = [entry for entry in self._callbacks.get(event, []) if entry[0] != callback]
        if event not in self._callbacks or len(kept) == len(self._callbacks[event]):
            raise ValueError(f"{_name_of(callback)} is not a callback of event {event!r}; add_callback adds one")
        self._callbacks[event] = kept

    def _emit(self, event: str, stats: Mapping[str, float] | None = None) -> None:
        """Call the callbacks of an event in the order in which they were added, and remember if one asks to stop."""
        for callback, wants_stats in self._callbacks[event]:
            name = _name_of(callback)
            try:
                returned = callback(self, dict(stats or {})) if wants_stats else callback(self)
            except StopTraining as request:
                self._stop_reason = self._stop_reason or str(request) or f"{name} raised StopTraining at {event}"
            else:
                if isinstance(returned, bool | np.bool_) and not returned:  # numpy's False is what comparisons give
                    self._stop_reason = self._stop_reason or f"{name} returned False at {event}"

    def log(self, name: str, value: SupportsFloat) -> None:
        """Log a number of your own with the metrics of the iteration under way, from a callback for instance."""
        self._logged[name] = float(value)

    # -- evaluation and checkpoints

    def eval(self, **options: Any) -> dict[str, float]:  # noqa: ANN401 - as the learner takes them
        """Evaluate the present policy; training and its statistics are not touched."""
        self._checkpoints.metrics = self.learner.evaluate(**options)
        return dict(self._checkpoints.metrics)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the run needs to resume exactly."""
        return self.learner.state_dict() | {"iteration": self.iteration, "total_timesteps": self.total_timesteps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.learner.load_state_dict(state)
        self.iteration, self.total_timesteps = self.learner.counters(state)

    def save_checkpoint(self, name: str | Path) -> Path:
        """Save everything under a name; relative names are resolved under ``save_dir``.

        Returns:
            Where it was written.

        Raises:
            DivergedError: Training diverged, and no sound checkpoint was loaded since.
        """
        self._checkpoints.check_sound()
        with self._running():
            return self._checkpoints.save_named(name, self.iteration, self.state_dict())

    def load_checkpoint(self, name: str | Path, *, reset_learning_rate: bool = False) -> None:
        """Load what ``save_checkpoint`` or a periodic save wrote, and continue from there.

        Args:
            name: A path, or a name under ``save_dir``.
            reset_learning_rate: Learn with this runner's learning rate instead of the checkpoint's.

        Raises:
            CheckpointMissingError: There is no such file.
            CheckpointDamagedError: The file is damaged.
            SchemaMismatchError: It belongs to another algorithm, or to networks of other shapes.
        """
        self._checkpoints.load_named(name, self.load_state_dict, reset_learning_rate)

    def resume(self, *, reset_learning_rate: bool = False) -> bool:
        """Load the newest undamaged checkpoint of ``save_dir``, if there is one; return whether there was."""
        return self._checkpoints.load_latest(self.load_state_dict, reset_learning_rate)

    def close(self) -> None:
        """Close environments, workers and sinks of the caller's."""
        for sink in self.sinks:
            if not isinstance(sink, str):
                sink.close()
        self.learner.close()


def _name_of(callback: Callback) -> str:
    return getattr(callback, "__name__", type(callback).__name__)


def _wants_stats(event: str, callback: Callback) -> bool:
    """Return whether a callback takes (runner, stats) instead of (runner)."""
    signature = inspect.signature(callback)
    given: list[tuple[Any, ...]] = [(None, None), (None,)] if event.startswith("post_") else [(None,)]
    for arguments in given:
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return len(arguments) == 2
    offered = (
        "(runner) or (runner, stats)" if event.startswith("post_") else "(runner), because no statistics exist yet"
    )
    raise TypeError(f"a callback for {event!r} takes {offered}; got {_name_of(callback)}{signature}")

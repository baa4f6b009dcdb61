"""What a runner trains: a learner collects, updates and evaluates; the runner does everything else."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from apexrl.runs.session import Files, Session


class IterationAbandoned(Exception):  # noqa: N818 - not an error: a stop was requested
    """Raised by a learner that leaves an iteration half-way because a stop was requested.

    The iteration does not count and nothing is saved after it; the run resumes from the checkpoint before.
    """


class Learner(ABC):
    """Base of everything that a :class:`~apexrl.agent.runner.Runner` trains.

    A subclass gives its name and files, :meth:`update`, :meth:`state_dict` and :meth:`load_state_dict`, and whatever
    else it has. All randomness must come from what is in the state, so that a resumed run equals an uninterrupted one.

    Attributes:
        name: Name of the schema of its checkpoints, such as ``"apexrl.ppo"``.
        schema_version: Version of the schema.
        unit: What its progress counts: ``"steps"``, ``"epochs"``, ``"updates"``.
        collects: Whether it has rollouts; without them the rollout events never come.
        files: Names of its files.
        free: Names of settings that may change when a run is resumed, without a word.
        finished: Set by the learner when there is nothing more to learn (early stopping): the reason; else None.
        session: The session that it runs in; ``session.stop.requested`` asks long work to leave early.
    """

    name: str
    schema_version: ClassVar[int] = 1
    unit: ClassVar[str] = "steps"
    collects: ClassVar[bool] = True
    files: Files = Files()
    free: ClassVar[frozenset[str]] = frozenset()
    finished: str | None = None
    session: Session | None = None

    @property
    @abstractmethod
    def config(self) -> Mapping[str, Any]:
        """The configuration, in plain values; goes into every checkpoint."""

    @property
    @abstractmethod
    def seed(self) -> int:
        """The seed that everything random comes from."""

    @property
    def per_iteration(self) -> int:
        """Units of progress that one iteration adds."""
        return 1

    def collect(self) -> dict[str, float]:
        """Collect what the next update learns from, under the present policy; return metrics."""
        return {}

    @abstractmethod
    def update(self) -> dict[str, float]:
        """Learn once and return metrics, all of them finite."""

    def evaluate(self, **options: Any) -> dict[str, float]:  # noqa: ANN401 - each learner has its own
        """Measure the present policy without changing anything; return metrics."""
        return {}

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides the next iteration, in tensors and plain values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore such a state."""

    # -- what a learner may add

    def start(self, fraction: float) -> None:  # noqa: B027 - optional
        """Prepare for a call of ``learn`` that begins when this fraction of the run is done."""

    def adjust(self, fraction: float) -> None:  # noqa: B027 - optional
        """Move learning rates after an update, when this fraction of the run is done."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold around learning and loading, for instance global random streams of the run's own."""
        yield

    def checkpoint_step(self, iteration: int, progress: int, interval: int) -> int:
        """Return the number in a checkpoint's file name; ``interval`` is 0 for one at the end of a call."""
        return iteration

    def reset_learning_rate(self) -> None:  # noqa: B027 - optional
        """Take the configuration's learning rate instead of the loaded one."""

    def counters(self, state: Mapping[str, Any]) -> tuple[int, int]:
        """Return iterations and progress of a checkpoint's state; override to read older files."""
        return state["iteration"], state["total_timesteps"]

    def before_save(self, step: int) -> None:  # noqa: B027 - optional
        """Write what belongs to a checkpoint, before it."""

    def close(self) -> None:  # noqa: B027 - optional
        """Close environments and workers."""

"""Actors: objects that live in workers and are called again and again, such as groups of environments.

An actor belongs to a key, and a key to a worker; calls for many keys run at once, and their values come back in the
order of the keys. When a worker dies, all actors on it are gone with their state. That is either raised
(`ActorLostError`, then `ActorGroup.rebuild`), or mended at once where each call carries all that it depends on
(``on_loss="rebuild"``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from apexrl.execution.codec import encode, require_portable
from apexrl.execution.pool import Call, Lane, Pool, Settled
from apexrl.execution.report import Attempt, Failure, FailureKind, RunReport, TaskReport, may_retry
from apexrl.execution.server import build_request, invoke_request
from apexrl.execution.shared import Shared
from apexrl.execution.tasks import task_seed

_WORTH_SHARING = 1 << 16
"""Bytes of arguments from which they are sent once per worker instead of once per actor."""
_NOTHING_SHARED: Mapping[Hashable, tuple[Shared[Any], ...]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorOptions:
    """How actors are built and called.

    Attributes:
        seed: Builds each actor with the keyword ``seed``, made from this seed and the key's index (see `task_seed`).
            None gives none.
        time_limit: Seconds per call; the worker of a call that takes longer is killed. None for no limit. *inline*
            cannot interrupt a call, but treats its actor as lost when it has ended.
        build_time_limit: The same for the factory, which often imports much.
        on_loss: What to do when a worker dies or a call takes too long. ``raise`` raises `ActorLostError` once the
            other workers have finished. ``rebuild`` rebuilds the lost actors and repeats the calls; only for actors
            whose calls don't depend on earlier ones, because the state is lost.
        retries: With ``rebuild``, how often a call is repeated.
    """

    seed: int | None = None
    time_limit: float | None = None
    build_time_limit: float | None = None
    on_loss: Literal["raise", "rebuild"] = "raise"
    retries: int = 2

    def __post_init__(self) -> None:
        for name in ("time_limit", "build_time_limit"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise ValueError(f"{name} must be more than 0 seconds, or None for no limit; got {limit}")
        if self.on_loss not in ("raise", "rebuild"):
            raise ValueError(f"on_loss must be 'raise' or 'rebuild', got {self.on_loss!r}")
        if self.retries < 0:
            raise ValueError(f"retries must be 0 or more, got {self.retries}")


class ActorCallError(RuntimeError):
    """An actor's factory or method raised. The actors are still there, in whatever state the exception left them.

    Attributes:
        failures: The reason per key.
    """

    def __init__(self, what: str, failures: Mapping[Hashable, Failure]) -> None:
        key, first = next(iter(failures.items()))
        more = f" (and {len(failures) - 1} more keys)" if len(failures) > 1 else ""
        super().__init__(f"{what} of actor {key!r} {first}{more}\n{first.traceback}".rstrip())
        self.failures = dict(failures)


class ActorLostError(RuntimeError):
    """Actors are gone with their state.

    Attributes:
        keys: All lost keys, in the group's order.
        reason: What happened to their worker.
    """

    def __init__(self, keys: Sequence[Hashable], reason: str) -> None:
        super().__init__(
            f"actors {list(keys)} are lost with their state ({reason}); call rebuild() on their group to make them "
            "again, then bring them to the state that you need"
        )
        self.keys = list(keys)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ActorHandle:
    """One actor of a group."""

    group: ActorGroup
    key: Hashable

    def call(self, method: str, *args: object, **kwargs: object) -> Any:  # noqa: ANN401 - a method returns anything
        """Call a method of this actor and wait for its value."""
        return self.group._invoke(method, {self.key: encode((args, kwargs), f"the arguments of {method}()")})[self.key]


class ActorGroup:
    """Actors by key. Made by `Executor.actors`; close it, or its executor, to end its workers.

    Attributes:
        keys: The keys in order.
        report: Counts calls; a call that had to be repeated is among ``report.troubled``.
    """

    def __init__(
        self, pool: Pool, factory: Callable[..., Any], keys: Sequence[Hashable], options: ActorOptions
    ) -> None:
        self.keys = list(keys)
        self.report = RunReport()
        self._options = options
        self._factory = factory
        self._pool = pool
        self._index = {key: index for index, key in enumerate(self.keys)}
        self._lost: dict[Hashable, str] = {}
        self._born: dict[Hashable, int] = {}  # the generation of the worker that an actor was built in
        self._calls = 0
        self._end = weakref.finalize(self, pool.close)
        try:
            if len(self._index) != len(self.keys):
                raise ValueError(f"keys must be distinct, got {self.keys}")
            require_portable(factory)
            self._build(self.keys)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, key: Hashable) -> ActorHandle:
        if key not in self._index:
            raise KeyError(f"no actor {key!r}: the keys are {self.keys}")
        return ActorHandle(self, key)

    def call(self, method: str, *args: object, **kwargs: object) -> list[Any]:
        """Call a method of every actor with the same arguments; the values come in the order of the keys."""
        shared = Shared((args, kwargs), f"the arguments of {method}()")
        is_large = len(shared.payload) >= _WORTH_SHARING
        values = self._invoke(method, dict.fromkeys(self.keys, shared if is_large else shared.payload))
        return [values[key] for key in self.keys]

    def map(self, method: str, arguments: Mapping[Hashable, tuple[Any, ...]], **kwargs: object) -> dict[Hashable, Any]:
        """Call a method of some actors, each with its own arguments.

        Args:
            method: The method's name.
            arguments: Positional arguments by key.
            **kwargs: Keyword arguments for all.

        Returns:
            The values by key, in the group's order, whatever order they finished in.

        Raises:
            ActorCallError: If a method raised. The other calls were carried out.
            ActorLostError: If a worker died or took too long, and ``on_loss`` is ``raise`` or the retries are used up.
        """
        for key in arguments:
            self[key]
        ordered = sorted(arguments, key=self._index.__getitem__)
        what = f"the arguments of {method}()"
        return self._invoke(method, {key: encode((arguments[key], kwargs), what) for key in ordered})

    def rebuild(self) -> list[Hashable]:
        """Rebuild the lost actors by the factory; their state is that of a new actor.

        Returns:
            Their keys.
        """
        self._notice_losses()
        keys = [key for key in self.keys if key in self._lost]
        self._build(keys)
        return keys

    def close(self) -> None:
        """End the workers of this group."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _build(self, keys: Sequence[Hashable]) -> None:
        requests = {}
        for key in keys:
            seed = self._options.seed
            kwargs = {} if seed is None else {"seed": task_seed(seed, self._index[key])}
            requests[key] = build_request(key, self._factory, kwargs)
        for key in keys:
            self._lost.pop(key, None)
        settled: dict[Hashable, Settled] = {}
        while requests:
            settled |= self._exchange(requests, self._options.build_time_limit)
            # Untouched and not lost: a worker that did not even start. The pool bounds how often that happens.
            requests = {key: requests[key] for key in requests if settled[key].untouched and key not in self._lost}
        for key in keys:
            self._born[key] = self._lane(key).generation
        self._raise_if_raised("the factory", settled)
        self._raise_if_lost(keys)

    def _invoke(self, method: str, arguments: Mapping[Hashable, Shared[Any] | bytes]) -> dict[Hashable, Any]:
        requests = {key: invoke_request(key, method, encoded) for key, encoded in arguments.items()}
        shared = {key: (value,) for key, value in arguments.items() if isinstance(value, Shared)}
        attempts: dict[Hashable, list[Attempt]] = {key: [] for key in requests}
        values: dict[Hashable, Any] = {}
        raised: dict[Hashable, Settled] = {}
        self._rebuild_or_raise(requests)
        while requests:
            settled = self._exchange(requests, self._options.time_limit, shared)
            for key, outcome in settled.items():
                if not outcome.untouched:
                    attempts[key].append(Attempt(outcome.seconds, outcome.worker, outcome.failure))
                if outcome.failure is None and not outcome.untouched:
                    values[key] = outcome.value
                elif outcome.failure is not None and outcome.failure.kind is FailureKind.RAISED:
                    raised[key] = outcome
            requests = {key: request for key, request in requests.items() if key not in values and key not in raised}
            if not all(may_retry(attempts[key], self._options.retries) for key in requests):
                break
            if requests and self._options.on_loss == "raise":
                break
            self._rebuild_or_raise(requests)
        self._count(method, attempts)
        self._raise_if_raised(f"{method}()", raised)
        self._raise_if_lost(arguments)
        return {key: values[key] for key in arguments}

    def _exchange(
        self,
        requests: Mapping[Hashable, bytes],
        time_limit: float | None,
        shared: Mapping[Hashable, tuple[Shared[Any], ...]] = _NOTHING_SHARED,
    ) -> dict[Hashable, Settled]:
        """Send the requests, each to its key's worker with what it shares with others, and wait for all."""
        settled: dict[Hashable, Settled] = {}
        try:
            for key, request in requests.items():
                self._pool.submit(self._lane(key), Call(request, time_limit, key, shared.get(key, ())))
            while len(settled) < len(requests):
                for outcome in self._pool.poll():
                    settled[outcome.call.tag] = outcome
                    if outcome.failure is not None and outcome.failure.kind is not FailureKind.RAISED:
                        self._lose(outcome.worker, str(outcome.failure))
        except BaseException:
            self._lose_busy("a call was interrupted")
            self._pool.abandon()
            raise
        return settled

    def _lane(self, key: Hashable) -> Lane:
        return self._pool.lanes[self._index[key] % len(self._pool.lanes)]

    def _lose(self, worker: int, reason: str) -> None:
        lane = self._pool.lanes[worker]
        self._lost.update({key: reason for key in self.keys if self._lane(key) is lane})

    def _lose_busy(self, reason: str) -> None:
        for lane in self._pool.lanes:
            if lane.calls:
                self._lose(lane.number, reason)

    def _notice_losses(self) -> None:
        """Find the actors whose worker ended while no call was running."""
        if not self._end.alive:
            raise RuntimeError("this group of actors is closed: make a new one")
        for key in self.keys:
            lane = self._lane(key)
            if key not in self._lost and (lane.link is None or lane.generation != self._born[key]):
                self._lost[key] = f"{FailureKind.WORKER_DIED}: {lane.last_end or 'ended'} between two calls"

    def _rebuild_or_raise(self, requests: Mapping[Hashable, bytes]) -> None:
        self._notice_losses()
        if self._options.on_loss == "rebuild" and self._lost:
            self.rebuild()
        self._raise_if_lost(requests)

    def _raise_if_lost(self, keys: Sequence[Hashable] | Mapping[Hashable, Any]) -> None:
        lost = [key for key in self.keys if key in self._lost]
        concerned = [key for key in keys if key in self._lost]
        if concerned:
            raise ActorLostError(lost, self._lost[concerned[0]])

    @staticmethod
    def _raise_if_raised(what: str, settled: Mapping[Hashable, Settled]) -> None:
        failures = {
            key: outcome.failure
            for key, outcome in settled.items()
            if outcome.failure is not None and outcome.failure.kind is FailureKind.RAISED
        }
        if failures:
            raise ActorCallError(what, failures)

    def _count(self, method: str, attempts: Mapping[Hashable, list[Attempt]]) -> None:
        for key, made in attempts.items():
            if made:
                self.report.add(TaskReport(self._calls, f"{method} of {key!r}", tuple(made)))
                self._calls += 1

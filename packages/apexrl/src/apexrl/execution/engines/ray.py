"""The ray engine: workers are Ray actors, on this machine or on a cluster.

Needs the extra: ``pip install apexrl[ray]``. On a cluster, every machine needs this package too, since functions
are sent by name; code of one's own is shipped by Ray (``working_dir``, ``py_modules``). A time limit kills the Ray
actor; seeds, retries, order and reports are those of the other engines. Nodes may come and go: what a lost node was
doing is repeated elsewhere, while there is no room the tasks wait, and CPUs that are added get tasks too.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from apexrl.execution.codec import main_module
from apexrl.execution.engines.processes import WORKER_ENVIRONMENT
from apexrl.execution.executor import Executor, available_cpus
from apexrl.execution.pool import START_ATTEMPTS, Died, Event, Reply
from apexrl.execution.server import Server
from apexrl.execution.shared import Shared
from apexrl.runs.errors import ConfigurationError

_START_LIMIT = 600.0
"""Seconds until a worker must be ready on this machine. On a cluster there is no limit: it waits for a free CPU."""

_LOOK_AROUND = 5.0
"""Seconds between two looks at how many CPUs the cluster has."""

_QUIET = {"configure_logging": False}
_ENVIRONMENT = {"PYTHONHASHSEED": "0"} | WORKER_ENVIRONMENT


def _import_ray() -> ModuleType:
    """Import Ray when it is needed.

    Raises:
        ModuleNotFoundError: If it is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the ray executor needs Ray, which is not installed: pip install apexrl[ray], "
            "or choose the executor 'processes'",
            name=error.name,
        ) from error
    module: ModuleType = ray
    return module


class _Runtime:
    """This program's connection to Ray, shared by its executors. It ends only what it started."""

    def __init__(self) -> None:
        self._users = 0
        self._ours = False
        self._shipped: Mapping[str, Any] = {}
        self.local = False

    def acquire(self, workers: int | None, address: str | None, logs: bool, shipped: Mapping[str, Any]) -> int:
        """Connect, or start Ray on this machine, unless that has been done already; return the number of workers.

        Raises:
            ConfigurationError: If something shall be shipped by a connection that was made without it.
        """
        ray = _import_ray()
        if not ray.is_initialized():
            address = address or os.environ.get("RAY_ADDRESS") or None
            if address in (None, "local"):
                self._start(ray, workers or available_cpus(), logs, shipped)
            else:
                self._connect(ray, str(address), logs, shipped)
            self._users, self._ours, self.local, self._shipped = 0, True, address in (None, "local"), dict(shipped)
        elif shipped and shipped != self._shipped:  # Ray uploads folders when a program connects
            raise ConfigurationError(
                f"{', '.join(shipped)} for a program that is connected to Ray already",
                "Ray ships code when a program connects",
                'give it to your own call: ray.init(runtime_env={"working_dir": …})',
            )
        self._users += 1
        return workers or max(1, self.cpus())

    @staticmethod
    def cpus() -> int:
        """Return how many CPUs the cluster has now."""
        return int(_import_ray().cluster_resources().get("CPU", 0))

    def release(self) -> None:
        """Disconnect after the last user, if the connection was made here."""
        self._users -= 1
        ray = _import_ray()
        if self._users <= 0 and self._ours and ray.is_initialized():
            self._ours = self.local = False
            self._shipped = {}
            ray.shutdown()

    @staticmethod
    def _start(ray: ModuleType, workers: int, logs: bool, shipped: Mapping[str, Any]) -> None:
        """Start Ray on this machine, and retry if the machine is too busy for Ray's time limit."""
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                with _environment_defaults():
                    ray.init(
                        address="local",
                        num_cpus=workers,
                        include_dashboard=False,
                        log_to_driver=logs,
                        runtime_env=dict(shipped) or None,
                        **_QUIET,
                    )
                return
            except Exception as error:  # Ray raises no narrower class when its 30 s for starting are over
                if type(error) is not Exception:
                    raise
                ray.shutdown()
                if attempt == START_ATTEMPTS:
                    raise RuntimeError(
                        f"Ray did not start on this machine in {attempt} attempts ({error}); run less beside it, "
                        "start it yourself with `ray start --head` and give its address, or choose 'processes'"
                    ) from error

    @staticmethod
    def _connect(ray: ModuleType, address: str, logs: bool, shipped: Mapping[str, Any]) -> None:
        try:
            _check_address(address)
            ray.init(address=address, log_to_driver=logs, runtime_env=dict(shipped) or None, **_QUIET)
        except (OSError, ValueError) as error:
            raise ConnectionError(
                f"no Ray cluster answers at address {address!r} ({error}); start one with `ray start --head`, "
                "or leave the address out to start Ray on this machine"
            ) from error


def _check_address(address: str) -> None:
    """Check that a server listens at ``host:port``: Ray itself takes minutes to notice that there is none."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


_RUNTIME = _Runtime()


@contextlib.contextmanager
def _environment_defaults() -> Iterator[None]:
    """Let Ray's own processes inherit the workers' environment, as setting it per actor costs seconds per start."""
    defaults = {**_ENVIRONMENT, "RAY_worker_register_timeout_seconds": f"{_START_LIMIT:.0f}"}  # for a busy machine
    added = {name: value for name, value in defaults.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


class _RayWorker:
    """The worker's side: a server in a Ray actor."""

    def __init__(self, main: Mapping[str, str], path: list[str]) -> None:
        sys.path.extend(entry for entry in path if entry not in sys.path)
        self._server = Server(main)

    def ready(self) -> str:
        """Answer when the actor is up, with the node that it is on."""
        node: str = _import_ray().get_runtime_context().get_node_id()
        return node

    def handle(self, request: bytes, digests: Sequence[str], *payloads: bytes) -> bytes:
        """Carry out a request; shared values come as objects of the object store, which Ray has fetched."""
        self._server.keep(dict(zip(digests, payloads, strict=True)))
        return self._server.handle(request)


class _Objects:
    """Shared values in the object store, each put there once, as long as somebody uses it."""

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray
        self._references: weakref.WeakKeyDictionary[Shared[Any], Any] = weakref.WeakKeyDictionary()

    def reference(self, shared: Shared[Any]) -> Any:  # noqa: ANN401 - Ray's references carry no type
        """Return the reference of a value, put into the store if it is not there."""
        if shared not in self._references:
            self._references[shared] = self._ray.put(shared.payload)
        return self._references[shared]


def _answers(ray: ModuleType, node: str) -> bool:
    """Whether a node can be reached; Ray itself takes many seconds to declare one dead."""
    for known in ray.nodes():
        if known["NodeID"] == node and known["Alive"]:
            try:
                socket.create_connection((known["NodeManagerAddress"], known["NodeManagerPort"]), timeout=5).close()
            except OSError:
                return False
            return True
    return False


class _RayLink:
    """The parent's side: an actor's handle and the reply that is due."""

    def __init__(self, ray: ModuleType, actor: Any, objects: _Objects) -> None:  # noqa: ANN401 - Ray makes the type
        self._ray = ray
        self._actor = actor
        self._objects = objects
        self.alive = True
        self.node: str | None = None  # known when it is up
        self.pending: Any = actor.ready.remote()

    def send(self, request: bytes, shared: Sequence[Shared[Any]]) -> None:
        digests = [value.key.digest for value in shared]
        self.pending = self._actor.handle.remote(request, digests, *map(self._objects.reference, shared))

    def kill(self) -> None:
        if self.alive:
            self.alive = False
            self.pending = None
            if self._ray.is_initialized():
                self._ray.kill(self._actor, no_restart=True)

    def receive(self) -> Event:
        """Take the reply, which must have come."""
        reply, self.pending = self.pending, None
        try:
            content = self._ray.get(reply)
        except self._ray.exceptions.RayError as error:
            return Died(self, f"Ray lost it ({type(error).__name__})", is_lost=self._is_lost(error))
        if self.node is None:
            self.node = content
            return Reply(self)
        return Reply(self, content)

    def _is_lost(self, error: Exception) -> bool:
        """Whether a worker ended with its node, and not because it could not be started or died by itself."""
        exceptions = self._ray.exceptions
        if isinstance(error, exceptions.RuntimeEnvSetupError) or not isinstance(error, exceptions.RayActorError):
            return False
        if _RUNTIME.local:
            return False
        if isinstance(error, exceptions.ActorUnavailableError):  # Ray itself does not know yet
            return self.node is not None and not _answers(self._ray, self.node)
        return error.preempted or "node has died" in str(error)


class _RayFleet:
    """The Ray actors of one pool.

    Args:
        memory: Bytes that a task needs; None if they are not counted.
        grows: Whether there are as many workers as the cluster has CPUs, also when it gets more.
    """

    def __init__(self, memory: int | None, *, grows: bool) -> None:
        self._ray = _import_ray()
        self._objects = _Objects(self._ray)
        self._grows = grows and not _RUNTIME.local
        self._cpus, self._looked = 1, -math.inf
        self.longest_wait = _LOOK_AROUND if self._grows else 3600.0
        self._links: list[_RayLink] = []
        self._started = 0
        self.start_limit = _START_LIMIT if _RUNTIME.local else math.inf
        # Alone on this machine we count workers ourselves. On a cluster Ray must find a free CPU for each.
        options: dict[str, Any] = {"num_cpus": 0 if _RUNTIME.local else 1, "max_restarts": 0, "max_task_retries": 0}
        if not _RUNTIME.local:
            options |= {"scheduling_strategy": "SPREAD", "runtime_env": {"env_vars": _ENVIRONMENT}}
        if memory is not None:
            options["memory"] = memory
        self._options = options
        self._new_actor = self._ray.remote(_RayWorker)

    def start(self) -> _RayLink:
        self._started += 1
        name = f"apexrl-{os.getpid()}-{id(self):x}-{self._started}"  # as `ray list actors` shows it
        actor = self._new_actor.options(name=name, **self._options).remote(main_module(), list(sys.path))
        link = _RayLink(self._ray, actor, self._objects)
        self._links = [other for other in self._links if other.alive] + [link]
        return link

    def capacity(self) -> int:
        now = time.monotonic()
        if self._grows and now - self._looked >= _LOOK_AROUND:
            self._cpus, self._looked = _RUNTIME.cpus(), now
        return self._cpus

    def wait(self, timeout: float) -> Iterator[Event]:
        pending = {link.pending: link for link in self._links if link.pending is not None}
        if not pending:
            return
        self._ray.wait(list(pending), num_returns=1, timeout=timeout)
        there, _ = self._ray.wait(list(pending), num_returns=len(pending), timeout=0)
        for reply in there:
            if pending[reply].alive:
                yield pending[reply].receive()


class RayExecutor(Executor):
    """Runs tasks in Ray actors. See `Executor`.

    Args:
        workers: The number of actors; on a cluster each takes one CPU. None: one per CPU of the cluster, also of
            nodes that join later, or of this machine.
        address: The cluster, as in ``ray.init(address=…)``; None means ``RAY_ADDRESS``, which ``ray job submit`` sets,
            and without it Ray is started on this machine, without a dashboard. A connection that this program already
            has is used as it is.
        tasks_per_worker: Replace an actor after so many tasks; None for never.
        working_dir: Folder or zip address that Ray copies to every node, as in a runtime environment.
        py_modules: Packages that Ray copies to every node, as in a runtime environment.
        memory_gb: Memory that a task needs; None if it is not counted.
        logs: Whether to show what workers print.

    Raises:
        ModuleNotFoundError: If Ray is not installed.
        ConnectionError: If no cluster answers at the address.
        ConfigurationError: If this program has a connection already and code shall be shipped.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        address: str | None = None,
        tasks_per_worker: int | None = None,
        working_dir: str | None = None,
        py_modules: Sequence[str] = (),
        memory_gb: float | None = None,
        logs: bool = False,
    ) -> None:
        shipped: dict[str, Any] = {} if working_dir is None else {"working_dir": working_dir}
        if py_modules:
            shipped["py_modules"] = list(py_modules)
        count = _RUNTIME.acquire(workers, address, logs, shipped)
        self._holds_runtime = True
        memory = None if memory_gb is None else int(memory_gb * 1e9)
        new_fleet = partial(_RayFleet, memory, grows=workers is None)
        super().__init__(new_fleet, count, tasks_per_worker=tasks_per_worker)

    def close(self) -> None:
        """End all workers, and Ray if it was started for them."""
        super().close()
        if self._holds_runtime:
            self._holds_runtime = False
            _RUNTIME.release()

"""A Ray cluster of several nodes on this machine, to see what a program does when nodes come and go.

>>> with SimulatedCluster([1, 1, 1]) as cluster:            # doctest: +SKIP
...     executor = make_executor("ray", address=cluster.address)
...     cluster.remove(1)  # without grace, as a machine that loses its power
...     cluster.add(1)

Built on ``ray.cluster_utils``, which Ray tests itself with.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

__all__ = ["SimulatedCluster"]

_HOST = "127.0.0.1"
_PORTS = ("metrics_agent_port", "metrics_export_port", "runtime_env_agent_port")
_PATIENCE = {
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_worker_niceness": "0",
}
"""On a busy machine Ray takes slow nodes for dead ones, and a driver waits for ever for a first worker at nice 15."""
_UNUSED_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")


class SimulatedCluster:
    """Ray nodes on this machine, each with its own scheduler, object store and workers.

    Args:
        cpus: CPUs of each node; the first one is the head, which stays.

    Attributes:
        address: What ``ray.init`` and executors connect to.
        nodes: The nodes by their indices; None for one that was removed.
    """

    def __init__(self, cpus: Sequence[int]) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        self.nodes: list[Any] = []
        try:
            for count in cpus:
                self.add(count)
        except BaseException:
            self.close()
            raise
        self.address: str = self._cluster.address

    def add(self, cpus: int = 1) -> int:
        """Add a node and wait until it is up; return its index."""
        with _patient_start():
            node = self._cluster.add_node(num_cpus=cpus, include_dashboard=False, **_free_ports())
        self.nodes.append(node)
        return len(self.nodes) - 1

    def remove(self, index: int) -> None:
        """Kill a node with all that runs on it, without a word to the others."""
        self._cluster.remove_node(self.nodes[index], allow_graceful=False)
        self.nodes[index] = None

    def close(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()  # type: ignore[no-untyped-call]  # Ray's own

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _free_ports() -> dict[str, Any]:
    """Return ports that Ray's agents would otherwise choose themselves."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in _PORTS]
        for one in sockets:
            one.bind((_HOST, 0))
        return {name: one.getsockname()[1] for name, one in zip(_PORTS, sockets, strict=True)}


@contextlib.contextmanager
def _patient_start() -> Iterator[None]:
    """Let a node start on a busy machine.

    Ray's scheduler ends itself when its agents have not written their ports to files after 15 seconds, which no option
    changes (ray-project/ray#65983). The ports of agents that nobody asks here are written before it starts.
    """
    from ray._private import node as ray_node
    from ray._raylet import persist_port  # type: ignore[attr-defined]  # compiled, without stubs

    original = ray_node.Node.start_raylet

    def start_raylet(node: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as Ray's
        for name in _UNUSED_PORTS:
            persist_port(node.get_session_dir_path(), node.node_id, name, -1)
        return original(node, *args, **kwargs)

    with patch.dict(os.environ, _PATIENCE), patch.object(ray_node.Node, "start_raylet", start_raylet):
        yield

"""A Ray cluster whose nodes come and go, and records in object storage: the same results, and what it costs.

A tournament, an evaluation of the arena and an online training are run inline, on a simulated cluster of three nodes
with one CPU each (`apexrl.execution.simulated_cluster`), and there again while nodes are killed without grace and
others join. All results must be the same bytes; what depends on the clock is left out. Nodes share this machine's
CPUs, so the seconds say how much a lost node delays a run, not how fast a cluster is.

A tournament is also published to a small S3 server on this machine while it runs; the copy, the dataset built from the
address and the report of the dashboard are compared with those of the folder.
"""

import contextlib
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from apexrl.execution.simulated_cluster import SimulatedCluster
from benchmarks.chaos import Command, results
from benchmarks.harness import Benchmark, Figure
from benchmarks.local_s3 import local_s3

NODES = 3
_OUT = ("--quiet", "--output-dir", "run")
_SMALL = ("--levels", "2", "--seed", "3")
_ONLINE = ("--layers", "l2", "--l2.dim=8", "--days", "12", "--levels", "2", "--self-every", "2", "--pool.nobody", "0.3")
_POOL = ("--pool.competitors", "RandomStd", "GreedyStd", "--pool.held-out", "SyncRandomStd")
_GATE = ("--gate.every", "4", "--gate.worlds", "4", "--gate.days", "8", "--checkpoint-every", "2", "--seed", "3")
_LITA = "import sys; from lita.main import main; sys.exit(main(sys.argv[1:]))"


def commands(scale: int) -> dict[str, Command]:
    """Return the commands; ``scale`` multiplies their worlds."""
    names = ("--competitors", "RandomStd", "SyncRandomStd", "GreedyStd")
    days, worlds = ("--days", "30", "--levels", "2"), str(8 * scale)
    arena = ("RandomStd", "--against", "GreedyStd", "--opponents", "built-in", "--worlds", worlds, "--no-stop-early")
    return {
        "tournament": Command(
            ("tournament", *names, "--configs", str(8 * scale), "--runs", "1", "--steps", "30", *_SMALL, "--no-csv"),
            ("run/records/**/*", "run/results.json", "run/scores.csv"),
        ),
        "arena": Command(("arena", *arena, *days), ("run/units/*.json", "run/*/report.json")),
        "online training": Command(
            ("train-online", *_ONLINE, "--updates", str(4 * scale), "--worlds", "6", *_POOL, *_GATE),
            ("run/metrics.jsonl", "run/gates.jsonl", "run/weights/*/*.npz", "run/best/*.npz"),
        ),
    }


class Lab:
    """A cluster that is started when it is needed, and what is run on it."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._cluster: SimulatedCluster | None = None

    def close(self) -> None:
        """End the cluster."""
        self._stack.close()

    def run(self, name: str, scale: int, where: str, seed: int = 0) -> dict[str, Any]:
        """Run a command inline, on the calm cluster or on the disturbed one; return what came out of it."""
        command = commands(scale)[name]
        executor = "inline" if where == "inline" else "ray"
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        if where != "inline":
            environment["RAY_ADDRESS"] = self.cluster.address
        watch = Watch(self.cluster, seed if where == "disturbed" else None) if where != "inline" else None
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as said:
            began, cpu = time.monotonic(), _cpu()
            words = [sys.executable, "-c", _LITA, *command.words, *_OUT, "--executor", executor]
            with subprocess.Popen(words, cwd=folder, env=environment, stdout=said, stderr=said) as process:
                if watch is not None:
                    watch.follow(process)
            seconds = time.monotonic() - began
            if process.returncode:
                said.seek(0)
                raise RuntimeError(f"{name}, {where}, failed: {said.read()[-3000:]}")
            made = results(Path(folder), command)
        digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()
        seen = {} if watch is None else {"cpus": watch.cpus, "lost": watch.lost, "added": watch.added}
        return {"digest": digest, "files": len(made), "seconds": seconds, "cpu_seconds": _cpu() - cpu, **seen}

    @property
    def cluster(self) -> SimulatedCluster:
        """The cluster; this process is connected to it too, to see what it does."""
        if self._cluster is None:
            import ray

            self._cluster = self._stack.enter_context(SimulatedCluster([1] * NODES))
            ray.init(address=self._cluster.address, log_to_driver=False, configure_logging=False)
            self._stack.callback(ray.shutdown)
        return self._cluster


class Watch:
    """Counts busy CPUs while a command runs; with a seed it also kills nodes and adds others, again and again."""

    def __init__(self, cluster: SimulatedCluster, seed: int | None) -> None:
        self._cluster, self._draw = cluster, None if seed is None else random.Random(seed)
        self.cpus = self.lost = self.added = 0

    def follow(self, process: subprocess.Popen[Any]) -> None:
        """Watch until a process ends. In the main thread, the only one in which Ray starts nodes."""
        ray: Any = import_module("ray")  # not typed
        calm_until = 0.0  # the first node is lost as soon as all CPUs are busy
        while process.poll() is None:
            time.sleep(0.5)
            total, free = ray.cluster_resources().get("CPU", 0), ray.available_resources().get("CPU", 0)
            self.cpus = max(self.cpus, int(total - free))
            if self._draw is not None and self.cpus >= NODES and time.monotonic() > calm_until:
                self._lose_one(self._draw)
                calm_until = time.monotonic() + self._draw.uniform(10.0, 30.0)

    def _lose_one(self, draw: random.Random) -> None:
        alive = [index for index, node in enumerate(self._cluster.nodes) if node is not None and index]
        self._cluster.remove(draw.choice(alive))
        self.lost += 1
        time.sleep(draw.uniform(0.0, 5.0))
        self._cluster.add(1)
        self.added += 1


def published(scale: int) -> dict[str, Any]:
    """Publish a tournament to a local S3 server while it runs, read it from there, and count differences."""
    from litaagent_std.dashboard.report import make_report, pages_of
    from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
    from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
    from litaagent_std.records.storage.remote import local_path

    cpu, began = _cpu(), time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, local_s3("league") as server:
        os.environ["LITA_CACHE"] = f"{scratch}/cache"
        address, folder = "s3://league/spring", Path(scratch, "run")
        words = [*commands(scale)["tournament"].words, *_OUT, "--executor", "inline", "--shard-size", "8"]
        command = [sys.executable, "-c", _LITA, *words, "--publish-to", address]
        subprocess.run(command, cwd=scratch, env=os.environ | {"PYTHONHASHSEED": "0"}, check=True)
        copy = local_path(address)
        pairs = {"copy": (_files(copy / "records"), _files(folder / "records"))}
        made: dict[str, list[Any]] = {"dataset": [], "report": []}
        sources: tuple[str | Path, ...] = (address, folder)
        for place, source in enumerate(sources):
            build_dataset(source, Path(scratch, f"data{place}"), DatasetOptions(agent_name="Greedy"), num_workers=1)
            made["dataset"].append(_files(Path(scratch, f"data{place}")))
            page = Path(scratch, f"{place}.html")
            make_report(pages_of(local_path(source)), page, title="spring", figures=False)
            made["report"].append(page.read_text(encoding="utf-8").replace(copy.name, folder.name))
        pairs |= {name: (first, second) for name, (first, second) in made.items()}
        different = [name for name, (first, second) in pairs.items() if first != second]
        size = sum(map(len, server.objects.values()))
        manifests = sum(name.endswith("manifest.json") for name in server.written)
    seconds = time.monotonic() - began
    return {
        "different": different,
        "files": len(pairs["copy"][0]),
        "bytes": size,
        "manifests": manifests,
        "seconds": seconds,
        "cpu_seconds": _cpu() - cpu,
    }


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _cpu() -> float:
    """CPU seconds of this process and of its ended children; those of living Ray processes come when they end."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main() -> int:
    """Run what is missing, compare, and report."""
    bench = Benchmark("cluster", __doc__ or "", seeds=range(2))
    scale, repeats = 1, 1 if bench.quick else 2
    lab, figures, hours = Lab(), [], 0.0
    began = _cpu()
    try:
        for name in commands(scale):
            units = {
                place: bench.unit(f"{name}, {place}", lab.run, name=name, scale=scale, where=place)
                for place in ("inline", "calm")
            }
            disturbed = [
                bench.unit(f"{name}, disturbed {seed}", lab.run, name=name, scale=scale, where="disturbed", seed=seed)
                for seed in range(repeats)
            ]
            figures += _figures(name, units["inline"], units["calm"], disturbed)
            hours += sum(unit["cpu_seconds"] for unit in (*units.values(), *disturbed)) / 3600
        storage = bench.unit("published", published, scale=scale)
    finally:
        lab.close()
    hours += storage["cpu_seconds"] / 3600
    note = f"{storage['files']} files, {storage['bytes'] / 1e6:.1f} MB, {storage['manifests']} manifests"
    figures.append(
        Figure(
            name="published: different (copy, dataset, report)",
            value=len(storage["different"]),
            op="==",
            goal=0,
            note=note,
        )
    )
    spent = (_cpu() - began) / 3600
    figures.append(
        Figure(name="CPU hours", value=hours, unit="h", op="<=", goal=0.25, note=f"commands; {spent:.3f} h this start")
    )
    return bench.finish(figures)


def _figures(name: str, inline: dict[str, Any], calm: dict[str, Any], disturbed: list[dict[str, Any]]) -> list[Figure]:
    runs = [calm, *disturbed]
    other = sum(unit["digest"] != inline["digest"] for unit in runs)
    lost = sum(unit["lost"] for unit in disturbed)
    added = sum(unit["added"] for unit in disturbed)
    late = sum(unit["seconds"] - calm["seconds"] for unit in disturbed)
    note = f"{len(runs)} runs, {inline['files']} files each"
    return [
        Figure(name=f"{name}: results other than inline", value=other, op="==", goal=0, note=note),
        Figure(name=f"{name}: CPUs busy at once", value=calm["cpus"], op=">=", goal=NODES, note=f"of {NODES}"),
        Figure(name=f"{name}: nodes lost", value=lost, op=">=", goal=len(disturbed), note=f"{added} added"),
        Figure(
            name=f"{name}: time lost",
            value=late / max(1, lost),
            unit="s per lost node",
            note=f"calm {calm['seconds']:.0f} s",
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())

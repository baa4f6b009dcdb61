"""``make bench-isolation``: agents that attack from an isolated seat, honest agents isolated, and what isolation costs.

Every attack of `hostile_agents` is played from the same seat of the same world. All scores must be those of the world
with a silent agent in that seat, a folder of this machine must be as it was, and this process must not have grown.
Worlds of honest agents are played with all competitors isolated and with none: every event must be the same.

About 0.05 CPU hours; ``--quick`` about half a CPU minute.
"""

from __future__ import annotations

import hashlib
import json
import resource
import socket
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Figure
from benchmarks.hostile_agents import KINDS
from litaagent_std.tournament.competitors.names import resolve
from litaagent_std.world.events import AgentError, WorldObserver
from litaagent_std.world.isolated import isolated_path
from litaagent_std.world.isolated.process import SeatProcess, missing_isolation
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.trace import Trace
from litaagent_std.world.setup import AgentSpec, WorldSetup, official_setup

QUICK = ("Exits", "MemoryBomb", "ForkBomb", "DeletesFiles", "ReadsFiles", "Connects", "KillsParent", "HugeOffers")
HONEST = {
    "defaults": (("RandomStd", "GreedyStd", "SyncRandomStd"), 20),
    "lita": (("lita", "PenguinAgent"), 10),
    "finalists 2024": (("PenguinAgent", "CautiousStdAgent", "DogAgent", "QuickDecisionAgent"), 10),
    "finalists 2025": (("AS0", "XenoSotaAgent", "PriceTrendStdAgent", "UltraSuperMiracleSoraFinalAgentZ"), 10),
    "finalists 2026": (("TakaLinkAgent", "COW", "HorizonAwareAgent", "SBD"), 10),
    "shared state": (("LitaAgentYR",), 10),
}
"""Worlds of honest agents: competitors and days. LitaAgentYR sits in several seats, which share its module's state."""


class _Errors(WorldObserver):
    """Keeps the exceptions of one seat."""

    def __init__(self, seat: int) -> None:
        self._prefix = f"{seat:02}"
        self.texts: list[str] = []

    def on_error(self, event: AgentError) -> None:
        """Keep an exception."""
        if event.agent.startswith(self._prefix):
            self.texts.append(f"{event.where}: {event.kind}: {event.message[:200]}")


def hostile_world(kind: str, target: str, port: int, seed: int) -> tuple[WorldSetup, int]:
    """Return a short world with an attacker in an isolated seat among honest agents, and the seat."""
    path = isolated_path(f"benchmarks.hostile_agents.{kind}")
    honest = AgentSpec("scml.std.agents.rand.SyncRandomStdAgent")
    setup = replace(official_setup(seed, [honest] * 3, n_days=5, n_levels=2, n_competitors=3), neutral_names=True)
    seat = next(index for index, agent in enumerate(setup.agents) if agent.competitor)
    return setup.with_agents({seat: AgentSpec(path, {"target": list(target), "port": port}, competitor=True)}), seat


def play_hostile(kind: str, seed: int) -> dict[str, Any]:
    """Play a world with an attacker; return all scores, its exceptions, and whether this machine is as it was."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        Path(folder, "secret.txt").write_text("nobody's business")
        Path(folder, "records").mkdir()
        Path(folder, "records", "00000.parquet").write_bytes(bytes(1000))
        before, memory = digest_folder(Path(folder)), _memory()
        setup, seat = hostile_world(kind, folder, server.getsockname()[1], seed)
        errors = _Errors(seat)
        began = time.process_time()
        with silence():
            end = run_world(setup, observers=[errors], defaults="native")
        return {
            "scores": [end.scores[name] for name in sorted(end.scores)],
            "days": end.days,
            "errors": errors.texts[:5],
            "n_errors": len(errors.texts),
            "untouched": digest_folder(Path(folder)) == before,
            "grown_mb": max(0.0, _memory() - memory),
            "cpu_seconds": time.process_time() - began,
        }


def digest_folder(folder: Path) -> str:
    """Digest names, sizes, modes and contents of all that is in a folder."""
    facts = [
        (str(path.relative_to(folder)), path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _memory() -> float:
    """Return the largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def play_honest(names: list[str], days: int, seed: int) -> dict[str, Any]:
    """Play a world with all competitors isolated, and with none; return whether all events are equal, and the cost."""
    specs = [competitor.spec for competitor in resolve(names)]
    setup = official_setup(seed, specs, n_days=days, n_levels=3, n_competitors=4)
    isolated = {
        seat: replace(agent, path=isolated_path(agent.path))
        for seat, agent in enumerate(setup.agents)
        if agent.competitor
    }
    for agent in (*setup.agents, *isolated.values()):
        agent.load()  # imports are no part of the cost
    plain, plain_cost = _played(setup)
    apart, apart_cost = _played(setup.with_agents(isolated))
    return {
        "equal": plain.digest == apart.digest,
        "events": sum(plain.counts.values()),
        "errors": [plain.counts.get("on_error", 0), apart.counts.get("on_error", 0)],
        "cpu_seconds": [plain_cost, apart_cost],
        "days": days,
        "seats": len(isolated),
    }


def _played(setup: WorldSetup) -> tuple[Trace, float]:
    """Play a world; return its events and its CPU seconds, those of isolated agents included."""
    spent = [0.0]
    end = SeatProcess.end

    def counted(process: SeatProcess) -> None:
        spent[0] += process.cpu_seconds if process not in seen else 0.0
        seen.add(process)
        end(process)

    seen: set[SeatProcess] = set()
    trace = Trace()
    SeatProcess.end = counted  # type: ignore[method-assign, assignment]  # measured where it ends
    began = time.process_time()
    try:
        with silence():
            run_world(setup, observers=[trace], defaults="native")
    finally:
        SeatProcess.end = end  # type: ignore[method-assign]
    return trace, time.process_time() - began + spent[0]


def main() -> int:
    """Play all attacks and all honest worlds, and compare."""
    restart_with_fixed_hashing()
    bench = Benchmark("isolation", __doc__ or "", seeds=[3])
    if missing := missing_isolation():
        print(f"this system cannot isolate agents: it lacks {missing}; the attacks are not played", file=sys.stderr)
        return 1
    kinds = QUICK if bench.quick else KINDS
    silent = bench.unit("hostile Silent", play_hostile, kind="Silent", seed=3)
    attacks = {kind: bench.unit(f"hostile {kind}", play_hostile, kind=kind, seed=3) for kind in kinds}
    worlds = {"defaults": (("RandomStd", "SyncRandomStd"), 8)} if bench.quick else HONEST
    honest = {
        name: bench.unit(f"honest {name}", play_honest, names=list(names), days=days, seed=5)
        for name, (names, days) in worlds.items()
    }
    equal = [kind for kind, result in attacks.items() if result["scores"] == silent["scores"] and result["days"] == 5]
    seen = [kind for kind, result in attacks.items() if any("could " in text for text in result["errors"])]
    figures = [
        Figure(name="attacks", value=len(attacks), op=">=", goal=None if bench.quick else 30),
        Figure(
            name="attacks after which all scores are those beside a silent agent",
            value=len(equal),
            op="==",
            goal=len(attacks),
        ),
        Figure(
            name="attacks that left the host's folder as it was",
            value=sum(r["untouched"] for r in attacks.values()),
            op="==",
            goal=len(attacks),
        ),
        Figure(name="attacks that saw files, network, processes or the world", value=len(seen), op="==", goal=0),
        Figure(
            name="largest growth of the host",
            value=max(r["grown_mb"] for r in attacks.values()),
            unit="MB",
            op="<=",
            goal=64.0,
        ),
        Figure(
            name="worlds of honest agents, every event equal",
            value=sum(r["equal"] for r in honest.values()),
            op="==",
            goal=len(honest),
        ),
    ]
    for name, result in honest.items():
        plain, apart = result["cpu_seconds"]
        per_day = 1000 * (apart - plain) / result["days"] / result["seats"]
        note = f"{plain:.1f} s and {apart:.1f} s CPU, {result['seats']} seats, {result['days']} days"
        figures.append(Figure(name=f"{name}: cost of isolation", value=per_day, unit="ms per seat and day", note=note))
    details = {kind: {"equal": kind in equal, "errors": attacks[kind]["errors"]} for kind in attacks}
    return bench.finish(figures, attacks=json.loads(json.dumps(details)))


if __name__ == "__main__":
    sys.exit(main())

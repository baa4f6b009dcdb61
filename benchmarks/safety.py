"""Whether the agent ever does what it must not: short worlds of the official mix with it in every competitor's seat.

Every offer and acceptance is taken from the agent's own mouth and held against legal ranges, lines and cash, computed
anew from the world's events (`benchmarks.audit`). At a risk budget of 0 sales must be covered by input too. Networks of
L2, L3 and L4 with random weights may ask for anything: what they do is L1's to bound.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.audit import Auditor, audited_path
from benchmarks.harness import Benchmark, Figure
from litaagent_std.arena.seeds import seed_block
from litaagent_std.arena.units import code_version
from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS, Hierarchy
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.tournament.competitors.names import opponents
from litaagent_std.tournament.competitors.registry import OURS
from litaagent_std.world.reproducible.hashing import fixed_for_workers
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup

AGENT = OURS["lita"]
CAUTIOUS = "litaagent_std.agents.variants.LitaAgentCautious"
BLOCK = "gate:safety"
SETTINGS: dict[str, dict[str, Any]] = {
    "shipped": {},
    "shipped, stock depletes": {"inventory": "depleting"},
    "shipped, among finalists": {"finalists": True},
    "risk budget 0": {"cautious": True},
    "random networks": {"networks": True},
}
WORLDS = {
    "shipped": 500,
    "shipped, stock depletes": 250,
    "shipped, among finalists": 50,
    "risk budget 0": 250,
    "random networks": 1000,
}
NETWORK_WIDTH = 16
DAYS = (20, 50)
NETWORK_DAYS = (10, 20)
"""Shorter worlds, because networks of L3 and L4 take three times as long as the rest of the agent."""
PER_UNIT = 25


def play(
    first: int,
    count: int,
    days: tuple[int, int],
    code: str,
    inventory: str = "as_shipped",
    finalists: bool = False,
    cautious: bool = False,
    networks: bool = False,
) -> dict[str, Any]:
    """Play some worlds and audit each; ``code`` is the version of the audited agent: another one is played anew."""
    with tempfile.TemporaryDirectory() as folder:
        params = {"weights": str(random_networks(first).save(Path(folder)))} if networks else {}
        ours = AgentSpec(audited_path(CAUTIOUS if cautious else AGENT), params)
        return _play(ours, range(first, first + count), days, inventory, finalists=finalists, covered=cautious)


def random_networks(seed: int) -> Hierarchy:
    """Return networks of L2, L3 and L4 whose last layers, zero in new networks, are drawn at random."""
    rng = np.random.default_rng(seed)
    hierarchy = untrained(LAYERS, seed, dict.fromkeys(LAYERS, NETWORK_WIDTH))
    nets = {
        layer: replace(
            weights,
            arrays={
                name: array if array.any() else rng.normal(size=array.shape).astype(array.dtype)
                for name, array in weights.arrays.items()
            },
        )
        for layer, weights in hierarchy.nets.items()
    }
    return replace(hierarchy, nets=nets)


def _play(
    ours: AgentSpec, indices: Iterable[int], days: tuple[int, int], inventory: str, *, finalists: bool, covered: bool
) -> dict[str, Any]:
    block = seed_block(BLOCK)
    others = opponents(("finalists-2024", "finalists-2025", "finalists-2026"), integer_offers=True) if finalists else ()
    total: Counter[str] = Counter()
    shortfall: list[float] = []
    words: list[str] = []
    for index in indices:
        if finalists:  # every second factory is ours, the others are finalists': no default agents
            setup = official_setup(block.seed(index), others, n_days=tuple(days), fill="competitors")
            setup = setup.with_agents({seat: ours for seat in range(0, setup.n_seats, 2)})
        else:
            setup = official_setup(block.seed(index), [ours], n_days=tuple(days))
        with Auditor(covered=covered) as audit, silence():
            run_world(setup, observers=[audit], inventory=inventory, defaults="native")  # type: ignore[arg-type]
        total += Counter({f"unsafe/{kind}": number for kind, number in audit.violations.items()})
        total += Counter(
            {
                "worlds": 1,
                "seats": len(audit.shortfall),
                "checked": audit.checked,
                "exceptions": len(audit.errors),
                "oversold": audit.oversold,
                "shortfall_units": audit.shortfall_units,
            }
        )
        shortfall += audit.shortfall.values()
        words += audit.examples + audit.errors
    return {"total": dict(total), "shortfall": shortfall, "examples": words[:10]}


def plan(quick: bool) -> dict[str, dict[str, Any]]:
    """Return the units of every setting: some worlds each."""
    units = {}
    for setting, options in SETTINGS.items():
        code = code_version(AgentSpec(CAUTIOUS if options.get("cautious") else AGENT))
        length = NETWORK_DAYS if options.get("networks") else DAYS
        worlds, size, days = (WORLDS[setting], PER_UNIT, length) if not quick else (2, 2, (10, 15))
        for first in range(0, worlds, size):
            key = f"{setting.replace(' ', '-').replace(',', '')}-{first:04d}"
            units[key] = {"first": first, "count": size, "days": list(days), "code": code, **options}
    return units


def report(results: Mapping[str, Mapping[str, Any]]) -> list[Figure]:
    """Figures of every setting: what must be 0 beside its goal, and the shortfall."""
    figures = []
    for setting in SETTINGS:
        name = setting.replace(" ", "-").replace(",", "")
        units = [unit for key, unit in results.items() if key.rpartition("-")[0] == name]
        total = sum((Counter(unit["total"]) for unit in units), Counter())
        kinds = ", ".join(f"{total[f'unsafe/{kind}']} {kind}" for kind in ("illegal", "lines", "cash", "input"))
        counted = f"{kinds}; of {total['checked']} in {total['seats']} seats of {total['worlds']} worlds"
        unsafe = sum(number for kind, number in total.items() if kind.startswith("unsafe/"))
        figures += [
            Figure(name=f"{setting}: unsafe actions", value=unsafe, op="==", goal=0, note=counted),
            Figure(name=f"{setting}: exceptions", value=total["exceptions"], op="==", goal=0),
            *_shortfall(setting, total, [share for unit in units for share in unit["shortfall"]]),
        ]
    return figures


def _shortfall(setting: str, total: Mapping[str, int], shares: Sequence[float]) -> Iterable[Figure]:
    values = np.asarray(shares or [np.nan])
    note = (
        f"per seat and world; 95 % quantile {100 * np.quantile(values, 0.95):.2f} %, {total['shortfall_units']} units"
    )
    yield Figure(
        name=f"{setting}: shortfall penalties",
        value=float(100 * values.mean()),
        unit="% of the start balance",
        note=note,
    )
    goal = 0 if SETTINGS[setting].get("cautious") else None
    note = "sold beyond the lines in negotiations"
    yield Figure(name=f"{setting}: oversold days", value=total["oversold"], op="==", goal=goal, note=note)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    bench = Benchmark("safety", "Unsafe actions, exceptions and shortfall in short worlds.", argv=argv)
    units = plan(bench.quick)
    with fixed_for_workers():
        results = bench.units(play, units)
    examples = [text for unit in results.values() for text in unit["examples"]]
    return bench.finish(report(results), block=BLOCK, code=code_version(AgentSpec(AGENT)), examples=examples[:20])


if __name__ == "__main__":
    sys.exit(main())

"""Rank in scml's own tournament: `anac2024_std` with the finalists of 2024 to 2026 and ours, in scml's own engine.

The official tournament plays every set of competitors on every configuration, which for sixteen competitors is
thousands of worlds. Here a batch draws one configuration and deals all competitors into sets, so that everyone plays
the same seats of the same configuration; each set is a small tournament of its own and a unit of this benchmark. See
docs/league/strength.md.
"""

import argparse
import contextlib
import fnmatch
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from negmas.helpers.rand import seed_all
from scml.utils import anac2024_std

from apexrl.statistics import resample, truncated_mean
from benchmarks import cast_finalists
from benchmarks.harness import Benchmark, Figure
from litaagent_std.arena.units import code_version
from litaagent_std.tournament.competitors.registry import OURS, YEARS, finalists
from litaagent_std.world.reproducible.hashing import fixed_for_workers
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.setup import AgentSpec

LITA = OURS["lita"]
WORLDS = 400
GOAL = 0.99
BOOTSTRAPS = 2000
VARIANTS = {"as shipped": False, "whole numbers": True}
FAST = {"compact": True, "sync_calls": True, "saved_details_level": 0}
"""Options of scml's that leave the scores as they are and cost less."""
BOOKKEEPING = (
    "negmas.tournaments.tournaments.save_stats",
    "negmas.situated.world.World._make_negotiation_record",
)
"""What scml writes to disk after every day and keeps of every negotiation for it: half of a world's time, for files
that nobody reads here."""


def roster() -> dict[str, str]:
    """Class paths of all competitors by name, ours first."""
    paths = [LITA, *(path for year in YEARS for path in finalists(year))]
    return {path.rpartition(".")[2]: path for path in paths}


def deal(names: Sequence[str], batch: int) -> list[tuple[list[str], int]]:
    """Deal the competitors of a batch into sets of equal size, which is drawn from 2 to 4 as in the league.

    Returns:
        The sets, and how many members of each count; the others fill up the last set and do not count there.
    """
    rng = random.Random(batch)
    size = rng.randint(2, 4)
    order = rng.sample(list(names), len(names))
    sets = []
    for first in range(0, len(order), size):
        own = order[first : first + size]
        others = rng.sample([name for name in order if name not in own], size - len(own))
        sets.append(([*own, *others], len(own)))
    return sets


def _nothing(*args: object, **kwargs: object) -> dict[str, Any]:
    """Stand for bookkeeping; unlike a mock it keeps no call, and with it no negotiation, alive."""
    return {}


@contextlib.contextmanager
def no_bookkeeping() -> Iterator[None]:
    """Keep scml from writing its files; no score depends on them."""
    with contextlib.ExitStack() as stack:
        for target in BOOKKEEPING:
            stack.enter_context(patch(target, _nothing))
        yield


def play(
    names: list[str], counted: int, seed: int, integer: bool, code: str, days: int | None = None
) -> dict[str, Any]:
    """Play a set's tournament; ``code`` is the version of our agent, or of the others where it does not take part."""
    known = roster()
    paths = [f"{cast_finalists.__name__}.{name}" if integer and known[name] != LITA else known[name] for name in names]
    short = {} if days is None else {"n_steps": days, "n_processes": 2}
    with tempfile.TemporaryDirectory() as folder, silence(), no_bookkeeping():
        seed_all(seed)
        outcome = anac2024_std(
            paths,
            n_configs=1,
            n_competitors_per_world=len(paths),
            tournament_path=folder,
            parallelism="serial",
            forced_logs_fraction=0.0,
            name="batch",
            **FAST,
            **short,
        )
        config = _config_digest(Path(folder))
    rows = zip(outcome.scores["agent_type"], outcome.scores["agent_id"], outcome.scores["score"], strict=True)
    scores = [[kind.rpartition(".")[2], seat, float(score)] for kind, seat, score in rows]
    return {
        "config": config,
        "worlds": int(outcome.scores["world"].nunique()),
        "scores": [row for row in scores if row[0] in names[:counted]],
    }


def _config_digest(folder: Path) -> str:
    """Name the configuration: what scml's generator drew; world names and contracts' ids hold the time of day."""
    [path] = folder.rglob("base_configs.*")
    [[config]] = json.loads(path.read_text(encoding="utf-8"))
    exact = config["world_params"]["__exact_params"]
    drawn = [exact[name] for name in ("catalog_prices", "initial_balance", "n_steps", "price_multiplier", "profiles")]
    text = json.dumps([config["agent_types"], *drawn], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plan(quick: bool, worlds: int, code: str) -> dict[str, dict[str, Any]]:
    """Return the units of every variant: whole batches up to the number of worlds; one set each of a quick run."""
    ours = LITA.rpartition(".")[2]
    units: dict[str, dict[str, Any]] = {}
    for variant, integer in VARIANTS.items():
        planned, batch = 0, 0
        while planned < (1 if quick else worlds):
            for number, (names, counted) in enumerate(deal(list(roster()), batch)):
                key = f"{variant.replace(' ', '-')}-{batch:03d}-{number}"
                version = code if ours in names else code_version(AgentSpec(finalists(YEARS[0])[0]))
                units[key] = {"names": names, "counted": counted, "seed": batch, "integer": integer, "code": version}
                planned += len(names)
                if quick:
                    units[key] |= {"names": [ours, "PenguinAgent"], "counted": 2, "days": 8, "code": code}
                    break
            batch += 1
    return units


def whole_batches(results: Mapping[str, dict[str, Any] | None]) -> dict[str, dict[str, Any]]:
    """Results of the batches of which every set is played: in a part of one not everybody has a score."""
    unfinished = {key.rpartition("-")[0] for key, result in results.items() if result is None}
    return {
        key: result
        for key, result in results.items()
        if result is not None and key.rpartition("-")[0] not in unfinished
    }


def batches_of(results: Mapping[str, Mapping[str, Any]], variant: str) -> list[dict[str, list[float]]]:
    """Every batch's scores by competitor.

    Raises:
        ValueError: If the sets of a batch have not played the same configuration.
    """
    batches: dict[str, dict[str, list[float]]] = {}
    configs: dict[str, set[str]] = {}
    for key, one in results.items():
        name, batch, _ = key.rsplit("-", 2)
        if name != variant.replace(" ", "-"):
            continue
        configs.setdefault(batch, set()).add(one["config"])
        for competitor, _, score in one["scores"]:
            batches.setdefault(batch, {}).setdefault(competitor, []).append(score)
    wrong = [batch for batch, some in configs.items() if len(some) > 1]
    if wrong:
        raise ValueError(f"the sets of batches {wrong} played different configurations; run them again with --fresh")
    return [batches[batch] for batch in sorted(batches)]


def standings(batches: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, float]:
    """Return the official metric of every competitor over some batches, from the best on."""
    names = sorted({name for batch in batches for name in batch})
    scores = {name: np.array([score for batch in batches for score in batch.get(name, ())]) for name in names}
    values = {name: truncated_mean(own) for name, own in scores.items() if own.size}
    return dict(sorted(values.items(), key=lambda item: -item[1]))


def probability_of_first(batches: Sequence[Mapping[str, Sequence[float]]], name: str) -> float:
    """Share of bootstrap samples of the batches in which a competitor comes first."""
    wins = 0
    for chosen in resample(len(batches), BOOTSTRAPS):
        wins += next(iter(standings([batches[index] for index in chosen]))) == name
    return wins / BOOTSTRAPS


def report(results: Mapping[str, Mapping[str, Any]], *, quick: bool = False) -> Iterator[Figure]:
    """Rank and probability of being first of every variant, and everyone's result."""
    name = LITA.rpartition(".")[2]
    for variant in VARIANTS:
        batches = batches_of(results, variant)
        table = standings(batches)
        worlds = sum(one["worlds"] for key, one in results.items() if key.startswith(variant.replace(" ", "-")))
        note = f"{worlds} worlds, {len(batches)} configurations"
        goals: dict[str, float | None] = (
            {"worlds": WORLDS, "first": GOAL} if not quick else dict.fromkeys(["worlds", "first"])
        )
        yield Figure(name=f"{variant}: worlds", value=worlds, op=">=", goal=goals["worlds"])
        if not batches:
            continue
        yield Figure(name=f"{variant}: our rank", value=1 + list(table).index(name), note=f"of {len(table)}; {note}")
        chance = probability_of_first(batches, name)
        yield Figure(name=f"{variant}: probability of being first", value=chance, op=">=", goal=None if quick else GOAL)
        for rank, (competitor, score) in enumerate(table.items(), start=1):
            number = sum(len(batch.get(competitor, ())) for batch in batches)
            yield Figure(name=f"{variant}: {rank}. {competitor}", value=score, note=f"{number} scores")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--worlds", type=int, default=WORLDS, help=f"worlds per variant at least (default {WORLDS})")
    parser.add_argument("--only", default="*", help="which to play now, such as 'as-shipped-*'; the table shows all")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    bench = Benchmark("anac", "Rank in scml's own tournament.", argv=argv, add_options=add_options)
    units = plan(bench.quick, bench.options.worlds, code_version(AgentSpec(LITA)))
    wanted = {key: unit for key, unit in units.items() if fnmatch.fnmatch(key, bench.options.only)}
    with fixed_for_workers():
        played = bench.units(play, wanted)
    results = {key: played.get(key) or bench.finished(key, **unit) for key, unit in units.items()}
    figures = list(report(whole_batches(results), quick=bench.quick))
    return bench.finish(figures, code=code_version(AgentSpec(LITA)))


if __name__ == "__main__":
    sys.exit(main())

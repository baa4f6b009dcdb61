"""The plan of a tournament: a pure function of its configuration.

Every configuration of the market has competitors' seats. Competitors rotate through them: in world j of a
configuration, seat s belongs to the competitor at position (j + s) of an order that is drawn for the configuration.
After as many worlds as there are competitors, each has played once in every seat, in the same market with the same
randomness. That makes their scores comparable; fewer worlds than competitors are therefore refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from apexrl.runs.errors import ConfigurationError
from litaagent_std.tournament.config import TournamentConfig

__all__ = ["Plan", "WorldSpec", "make_plan"]

OFFICIAL_SEATS: Final = (2, 4)
"""Competitors' seats in a world of the official mix, least and most."""


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """A world of the plan.

    Attributes:
        world: Its number.
        config: Number of its configuration.
        run: Which run of the configuration.
        rotation: Which assignment of competitors to seats.
        config_seed: Seed that the configuration is drawn with.
        seed: Seed of the world; the same for all assignments of a configuration and run.
        seats: Number of the competitor in each competitors' seat, in seat order.
    """

    world: int
    config: int
    run: int
    rotation: int
    config_seed: int
    seed: int
    seats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """All worlds of a tournament.

    Attributes:
        worlds: In the order of their numbers.
        formula: Their number, worked out.
    """

    worlds: tuple[WorldSpec, ...]
    formula: str


def make_plan(config: TournamentConfig, n_competitors: int) -> Plan:
    """Plan all worlds.

    Args:
        config: The tournament.
        n_competitors: How many compete.

    Raises:
        ConfigurationError: If the numbers do not allow a fair tournament.
    """
    _check(config, n_competitors)
    per_config = sum(1 for _ in _assignments(config, n_competitors, 0))
    configs = config.configs
    if config.target_worlds is not None:
        configs = -(-config.target_worlds // (config.runs * per_config))
    worlds: list[WorldSpec] = []
    for index in range(configs):
        assignments = list(_assignments(config, n_competitors, index))
        for run in range(config.runs):
            for rotation, seats in enumerate(assignments):
                seeds = (_seed(config.seed, 0, index), _seed(config.seed, 1, index, run))
                worlds.append(WorldSpec(len(worlds), index, run, rotation, *seeds, seats))
    formula = f"{configs} configurations x {config.runs} runs x {per_config} worlds each = {len(worlds)} worlds"
    return Plan(tuple(worlds), formula)


def _check(config: TournamentConfig, n_competitors: int) -> None:
    seats = config.n_competitors_per_world
    if config.official_mix and seats is not None:
        raise ConfigurationError(
            f"--official-mix and --n-competitors-per-world {seats} are both given",
            "the official mix draws 2 to 4 seats for every configuration",
            "leave one of them out",
        )
    if seats is not None and seats > n_competitors:
        raise ConfigurationError(
            f"--n-competitors-per-world {seats} is more than the {n_competitors} competitors",
            "a competitor takes one seat in a world",
            f"choose at most {n_competitors}",
        )
    if config.round_robin and config.official_mix:
        raise ConfigurationError(
            "--round-robin and --official-mix are both given",
            "a round robin needs the same number of seats in every world",
            "use --n-competitors-per-world with --round-robin",
        )
    least = n_competitors if not config.round_robin else _round_robin_worlds(n_competitors, seats or n_competitors)
    if config.max_worlds_per_config is not None and config.max_worlds_per_config < least:
        why = (
            f"a round robin of {n_competitors} competitors in {seats or n_competitors} seats takes {least} worlds"
            if config.round_robin
            else f"an assignment is fair only when each of the {n_competitors} competitors plays every seat of a "
            f"configuration equally often, which takes {least} worlds"
        )
        raise ConfigurationError(
            f"--max-worlds-per-config {config.max_worlds_per_config} is too few",
            why,
            f"use --max-worlds-per-config {least} or more, or fewer competitors",
        )


def _round_robin_worlds(n_competitors: int, seats: int) -> int:
    return math.comb(n_competitors, seats) * seats


def _assignments(config: TournamentConfig, n: int, index: int) -> Iterator[tuple[int, ...]]:
    """Yield the competitors by seat, for every world of a configuration and run."""
    rng = _generator(config.seed, 2, index)
    seats = config.n_competitors_per_world or n
    if config.official_mix:
        seats = min(n, int(rng.integers(OFFICIAL_SEATS[0], OFFICIAL_SEATS[1] + 1)))
    if config.round_robin:
        for chosen in combinations(range(n), seats):
            order = [chosen[index] for index in rng.permutation(seats)]
            yield from (tuple(order[(turn + seat) % seats] for seat in range(seats)) for turn in range(seats))
        return
    for _ in range((config.max_worlds_per_config or n) // n):
        order = [int(index) for index in rng.permutation(n)]
        yield from (tuple(order[(turn + seat) % n] for seat in range(seats)) for turn in range(n))


def _generator(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))


def _seed(*key: int) -> int:
    """Return a seed of 62 bits that depends on the key alone."""
    words = np.random.SeedSequence(key).generate_state(2)
    return (int(words[0]) << 32 | int(words[1])) >> 2

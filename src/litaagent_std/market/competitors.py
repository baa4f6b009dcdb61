"""The Standard agents of 2024 to 2026 that scml-agents ships, by the paths of their classes.

The paths come from the package's registry. Its modules are never walked: several of them run whole
tournaments when imported.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from litaagent_std.market.world.streams import install

install()  # agents bind the functions of random and numpy.random when they are imported

from scml_agents import get_agents  # noqa: E402

__all__ = ["YEARS", "all_paths", "finalists", "paths_of_year"]

YEARS: Final = (2024, 2025, 2026)


@cache
def paths_of_year(year: int) -> tuple[str, ...]:
    """Returns the class paths of one year's Standard agents, in the registry's order.

    Raises:
        ValueError: If the Standard league of that year is not supported.
    """
    if year not in YEARS:
        raise ValueError(f"no Standard agents of {year} here; choose from {YEARS}")
    return _registered(year)


def all_paths() -> tuple[str, ...]:
    """Returns the class paths of all Standard agents, year by year."""
    return tuple(path for year in YEARS for path in paths_of_year(year))


@cache
def finalists() -> tuple[str, ...]:
    """Returns the class paths of all agents that reached a final, year by year."""
    return tuple(path for year in YEARS for path in _registered(year, finalists_only=True))


def _registered(year: int, **options: bool) -> tuple[str, ...]:
    return tuple(f"{agent.__module__}.{agent.__qualname__}" for agent in get_agents(year, track="std", **options))

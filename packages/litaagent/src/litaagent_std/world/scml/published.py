"""The published Standard agents, from the registry of scml-agents.

Its modules are never walked: several of them run whole tournaments when imported.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from apexrl.runs.errors import ConfigurationError
from litaagent_std.world.reproducible.streams import install

install()  # agents bind the functions of random and numpy.random when they are imported

__all__ = ["INSTALL", "YEARS", "all_paths", "finalists", "paths_of_year", "published_agents_installed", "ranking"]

YEARS: Final = (2024, 2025, 2026)
"""Years of the Standard league with published agents."""

INSTALL: Final = "pip install --no-deps scml-agents"
"""How to install the published agents: with its dependencies the package pulls tensorflow, which none of them uses."""


def published_agents_installed() -> bool:
    """Tell whether the package with the published agents is installed."""
    return find_spec("scml_agents") is not None


@cache
def paths_of_year(year: int) -> tuple[str, ...]:
    """Return the class paths of one year's Standard agents, in the registry's order.

    Raises:
        ValueError: If the Standard league of that year is not supported.
    """
    _require(year)
    return tuple(f"{agent.__module__}.{agent.__qualname__}" for agent in _registry(year, as_class=True))


def all_paths() -> tuple[str, ...]:
    """Return the class paths of all Standard agents, year by year."""
    return tuple(path for year in YEARS for path in paths_of_year(year))


@cache
def finalists(year: int) -> tuple[str, ...]:
    """Return the class paths of a year's finalists, in the registry's order (of 2026: by team, not by rank)."""
    _require(year)
    return _registry(year, finalists_only=True)


@cache
def ranking(year: int) -> tuple[str, ...]:
    """Return the class paths of a year from the best to the worst: finalists, other qualified agents, the rest."""
    _require(year)
    return tuple(dict.fromkeys([*finalists(year), *_registry(year, qualified_only=True), *_registry(year)]))


def _registry(year: int, *, as_class: bool = False, **which: bool) -> tuple[Any, ...]:
    if not published_agents_installed():
        raise ConfigurationError(
            "the package scml-agents is not installed",
            f"it holds the league's agents of {YEARS[0]} to {YEARS[-1]}",
            f"install it: {INSTALL}",
        )
    from scml_agents import get_agents  # here, because importing it takes seconds

    return tuple(get_agents(year, track="std", as_class=as_class, **which))


def _require(year: int) -> None:
    if year not in YEARS:
        raise ValueError(f"no Standard agents of {year} here; choose from {YEARS}")

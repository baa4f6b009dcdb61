"""Who plays: the Standard agents of 2024 to 2026 by year and rank, built-ins, ours, and any class by its path.

The paths come from the registry of scml-agents. Its modules are never walked: several of them run whole
tournaments when imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from apexrl.runs.errors import ConfigurationError
from litaagent_std.tournament.competitors.integer_offers import integer_path, original_path
from litaagent_std.world.reproducible.streams import install
from litaagent_std.world.setup import AgentSpec

install()  # agents bind the functions of random and numpy.random when they are imported

__all__ = [
    "BUILT_IN",
    "GROUPS",
    "LITA_2025",
    "YEARS",
    "Competitor",
    "all_paths",
    "default_roster",
    "finalists",
    "paths_of_year",
    "ranking",
    "resolve",
]

YEARS: Final = (2024, 2025, 2026)

BUILT_IN: Final = {
    "RandomStd": "scml.std.agents.rand.RandomStdAgent",
    "SyncRandomStd": "scml.std.agents.rand.SyncRandomStdAgent",
    "GreedyStd": "scml.std.agents.greedy.GreedyStdAgent",
}
"""The league's default agents. (The "Decay" agent of document 001 is no more in scml 0.8.)"""

_TEAM_276: Final = "scml_agents.scml2025.standard.team_276.litaagent_std"
LITA_2025: Final = {
    "LitaAgentY": f"{_TEAM_276}.litaagent_y.LitaAgentY",
    "LitaAgentYR": f"{_TEAM_276}.litaagent_yr.LitaAgentYR",
    "LitaAgentCIR": f"{_TEAM_276}.litaagent_cir.LitaAgentCIR",
    "LitaAgentN": f"{_TEAM_276}.litaagent_n.LitaAgentN",
    "LitaAgentP": f"{_TEAM_276}.litaagent_p.LitaAgentP",
}
"""The LitaAgent family of 2025 (team 276)."""

GROUPS: Final = (
    "built-in",
    "lita-2025",
    *(f"{kind}-{year}" for year in YEARS for kind in ("top", "finalists", "all")),
)
"""Names that stand for several competitors; ``top-2025:3`` is the first three of ``top-2025``."""

_INTEGER: Final = "int:"


@dataclass(frozen=True, slots=True)
class Competitor:
    """An agent that takes part.

    Attributes:
        name: How results call it; unique in a tournament.
        path: The path of its class, a casting one where offers are to be whole numbers.
    """

    name: str
    path: str

    def spec(self) -> AgentSpec:
        """Return the seat's agent."""
        return AgentSpec(self.path, competitor=True)


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
    """Return the class paths of a year from the best on: finalists, then the other qualified, then the rest."""
    _require(year)
    return tuple(dict.fromkeys([*finalists(year), *_registry(year, qualified_only=True), *_registry(year)]))


def _registry(year: int, *, as_class: bool = False, **which: bool) -> tuple[Any, ...]:
    from scml_agents import get_agents  # here, because importing it takes seconds and built-ins do not need it

    return tuple(get_agents(year, track="std", as_class=as_class, **which))


def _require(year: int) -> None:
    if year not in YEARS:
        raise ValueError(f"no Standard agents of {year} here; choose from {YEARS}")


def default_roster(max_top_2025: int = 5, max_top_2024: int = 5) -> tuple[str, ...]:
    """Return the names of document 000's competitors.

    Args:
        max_top_2025: How many of the best of 2025.
        max_top_2024: How many of the best of 2024.
    """
    best = (f"top-2025:{max_top_2025}", f"top-2024:{max_top_2024}")
    return ("lita-2025", *best, "RandomStd", "SyncRandomStd")


def resolve(names: Sequence[str], *, integer_offers: bool = True) -> tuple[Competitor, ...]:
    """Find the competitors that names stand for, each once, in the order of the names.

    Args:
        names: Groups, built-ins, members of the LitaAgent family, or ``module.Class`` paths; ``int:`` before a path
            asks for whole numbers in its offers whatever ``integer_offers`` says.
        integer_offers: Whether agents of scml-agents play with whole numbers in their offers.

    Raises:
        ConfigurationError: If a name stands for nothing, or nobody is left.
    """
    paths: dict[str, None] = {}
    for name in names:
        asked = name.startswith(_INTEGER)
        for path in _paths(name.removeprefix(_INTEGER)):
            cast = asked or (integer_offers and path.startswith("scml_agents."))
            paths[integer_path(path) if cast else path] = None
    if not paths:
        raise ConfigurationError(
            f"the competitors {list(names)} are nobody",
            "a tournament needs at least one competitor",
            "name some, or raise --max-top-2025 and --max-top-2024",
        )
    return _named(list(paths))


def _paths(name: str) -> tuple[str, ...]:
    group, _, cap = name.partition(":")
    if group in GROUPS and (not cap or cap.isdecimal()):
        members = _group(group)
        return members[: int(cap)] if cap else members
    known = BUILT_IN | LITA_2025
    if name in known:
        return (known[name],)
    if "." in name and all(part.isidentifier() for part in name.split(".")):
        return (name,)
    raise ConfigurationError(
        f"there is no competitor {name!r}",
        f"a competitor is a group ({', '.join(GROUPS)}, with :N for its first N), one of {', '.join(known)}, "
        "or the path of a class such as my_module.MyAgent",
        "correct the name; lita competitors lists all",
    )


def _group(group: str) -> tuple[str, ...]:
    if group == "built-in":
        return tuple(BUILT_IN.values())
    if group == "lita-2025":
        return tuple(LITA_2025.values())
    kind, _, year = group.partition("-")
    return {"top": ranking, "finalists": finalists, "all": ranking}[kind](int(year))


def _named(paths: list[str]) -> tuple[Competitor, ...]:
    """Names competitors by their classes; classes of one name are told apart by the modules they come from."""
    originals = [original_path(path) for path in paths]
    owners: dict[str, set[str]] = {}
    for original in originals:
        owners.setdefault(original.rpartition(".")[2], set()).add(original)
    names = []
    for path, original in zip(paths, originals, strict=True):
        short = original.rpartition(".")[2]
        name = original if len(owners[short]) > 1 else short
        twins = originals.count(original) > 1
        names.append(f"{_INTEGER}{name}" if twins and path != original else name)
    return tuple(Competitor(name, path) for name, path in zip(names, paths, strict=True))

"""Tables of the competitors that have names: Standard agents of 2024 to 2026 by year and rank, built-ins, and ours.

The paths of the league's agents come from `world.scml.published`. `names.resolve` turns what a user writes into
competitors.
"""

from __future__ import annotations

from typing import Final

from litaagent_std.tournament.competitors.integer_offers import FORMER_PREFIX, integer_path, original_path
from litaagent_std.world.isolated import isolated_path, open_path
from litaagent_std.world.scml.published import YEARS, all_paths, finalists, paths_of_year, ranking

__all__ = [
    "BUILT_IN",
    "GROUPS",
    "INTEGER",
    "ISOLATED",
    "LITA_2025",
    "OURS",
    "YEARS",
    "all_paths",
    "default_roster",
    "finalists",
    "group_members",
    "paths_of_class",
    "paths_of_year",
    "present_path",
    "ranking",
    "registry_name",
]

BUILT_IN: Final = {
    "RandomStd": "scml.std.agents.rand.RandomStdAgent",
    "SyncRandomStd": "scml.std.agents.rand.SyncRandomStdAgent",
    "GreedyStd": "scml.std.agents.greedy.GreedyStdAgent",
}
"""The league's default agents. (scml 0.8 has no "Decay" agent any more.)"""

_TEAM_276: Final = "scml_agents.scml2025.standard.team_276.litaagent_std"
LITA_2025: Final = {
    "LitaAgentY": f"{_TEAM_276}.litaagent_y.LitaAgentY",
    "LitaAgentYR": f"{_TEAM_276}.litaagent_yr.LitaAgentYR",
    "LitaAgentCIR": f"{_TEAM_276}.litaagent_cir.LitaAgentCIR",
    "LitaAgentN": f"{_TEAM_276}.litaagent_n.LitaAgentN",
    "LitaAgentP": f"{_TEAM_276}.litaagent_p.LitaAgentP",
}
"""The LitaAgent family of 2025 (team 276)."""

_AGENTS: Final = "litaagent_std.agents"
OURS: Final = {
    "lita": f"{_AGENTS}.hrl.LitaAgentHRL",
    "LitaAgentHRL": f"{_AGENTS}.hrl.LitaAgentHRL",
    "lita-v1": f"{_AGENTS}.variants.LitaAgentV1",
    "LitaAgentV1": f"{_AGENTS}.variants.LitaAgentV1",
    "LitaAgentHRLTracked": f"{_AGENTS}.variants.LitaAgentHRLTracked",
    "LitaAgentBaseline": f"{_AGENTS}.variants.LitaAgentBaseline",
    "LitaAgentGreedy": f"{_AGENTS}.variants.LitaAgentGreedy",
    "LitaAgentCautious": f"{_AGENTS}.variants.LitaAgentCautious",
    "ShieldedPenguin": f"{_AGENTS}.variants_shielded.ShieldedPenguin",
}
"""Agents of this package; ``lita`` is short for LitaAgentHRL, ``lita-v1`` for LitaAgentV1."""

GROUPS: Final = (
    "built-in",
    "lita-2025",
    *(f"{kind}-{year}" for year in YEARS for kind in ("top", "finalists", "all")),
)
"""Names that stand for several competitors; ``top-2025:3`` is the first three of ``top-2025``."""

INTEGER: Final = "int:"
"""Prefix that asks for whole numbers in a competitor's offers."""

ISOLATED: Final = "isolated:"
"""Prefix that asks for a process of its own, with limits and without network."""

_FORMER_MODULES: Final = {
    "litaagent_std.hrl_xf.agent": f"{_AGENTS}.hrl",
    "litaagent_std.hrl_xf.variants": f"{_AGENTS}.variants",
    "litaagent_std.hrl_xf.variants_shielded": f"{_AGENTS}.variants_shielded",
    "litaagent_std.arena.ablations": "benchmarks.ablations",
}
"""Modules that agents were in when older records were written, and where those agents are now."""


def paths_of_class(name: str) -> list[str]:
    """Return the class paths of all Standard agents whose class has a name."""
    return [path for year in YEARS for path in ranking(year) if path.rpartition(".")[2] == name]


def group_members(group: str) -> tuple[str, ...]:
    """Return the class paths of a group of `GROUPS`, without the ``:N`` behind it."""
    if group == "built-in":
        return tuple(BUILT_IN.values())
    if group == "lita-2025":
        return tuple(LITA_2025.values())
    kind, _, year = group.partition("-")
    return {"top": ranking, "finalists": finalists, "all": ranking}[kind](int(year))


def default_roster(max_top_2025: int = 5, max_top_2024: int = 5) -> tuple[str, ...]:
    """Return the names of the default competitors of a collection.

    Args:
        max_top_2025: How many of the best of 2025.
        max_top_2024: How many of the best of 2024.
    """
    best = (f"top-2025:{max_top_2025}", f"top-2024:{max_top_2024}")
    return ("lita-2025", *best, "RandomStd", "SyncRandomStd")


def present_path(path: str) -> str:
    """Return where the class at a path is today; records and units keep the paths of the day they were written."""
    if open_path(path) != path:
        return isolated_path(present_path(open_path(path)))
    if path.startswith(FORMER_PREFIX):
        return integer_path(present_path(path.removeprefix(FORMER_PREFIX).replace(":", ".")))
    original = original_path(path)
    module, _, name = original.rpartition(".")
    present = f"{_FORMER_MODULES.get(module, module)}.{name}"
    return path if present == original else integer_path(present) if path != original else present


def registry_name(path: str) -> str:
    """Return a name for the class at a path that a move of our modules does not change.

    Agents of scml and scml-agents keep their class path, which comes with the version of the library; ours are named
    by their class. An integer cast shows as the prefix ``int:``, isolation as ``isolated:``.
    """
    if open_path(path) != path:
        return f"{ISOLATED}{registry_name(open_path(path))}"
    present = present_path(path)
    original = original_path(present)
    ours = original.partition(".")[0] in ("litaagent_std", "benchmarks")
    name = original.rpartition(".")[2] if ours else original
    return name if present == original else f"{INTEGER}{name}"

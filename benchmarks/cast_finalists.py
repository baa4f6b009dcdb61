"""The finalists with whole numbers in their offers, under plain names that scml's tournaments can import.

``benchmarks.cast_finalists.PenguinAgent`` is PenguinAgent as `litaagent_std.tournament.competitors.integer_offers`
casts it.
"""

from litaagent_std.tournament.competitors.integer_offers import integer_path
from litaagent_std.tournament.competitors.registry import YEARS, finalists
from litaagent_std.world.setup import AgentSpec


def __getattr__(name: str) -> type:
    paths = [] if name.startswith("_") else [path for year in YEARS for path in finalists(year)]
    matches = [path for path in paths if path.rpartition(".")[2] == name]
    if not matches:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; finalists are {paths}")
    agent: type = AgentSpec(integer_path(matches[0])).load()
    return agent

"""From the words of a command to agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from apexrl.runs.errors import ConfigurationError
from litaagent_std.arena.evaluation import Contestant
from litaagent_std.tournament.competitors.integer_offers import original_path
from litaagent_std.tournament.competitors.parameter_files import read_parameters
from litaagent_std.tournament.competitors.registry import BUILT_IN, GROUPS, LITA_2025, YEARS, ranking, resolve
from litaagent_std.world.setup import AgentSpec

__all__ = ["ALIASES", "contestants", "opponents", "with_parameters_read"]

ALIASES: Final = {"lita": "litaagent_std.agents.hrl.LitaAgentHRL"}
"""Short names of our own agents."""

_INTEGER: Final = "int:"


def contestants(words: Sequence[str], *, integer_offers: bool) -> tuple[Contestant, ...]:
    """Find the agents that words stand for, each under a name of its own.

    Args:
        words: Names, groups or class paths, with parameters as JSON behind a colon where wanted. A text as value of
            ``parameters`` names a file of parameters, see `parameter_files`.
        integer_offers: Whether agents of scml-agents play with whole numbers in their offers.

    Raises:
        ConfigurationError: If a word stands for nothing, its parameters are no JSON object, or two are the same.
    """
    found: dict[str, Contestant] = {}
    for word in words:
        name, params = _split(word)
        for one in resolve([_path(name)], integer_offers=integer_offers):
            label = _label(name, one.name, one.path) + (json.dumps(params) if params else "")
            spec = AgentSpec(one.path, with_parameters_read(params), competitor=True)
            if label in found:
                raise ConfigurationError(
                    f"{word!r} stands for {label}, which is there already",
                    "an agent takes part once, and not as its own opponent in the comparison",
                    "leave one of them out, or give one other parameters",
                )
            found[label] = Contestant(label, spec)
    return tuple(found.values())


def with_parameters_read(params: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the name of a file of parameters by its content, so that agents need no file where they play.

    Raises:
        ConfigurationError: If there is no such file, or it holds something else.
    """
    named = params.get("parameters")
    return {**params, "parameters": read_parameters(named)} if isinstance(named, str) else dict(params)


def opponents(words: Sequence[str], *, integer_offers: bool) -> tuple[str, ...]:
    """Find the class paths of those who may sit in the other competitors' seats.

    Raises:
        ConfigurationError: If a word stands for nothing, or carries parameters.
    """
    for word in words:
        if _split(word)[1]:
            raise ConfigurationError(
                f"the opponent {word!r} has parameters", "opponents play as they are", "leave the parameters out"
            )
    return tuple(one.path for one in resolve([_path(word) for word in words], integer_offers=integer_offers))


def _label(word: str, name: str, path: str) -> str:
    alias = next((alias for alias, known in ALIASES.items() if known == original_path(path)), name)
    return f"{_INTEGER}{alias}" if word.startswith(_INTEGER) else alias


def _split(word: str) -> tuple[str, dict[str, Any]]:
    """Split ``name:{json}``."""
    name, brace, rest = word.partition(":{")
    if not brace:
        return word, {}
    try:
        params = json.loads("{" + rest)
    except ValueError as error:
        raise ConfigurationError(
            f"the parameters of {word!r} are no JSON: {error}",
            "parameters are a JSON object behind a colon",
            """write them like lita:{"l4": "joint"}, in single quotes for the shell""",
        ) from error
    return name, dict(params)


def _path(word: str) -> str:
    """Return a word that `resolve` knows; class names of the registry become their paths."""
    prefix = _INTEGER if word.startswith(_INTEGER) else ""
    name = word.removeprefix(_INTEGER)
    if name in ALIASES:
        return prefix + ALIASES[name]
    if "." in name or name.partition(":")[0] in GROUPS or name in BUILT_IN | LITA_2025:
        return word
    paths = [path for year in YEARS for path in ranking(year) if path.rpartition(".")[2] == name]
    if len(paths) > 1:
        raise ConfigurationError(
            f"{name!r} is the name of {len(paths)} agents", "a name must be clear", f"give a path: {', '.join(paths)}"
        )
    return prefix + paths[0] if paths else word

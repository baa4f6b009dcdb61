"""From names to competitors: one function for every command.

A name is ``[isolated:][int:]NAME[:{JSON}]``, where NAME is one of

- a short name: ``lita``, another of our agents, a built-in such as ``RandomStd``, or a member of the LitaAgent family,
- the class name of a Standard agent of 2024 to 2026, such as ``PenguinAgent``,
- a group, such as ``finalists-2026`` or ``top-2025:3`` for its first three,
- the path of a class, such as ``my_module.MyAgent``.

``isolated:`` asks for a process of its own (`world.isolated`), ``int:`` for whole numbers in its offers. The JSON
object holds keyword arguments of the agent's constructor; a text as value of ``parameters`` names a file of tuned
parameters (`parameter_files`), which is read at once, and ``weights`` names a file or folder of weights, which the
agent reads where it plays.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from apexrl.runs.digest import digest_bytes, digest_config, digest_file
from apexrl.runs.errors import ConfigurationError, ReadFailedError
from apexrl.runs.reading import read_npz
from litaagent_std.tournament.competitors.integer_offers import integer_path, original_path
from litaagent_std.tournament.competitors.parameter_files import read_parameters
from litaagent_std.tournament.competitors.registry import (
    BUILT_IN,
    GROUPS,
    INTEGER,
    ISOLATED,
    LITA_2025,
    OURS,
    YEARS,
    group_members,
    paths_of_class,
    present_path,
    ranking,
)
from litaagent_std.world.isolated import isolated_path, open_path
from litaagent_std.world.scml.published import INSTALL, published_agents_installed
from litaagent_std.world.setup import AgentSpec

__all__ = [
    "Competitor",
    "agent_text",
    "digest_named_files",
    "opponents",
    "read_agent",
    "require_classes",
    "resolve",
    "resolve_one",
]


_PUBLISHED: Final = "scml_agents."
_BAD_PARAMETERS: Final = (TypeError, ValueError, LookupError, AttributeError, OSError)
"""What a constructor raises that does not know its parameters, or does not find the file that one names."""


@dataclass(frozen=True, slots=True)
class Competitor:
    """An agent that takes part.

    Attributes:
        name: How results call it; unique among those that were resolved together.
        spec: The agent that sits in its seats.
    """

    name: str
    spec: AgentSpec

    @property
    def path(self) -> str:
        """The path of its class, of the casting subclass where its offers are to be whole numbers."""
        return self.spec.path


@dataclass(frozen=True, slots=True)
class _Entry:
    """A competitor before names are made unique: the short name (if any), class path and written parameters."""

    short: str | None
    path: str
    written: Mapping[str, Any]

    @property
    def key(self) -> str:
        return agent_text(AgentSpec(self.path, self.written))


def resolve(
    names: Sequence[str], *, integer_offers: bool = True, distinct: bool = False, isolate: bool = False
) -> tuple[Competitor, ...]:
    """Find the competitors that names stand for, each once, in the order of the names.

    Args:
        names: Names, see the module's docstring.
        integer_offers: Whether agents of scml-agents play with whole numbers in their offers.
        distinct: Whether a competitor that is named twice is refused instead of left out.
        isolate: Whether all play isolated, not only those whose names ask for it.

    Raises:
        ConfigurationError: If a name stands for nothing, its parameters cannot be read, or nobody is left.
    """
    entries: dict[str, _Entry] = {}
    for name in names:
        for entry in _entries(name, integer_offers, isolate):
            if distinct and entry.key in entries:
                raise ConfigurationError(
                    f"{name!r} stands for {entry.key}, which is there already",
                    "an agent takes part once, and not as its own opponent in the comparison",
                    "leave one of them out, or give one other parameters",
                )
            entries.setdefault(entry.key, entry)
    if not entries:
        raise ConfigurationError(
            f"the competitors {list(names)} are nobody",
            "a tournament needs at least one competitor",
            "name some, or raise --max-top-2025 and --max-top-2024",
        )
    labels = _labels(list(entries.values()))
    return tuple(
        Competitor(label, AgentSpec(entry.path, _read_params(entry.written), competitor=True))
        for label, entry in zip(labels, entries.values(), strict=True)
    )


def resolve_one(name: str, *, integer_offers: bool = True) -> Competitor:
    """Find the one competitor that a name stands for.

    Raises:
        ConfigurationError: As `resolve`, and if the name stands for several.
    """
    competitors = resolve([name], integer_offers=integer_offers)
    if len(competitors) > 1:
        raise ConfigurationError(
            f"{name!r} stands for {len(competitors)} competitors",
            "one agent is asked for here",
            f"name one of them: {', '.join(competitor.name for competitor in competitors)}",
        )
    return competitors[0]


def require_classes(agents: Iterable[AgentSpec]) -> None:
    """Refuse class paths that do not lead to an agent's class in this process, and parameters that it does not take.

    Published agents are not imported here: a tournament leaves out those that cannot be.

    Raises:
        ConfigurationError: If a module or class is not there, is no agent of the league, or refuses its parameters.
    """
    for agent in agents:
        path = original_path(open_path(agent.path))
        if path.startswith(_PUBLISHED):
            continue
        cause: Exception | None = None
        try:
            why = getattr(agent.load(), "load_error", None)  # of an isolated agent, which is loaded elsewhere
        except (ImportError, AttributeError, TypeError) as error:
            why = cause = error
        if why is not None:
            raise ConfigurationError(
                f"{path} cannot be loaded: {why}",
                "the path of a competitor leads to the class of an agent",
                "correct the path, or name the folder of its module: PYTHONPATH=FOLDER before the command",
            ) from cause
        if agent.params and agent.path == open_path(agent.path):  # an isolated agent is made elsewhere
            _require_parameters(agent)


def _require_parameters(agent: AgentSpec) -> None:
    """Make an agent once, so that wrong parameters are found before a world is played."""
    try:
        agent.load()(**agent.params)
    except _BAD_PARAMETERS as error:
        raise ConfigurationError(
            f"{agent_text(agent)} cannot be made: {error}",
            "the parameters behind the colon are keyword arguments of the agent's class",
            "correct them",
        ) from error


def opponents(names: Sequence[str], *, integer_offers: bool = True, isolate: bool = False) -> tuple[str, ...]:
    """Find the agents that names stand for, as texts (`agent_text`) for rules and plans."""
    competitors = resolve(names, integer_offers=integer_offers, isolate=isolate)
    return tuple(agent_text(competitor.spec) for competitor in competitors)


def agent_text(spec: AgentSpec) -> str:
    """Write an agent as one text: its class path, with its parameters as JSON behind a colon if it has any."""
    return f"{spec.path}:{json.dumps(dict(spec.params), sort_keys=True)}" if spec.params else spec.path


def read_agent(text: str) -> AgentSpec:
    """Read what `agent_text` wrote; a class path of an earlier release becomes that at which it is imported today."""
    path, params = _split(text)
    return AgentSpec(present_path(path), params, competitor=True)


def digest_named_files(params: Mapping[str, Any]) -> dict[str, str]:
    """Return digests of the files that parameters name, such as weights, and of files in folders that they name."""
    named = {name: Path(value) for name, value in params.items() if isinstance(value, str) and value}
    digests = {name: _digest_content(path) for name, path in named.items() if path.is_file()}
    for name, path in named.items():
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.is_file())
            digests |= {f"{name}/{file.name}": _digest_content(file) for file in files}
    return digests


def _digest_content(path: Path) -> str:
    """Digest a file; of weights (``.npz``) the arrays count, not what their ``meta`` says about how they were made."""
    if path.suffix != ".npz":
        return digest_file(path)
    try:
        arrays = read_npz(path)
    except ReadFailedError:
        return digest_file(path)  # no file of weights
    facts = {
        name: [str(array.dtype), list(array.shape), digest_bytes(array.tobytes())]
        for name, array in sorted(arrays.items())
        if name != "meta"
    }
    return digest_config(facts)


def _entries(name: str, integer_offers: bool, isolate: bool) -> Iterable[_Entry]:
    rest, params = _split(name)
    isolated = isolate or rest.startswith(ISOLATED)
    rest = rest.removeprefix(ISOLATED)
    asked = rest.startswith(INTEGER)
    rest = rest.removeprefix(INTEGER)
    short = rest if OURS.get(rest, "").rpartition(".")[2] not in ("", rest) else None
    for path in _paths(rest):
        cast = asked or (integer_offers and path.startswith("scml_agents."))
        path = integer_path(path) if cast else path
        yield _Entry(short, isolated_path(path) if isolated else path, params)


def _split(text: str) -> tuple[str, dict[str, Any]]:
    """Split ``name:{json}``."""
    name, brace, rest = text.partition(":{")
    if not brace:
        return text, {}
    try:
        params = json.loads("{" + rest)
    except ValueError as error:
        raise ConfigurationError(
            f"the parameters of {text!r} are no JSON: {error}",
            "parameters are a JSON object behind a colon",
            """write them like lita:{"l4": "joint"}, in single quotes for the shell""",
        ) from error
    return name, dict(params)


def _paths(name: str) -> tuple[str, ...]:
    """Return the class paths that a name without prefix and parameters stands for."""
    group, _, cap = name.partition(":")
    if group in GROUPS and (not cap or cap.isdecimal()):
        members = group_members(group)
        return members[: int(cap)] if cap else members
    known = BUILT_IN | LITA_2025 | OURS
    if name in known:
        return (known[name],)
    path = present_path(name)
    if "." in name and all(part.isidentifier() for part in original_path(path).split(".")):
        return (path,)
    paths = paths_of_class(name) if name.isidentifier() and published_agents_installed() else []
    if len(paths) > 1:
        raise ConfigurationError(
            f"{name!r} is the name of {len(paths)} agents", "a name must be clear", f"give a path: {', '.join(paths)}"
        )
    if paths:
        return (paths[0],)
    raise _unknown(name)


def _unknown(name: str) -> ConfigurationError:
    installed = published_agents_installed()
    classes = [path.rpartition(".")[2] for year in YEARS for path in ranking(year)] if installed else []
    short = {*BUILT_IN, *LITA_2025, *OURS}
    candidates = {known.lower(): known for known in (*GROUPS, *classes, *short)}
    close = [candidates[match] for match in difflib.get_close_matches(name.lower(), candidates, n=3)]
    hint = f"did you mean {' or '.join(close)}?" if close else "correct the name; lita competitors lists all"
    if not installed:
        hint = f"if it is a published agent, install them: {INSTALL}"
    return ConfigurationError(
        f"there is no competitor {name!r}",
        f"a competitor is a group ({', '.join(GROUPS)}, with :N for its first N), one of {', '.join(sorted(short))}, "
        "the class name of a Standard agent of 2024 to 2026, or the path of a class such as my_module.MyAgent",
        hint,
    )


def _read_params(written: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the name of a parameter file by its content, so that agents need no file where they play.

    Raises:
        ConfigurationError: If a file of parameters or weights is not there, or holds something else.
    """
    weights = written.get("weights")
    if isinstance(weights, str) and Path(weights).name != weights and not Path(weights).exists():
        raise ConfigurationError(
            f"there are no weights {weights!r}",
            "weights are a file or a folder, or the name of one that comes with the package",
            "correct the path; relative ones start at the working directory",
        )
    named = written.get("parameters")
    return {**written, "parameters": read_parameters(named)} if isinstance(named, str) else dict(written)


def _labels(entries: list[_Entry]) -> list[str]:
    """Name competitors: by short name, else by class; equal class names are distinguished by their modules.

    An agent that plays both as it is and with whole numbers carries ``int:`` in the second case, and so with
    ``isolated:``; parameters are part of the name.
    """
    originals = [original_path(entry.path) for entry in entries]
    owners: dict[str, set[str]] = {}
    for original in originals:
        owners.setdefault(original.rpartition(".")[2], set()).add(original)
    labels = []
    for entry, original in zip(entries, originals, strict=True):
        class_name = original.rpartition(".")[2]
        label = entry.short or (original if len(owners[class_name]) > 1 else class_name)
        is_alone = len({other.path for other in entries if original_path(other.path) == original}) == 1
        opened = open_path(entry.path)
        marks = (ISOLATED if entry.path != opened else "") + (INTEGER if opened != original else "")
        prefix = "" if is_alone else marks
        labels.append(prefix + label + (json.dumps(entry.written) if entry.written else ""))
    return labels

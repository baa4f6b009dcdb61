"""What our agents do, as a digest: a unit's key changes when the agent plays differently, not when a file moves.

An agent plays a few short worlds of the fast engine, one per level and inventory regime, among native agents with fixed
seeds. The digest is that of every turn and every contract in them. Weights and parameters show in what the agent does;
files that its parameters name are digested beside it, in `units`.

The partners are native agents that do not depend on Python's hashing, and neither do our own agents, so any process
computes the same digest. An agent with a base class from elsewhere may depend on it: it plays in a process of its own
with fixed hashing, unless this process has it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import Any, Final

from apexrl.runs.errors import ConfigurationError
from litaagent_std.tournament.competitors.names import agent_text, digest_named_files, read_agent
from litaagent_std.tournament.competitors.registry import BUILT_IN
from litaagent_std.world.events import AgentError, ContractSigned, TurnRow, WorldObserver
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.reproducible.hashing import is_fixed
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.rules.settlement import Inventory
from litaagent_std.world.setup import AgentSpec, WorldSetup, official_setup

__all__ = ["behaviour_digest"]

_LEVELS: Final = 3
_DAYS: Final = 12
_SEEDS: Final = (1000, 1001, 1002)
"""Seed of the world for each level of the seat."""
_REGIMES: Final[tuple[Inventory, ...]] = ("as_shipped", "depleting")
_PARTNERS: Final = (BUILT_IN["RandomStd"], BUILT_IN["GreedyStd"])
_HASH_FREE: Final = ("litaagent_std", "benchmarks", "scml", "negmas")
"""Packages whose agent classes behave the same under any string hashing."""


def behaviour_digest(agent: AgentSpec) -> str:
    """Return the SHA-256 of what an agent does in the committed situations; computed once per process and agent.

    Raises:
        ConfigurationError: If the agent cannot be made from its class and parameters.
    """
    files = tuple(sorted(digest_named_files(agent.params).items()))
    return _digest_once(agent_text(agent), files)


@functools.cache
def _digest_once(text: str, files: tuple[tuple[str, str], ...]) -> str:
    """Digest the agent that a text names; ``files`` tells changed weights of one name apart."""
    agent = read_agent(text)
    if is_fixed() or _is_hash_free(agent):
        return play_situations(agent)
    code = f"from {__name__} import play_situations; from {read_agent.__module__} import read_agent; "
    code += f"print(play_situations(read_agent({text!r})))"
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise _does_not_play(agent, done.stderr.strip().rpartition("\n")[2])
    return done.stdout.split()[-1]


def _is_hash_free(agent: AgentSpec) -> bool:
    packages = {base.__module__.partition(".")[0] for base in agent.load().__mro__}
    return packages <= {*_HASH_FREE, *sys.stdlib_module_names}


def play_situations(agent: AgentSpec) -> str:
    """Play all situations and return their digest."""
    digest = hashlib.sha256()
    for level, seed in enumerate(_SEEDS):
        setup, seat = _situation(level, seed)
        for regime in _REGIMES:
            log = _Log()
            try:
                with silence():
                    world = setup.with_agents({seat: replace(agent, competitor=True)})
                    FastWorld(world, [log], inventory=regime, defaults="native").run()
            except (TypeError, ValueError, KeyError, OSError, ImportError, AttributeError) as error:
                raise _does_not_play(agent, f"{type(error).__name__}: {error}") from error
            digest.update(json.dumps(log.rows).encode())
    return digest.hexdigest()


def _situation(level: int, seed: int) -> tuple[WorldSetup, int]:
    """Return a short world of native agents, and a seat at a level."""
    setup = replace(official_setup(seed, n_days=_DAYS, n_levels=_LEVELS), neutral_names=True)
    partners = {seat: AgentSpec(_PARTNERS[seat % len(_PARTNERS)]) for seat in range(setup.n_seats)}
    seat = next(index for index, factory in enumerate(setup.factories) if factory.level == level)
    return setup.with_agents(partners), seat


def _does_not_play(agent: AgentSpec, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{agent_text(agent)} does not play: {reason}",
        "an agent must be made from its class and parameters, and play a short world",
        "correct the name or its parameters",
    )


@dataclass(slots=True)
class _Log(WorldObserver):
    """Keeps all turns, contracts and exceptions of a world."""

    rows: list[Any] = field(default_factory=list)

    def on_turn(self, turn: TurnRow) -> None:
        self.rows.append(turn)

    def on_contract(self, event: ContractSigned) -> None:
        ref = event.negotiation
        self.rows.append((ref.day, ref.index, event.quantity, event.time, event.unit_price))

    def on_error(self, event: AgentError) -> None:
        self.rows.append((event.day, event.where, event.kind, event.message))

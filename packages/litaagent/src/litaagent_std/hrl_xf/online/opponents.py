"""Who sits in the other competitors' seats while we train, and who is kept for evaluation.

The league's default agents fill the remaining seats of every world in official proportion. A slot for a competitor is
empty, or taken by a finalist, a built-in random agent or a past self; the harder an opponent is for us, the more often
it is drawn. Held-out opponents are never drawn: they are for evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import PoolConfig
from litaagent_std.hrl_xf.online.worlds import class_name
from litaagent_std.tournament.competitors.contestants import opponents as resolve_opponents
from litaagent_std.world.setup import AgentSpec

__all__ = ["NOBODY", "PAST_SELF", "OpponentPool"]

NOBODY: Final = "defaults"
"""An empty slot: the world is the league's default agents and us."""
PAST_SELF: Final = "litaagent_std.agents.online.agent.LitaOnline"
_PRIOR: Final = (1.0, 2.0)
"""Wins and games that an opponent starts with: nobody knows yet how hard it is."""


@dataclass(slots=True)
class _Record:
    wins: float = _PRIOR[0]
    games: float = _PRIOR[1]

    @property
    def rate(self) -> float:
        return self.wins / self.games


class OpponentPool:
    """The opponents and what is known of them.

    Args:
        cfg: Who they are.

    Raises:
        ConfigurationError: If an opponent is both trained against and held out.
    """

    def __init__(self, cfg: PoolConfig) -> None:
        self.cfg = cfg
        self._paths = _by_name(resolve_opponents(cfg.competitors, integer_offers=True)) if cfg.slots else {}
        self.held_out = tuple(resolve_opponents(cfg.held_out, integer_offers=True)) if cfg.held_out else ()
        both = sorted(set(self._paths.values()) & set(self.held_out))
        if both:
            raise ConfigurationError(
                f"{', '.join(both)} are both opponents and held out",
                "who is trained against cannot judge",
                "leave them out of one of the two",
            )
        self._records: dict[str, _Record] = {}
        self._selves: list[str] = []

    def draw(self, luck: np.random.Generator) -> tuple[AgentSpec, ...]:
        """Return the other competitors of one world."""
        names = [*self._paths, *(_self_name(path) for path in self._selves)]
        chosen = []
        for _ in range(self.cfg.slots):
            if not names or luck.random() < self.cfg.nobody:
                continue
            chances = self.chances()
            weights = np.array([chances[name] for name in names])
            chosen.append(self._spec(names[int(luck.choice(len(names), p=weights / weights.sum()))]))
        return tuple(chosen)

    def _spec(self, name: str) -> AgentSpec:
        if name in self._paths:
            return AgentSpec(self._paths[name], competitor=True)
        path = next(path for path in self._selves if _self_name(path) == name)
        return AgentSpec(PAST_SELF, {"weights": path, "label": name}, competitor=True)

    def chances(self) -> dict[str, float]:
        """Return the unnormalised probability of each opponent: (1 − win rate) to the power of hardness, never 0."""
        names = [*self._paths, *(_self_name(path) for path in self._selves)]
        return {name: max(0.05, 1.0 - self._records.get(name, _Record()).rate) ** self.cfg.hardness for name in names}

    def note(self, name: str, *, won: bool) -> None:
        """Learns from one game."""
        record = self._records.setdefault(name, _Record())
        keep = 1.0 - self.cfg.forgetting
        record.wins, record.games = record.wins * keep + won, record.games * keep + 1.0

    def add_self(self, path: Path) -> None:
        """Take a past self in; the oldest one beyond the limit leaves."""
        if self.cfg.past_selves and self.cfg.slots:
            self._selves = [*self._selves, str(path)][-self.cfg.past_selves :]

    def win_rates(self) -> dict[str, float]:
        """Win rate against every opponent that was met."""
        return {name: record.rate for name, record in sorted(self._records.items())}

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides later draws."""
        return {
            "records": {name: [record.wins, record.games] for name, record in self._records.items()},
            "selves": list(self._selves),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state_dict`."""
        self._records = {name: _Record(float(wins), float(games)) for name, (wins, games) in state["records"].items()}
        self._selves = [str(path) for path in state["selves"]]


def _by_name(paths: Sequence[str]) -> dict[str, str]:
    """Paths by class name; a name that occurs twice is told apart by its number."""
    named: dict[str, str] = {}
    for path in paths:
        name, number = class_name(path), 2
        while name in named:
            name, number = f"{class_name(path)}_{number}", number + 1
        named[name] = path
    return named


def _self_name(path: str) -> str:
    return f"self_{Path(path).stem}"

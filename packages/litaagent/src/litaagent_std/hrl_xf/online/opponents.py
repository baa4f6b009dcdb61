"""Opponents during training, and those that are held out for evaluation.

The league's default agents fill the remaining seats of every world in official proportion. A slot for a competitor is
empty, or taken by a finalist, a built-in random agent or a past version of the policy; opponents with which our win
rate is low are drawn more often. Held-out opponents are never drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import PoolConfig
from litaagent_std.hrl_xf.online.worlds import class_name
from litaagent_std.tournament.competitors.names import agent_text, read_agent
from litaagent_std.tournament.competitors.names import opponents as resolve_opponents
from litaagent_std.world.setup import AgentSpec

__all__ = ["LITA", "OpponentPool", "weights_agent"]

LITA: Final = "litaagent_std.agents.hrl.LitaAgentHRL"
"""Class path of our agent, which plays the networks of the layers."""
_PRIOR: Final = (1.0, 2.0)
"""Prior of an opponent's record: wins and games."""


@dataclass(slots=True)
class _Record:
    wins: float = _PRIOR[0]
    games: float = _PRIOR[1]

    @property
    def rate(self) -> float:
        return self.wins / self.games


class OpponentPool:
    """Opponents with our win rate against each.

    Args:
        cfg: Competitors and how they are drawn.

    Raises:
        ConfigurationError: If an opponent is both trained against and held out.
    """

    def __init__(self, cfg: PoolConfig) -> None:
        self.cfg = cfg
        self._agents = _by_name(resolve_opponents(cfg.competitors)) if cfg.slots else {}
        self.held_out = resolve_opponents(cfg.held_out) if cfg.held_out else ()
        both = sorted({agent_text(agent) for agent in self._agents.values()} & set(self.held_out))
        if both:
            raise ConfigurationError(
                f"{', '.join(both)} are both opponents and held out",
                "held-out opponents must not be trained against",
                "remove them from one of the two",
            )
        self._records: dict[str, _Record] = {}
        self._selves: list[str] = []

    def draw(self, rng: np.random.Generator) -> tuple[AgentSpec, ...]:
        """Draw the other competitors of one world."""
        names = [*self._agents, *(_self_name(path) for path in self._selves)]
        chosen = []
        for _ in range(self.cfg.slots):
            if not names or rng.random() < self.cfg.nobody:
                continue
            chances = self.chances()
            weights = np.array([chances[name] for name in names])
            chosen.append(self._spec(names[int(rng.choice(len(names), p=weights / weights.sum()))]))
        return tuple(chosen)

    def _spec(self, name: str) -> AgentSpec:
        """Return the agent of a name in the pool."""
        if name in self._agents:
            return self._agents[name]
        path = next(path for path in self._selves if _self_name(path) == name)
        return replace(weights_agent(path, label=name), competitor=True)

    def chances(self) -> dict[str, float]:
        """Return the unnormalised probability of each opponent: (1 − win rate) to the power of hardness, never 0."""
        names = [*self._agents, *(_self_name(path) for path in self._selves)]
        return {name: max(0.05, 1.0 - self._records.get(name, _Record()).rate) ** self.cfg.hardness for name in names}

    def record_game(self, name: str, *, won: bool) -> None:
        """Record the result of one game."""
        record = self._records.setdefault(name, _Record())
        keep = 1.0 - self.cfg.forgetting
        record.wins, record.games = record.wins * keep + won, record.games * keep + 1.0

    def add_self(self, path: Path) -> None:
        """Add a past version of the policy; beyond the limit the oldest one is removed."""
        if self.cfg.past_selves and self.cfg.slots:
            self._selves = [*self._selves, str(path)][-self.cfg.past_selves :]

    def win_rates(self) -> dict[str, float]:
        """Return our win rate against every opponent that was met."""
        return {name: record.rate for name, record in sorted(self._records.items())}

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides later draws."""
        return {
            "records": {name: [record.wins, record.games] for name, record in self._records.items()},
            "selves": list(self._selves),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`."""
        self._records = {name: _Record(float(wins), float(games)) for name, (wins, games) in state["records"].items()}
        self._selves = [str(path) for path in state["selves"]]


def weights_agent(path: str | Path, **params: str) -> AgentSpec:
    """Return the agent that plays the networks of a folder; workers may have another working directory."""
    return AgentSpec(LITA, {"weights": str(Path(path).absolute()), **params})


def _by_name(texts: Sequence[str]) -> dict[str, AgentSpec]:
    """Return agents by class name; a name that occurs twice gets a number."""
    named: dict[str, AgentSpec] = {}
    for agent in map(read_agent, texts):
        name, number = class_name(agent.path), 2
        while name in named:
            name, number = f"{class_name(agent.path)}_{number}", number + 1
        named[name] = agent
    return named


def _self_name(path: str) -> str:
    return f"self_{Path(path).stem}"

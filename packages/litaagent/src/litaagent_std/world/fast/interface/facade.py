"""What an agent can reach of the world through its interface, beside what the interface answers itself."""

from __future__ import annotations

from typing import Any

from litaagent_std.world.setup import WorldSetup


class WorldFacade:
    """Answers scml's interface where it asks the world, and drops what agents log."""

    setup: WorldSetup
    time_limit = 900
    default_signing_delay = 0
    force_signing = True
    publish_trading_prices = True
    publish_exogenous_summary = True

    @property
    def params(self) -> dict[str, Any]:
        """The world's parameters, as scml names them."""
        return {
            "n_steps": self.setup.n_days,
            "time_limit": self.time_limit,
            "negotiation_speed": None,
            "default_signing_delay": self.default_signing_delay,
        }

    def agent_annotation(self, agent: str) -> dict[str, Any]:
        """Return the annotation of an agent: none."""
        return {}

    def execute_action(self, action: object, agent: object, callback: object = None) -> bool:
        """Accept any action and does nothing, as scml's world."""
        return True

    def loginfo(self, message: str, event: object = None) -> None:
        """Drop a log entry."""

    logdebug = logwarning = logerror = loginfo

    def loginfo_agent(self, agent: str, message: str, event: object = None) -> None:
        """Drop a log entry of an agent."""

    logdebug_agent = logwarning_agent = logerror_agent = loginfo_agent

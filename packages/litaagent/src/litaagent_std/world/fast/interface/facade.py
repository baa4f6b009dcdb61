"""What the agent-world interface may ask of the world."""

from __future__ import annotations

from typing import Any

import numpy as np

from litaagent_std.world.setup import WorldSetup


class WorldFacade:
    """The attributes and methods of scml's world that its AWI uses; what agents log is dropped.

    Attributes:
        n_steps: Days of the world.
        horizon: Days ahead that deliveries can be agreed for.
        n_products: Number of products.
        max_n_lines: Lines of the largest factory.
        production_capacity: Lines of all factories, by level.
        catalog_prices: Catalog prices, int array of shape (products,).
        suppliers: Ids of the factories that sell each product, system agents included.
        consumers: Ids of the factories that buy each product, system agents included.
        is_bankrupt: Bankruptcy by id, system agents included.
    """

    setup: WorldSetup
    n_steps: int
    horizon: int
    n_products: int
    max_n_lines: int
    production_capacity: list[int]
    catalog_prices: np.ndarray[tuple[int], np.dtype[np.int64]]
    suppliers: list[list[str]]
    consumers: list[list[str]]
    is_bankrupt: dict[str, bool]
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

    def scores(self) -> dict[str, float]:
        """Return every factory's balance relative to its initial balance."""
        raise NotImplementedError

    def agent_annotation(self, agent: str) -> dict[str, Any]:
        """Return an agent's annotation, which is empty."""
        return {}

    def execute_action(self, action: object, agent: object, callback: object = None) -> bool:
        """Accept any action and do nothing, as scml's world."""
        return True

    def loginfo(self, message: str, event: object = None) -> None:
        """Drop a log entry."""

    logdebug = logwarning = logerror = loginfo

    def loginfo_agent(self, agent: str, message: str, event: object = None) -> None:
        """Drop a log entry of an agent."""

    logdebug_agent = logwarning_agent = logerror_agent = loginfo_agent

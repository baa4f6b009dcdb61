"""Our agent step by step, from L1 alone to four layers with learned types and goals, each a class path and parameters.

L1 has no goals of its own. Alone it plays for `PlainGoals`, the same on every day of every world: sell all that input
covers, hold a day's input, at any legal price. What it still does is bound every decision, and concede over the rounds
from the favourable end of the price band to the other.
"""

from __future__ import annotations

from typing import Any, Final

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.policy.memory import MemoryRow
from litaagent_std.policy.observation import Calendar, Observation
from litaagent_std.policy.plan import Bounds, Goals

__all__ = ["STEPS", "LitaL1", "PlainGoals"]


class PlainGoals:
    """Goals that know nothing of the day, of fill, drift, costs or the end of the game."""

    def goals(self, obs: Observation, calendar: Calendar, limits: Bounds, memory: MemoryRow) -> Goals:
        """Set the goals; see `GoalLayer`."""
        leads = len(calendar.sold)
        nothing = (0,) * leads
        sell, buy = obs.sell_agenda, obs.buy_agenda
        missing = obs.n_lines - obs.stock_in - obs.exogenous_in - calendar.bought[0]
        return Goals(
            q_buy=nothing if buy is None else (max(0, min(missing, limits.buy)), *nothing[1:]),
            p_buy=(0.0 if buy is None else float(buy.price_max),) * leads,
            q_sell=nothing if sell is None else limits.covered,
            p_sell=(0.0 if sell is None else float(sell.price_min),) * leads,
            hold=(0.0,) * leads,
            unit_value=0.0 if buy is None else float(buy.price_max),
        )


class LitaL1(LitaAgentHRL):
    """L1 alone: its bounds and its baseline, with `PlainGoals`.

    Args:
        *args: Passed to `LitaAgentHRL`.
        **kwargs: Passed to `LitaAgentHRL`; the layers are set here.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **kwargs, l3="baseline", l4="greedy", goal_layer=PlainGoals())


_LITA: Final = f"{LitaAgentHRL.__module__}.{LitaAgentHRL.__qualname__}"

_PATIENT: Final[dict[str, Any]] = {"l2": "heuristic", "parameters": {"urgency_high": 0.0}}

STEPS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "L1": (f"{__name__}.{LitaL1.__qualname__}", {}),
    "+ L2": (_LITA, {"l3": "baseline", "l4": "greedy", **_PATIENT}),
    "+ L3": (_LITA, {"l3": "model", "l4": "greedy", **_PATIENT}),
    "+ L4": (_LITA, {"l3": "model", "l4": "joint", **_PATIENT}),
    "+ urgency": (_LITA, {"l2": "heuristic", "l3": "model", "l4": "joint"}),
    "+ types": (_LITA, {"l2": "heuristic", "l3": "types", "l4": "joint"}),
    "+ goals": (_LITA, {"l3": "types", "l4": "joint"}),
}
"""Class path and parameters of every step; each has one part more than the one before, the last is the default."""

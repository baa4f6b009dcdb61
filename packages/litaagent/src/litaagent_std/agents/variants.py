"""Our agent in fixed settings, as classes: tournaments name agents by the path of a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.policy.parameters import Parameters

__all__ = [
    "REFERENCE",
    "LitaAgentBaseline",
    "LitaAgentCautious",
    "LitaAgentGreedy",
    "LitaAgentHRL",
    "LitaAgentHRLTracked",
    "LitaAgentV1",
]

REFERENCE: Final[Mapping[str, Any]] = {
    "l2": "heuristic",
    "l3": "model",
    "l4": "joint",
    "parameters": {
        "sell_start": 1.0,
        "sell_end_slack": 0.0,
        "sell_end_full": 0.15,
        "sell_curve": 1.0,
        "fill_weight": 0.5,
        "fill_rate": 0.2,
        "drift_weight": 0.0,
        "learn_rate": 0.4,
        "model_weight": 1.0,
        "model_curve": 2.0,
        "hold": 0.3,
        "urgency_low": 0.0,
        "urgency_high": 0.0,
        "impatience": 3.0,
        "buy_start": 0.0,
        "buy_end": 1.0,
        "buy_curve": 0.5,
        "buy_urgency": 0.7,
        "stock_target": 1.0,
        "stock_days": 4.0,
        "cover_days": 3.0,
        "bankruptcy_days": 3.0,
        "input_trust": 0.7,
        "risk_budget": 0.05,
        "assume_persistent": True,
        "overrides": {},
    },
}
"""Settings of the first agent that won the league's worlds, all written out: whatever the defaults become, it stays
playable (`LitaAgentV1`, ``lita-v1``) and is what later agents are compared with."""


class LitaAgentBaseline(LitaAgentHRL):
    """L1 and the heuristic goals alone: prices concede over time, offers are accepted one by one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **{"l3": "baseline", "l4": "greedy", **kwargs})


class LitaAgentGreedy(LitaAgentHRL):
    """With the acceptance model of L3, but without coordination across threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **{"l4": "greedy", **kwargs})


class LitaAgentCautious(LitaAgentHRL):
    """Without a risk budget: promises nothing that input does not cover, and offers no unit twice."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - scml's
        parameters: Parameters | Mapping[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401 - scml's
    ) -> None:
        given = parameters if isinstance(parameters, Parameters) else Parameters.from_mapping(parameters or {})
        super().__init__(*args, parameters=given.without_risk(), **kwargs)


class LitaAgentHRLTracked(LitaAgentHRL):
    """Keeps a record of every decision in ``brain.log``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **{"keep_log": True, **kwargs})


class LitaAgentV1(LitaAgentHRL):
    """The agent with the settings of `REFERENCE`: hand-written beliefs about partners, no urgency."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **{**REFERENCE, **kwargs})

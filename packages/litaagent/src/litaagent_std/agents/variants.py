"""Our agent in fixed settings, as classes: tournaments name agents by the path of a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.policy.parameters import Parameters
from litaagent_std.policy.versions import REFERENCE

__all__ = [
    "REFERENCE",
    "LitaAgentBaseline",
    "LitaAgentCautious",
    "LitaAgentGreedy",
    "LitaAgentHRL",
    "LitaAgentHRLTracked",
    "LitaAgentV1",
]


class LitaAgentBaseline(LitaAgentHRL):
    """L1 and the heuristic goals alone: prices concede over time, offers are accepted one by one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        super().__init__(*args, **{"l2": "heuristic", "l3": "baseline", "l4": "greedy", **kwargs})


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

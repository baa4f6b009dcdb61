"""The agent, also importable from here; it lives in `litaagent_std.agents.hrl`."""

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.agents.variants import LitaAgentHRLTracked

__all__ = ["LitaAgentHRL", "LitaAgentHRLTracked"]

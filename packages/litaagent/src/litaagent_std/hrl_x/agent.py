"""The agent with residual decisions, also importable from here; it lives in `litaagent_std.agents.hrl`.

An action is ``clip_offer(residual(base, change), agenda, most)``: the baseline's offer, moved by the learned residual
and clipped to what is legal and within L1's bound.
"""

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.agents.variants import LitaAgentHRLTracked
from litaagent_std.policy.l1.safety import clip_offer
from litaagent_std.policy.layers import residual

__all__ = ["LitaAgentHRL", "LitaAgentHRLTracked", "clip_offer", "residual"]

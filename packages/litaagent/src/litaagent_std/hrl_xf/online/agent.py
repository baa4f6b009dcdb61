"""Alias of `litaagent_std.agents.online.agent`: class paths in commands and model cards may name this module."""

from litaagent_std.agents.online.agent import LitaOnline

__all__ = ["LitaOnline"]

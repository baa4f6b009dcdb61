"""``lita new-agent``: a working agent of one's own to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from apexrl.configuration import configuration

__all__ = ["Config", "run"]


@configuration
class Config:
    """Write a working agent on top of our layers, with a test that passes; nothing is overwritten."""

    name: Annotated[str, Positional]
    """Name of the agent's class, such as MyAgent."""

    folder: Annotated[Path, arg(name="dir")] = Path()
    """Folder to write to."""


def run(config: Config) -> int:
    """Write the two files, and say what to do with them."""
    from litaagent_std.agents.scaffold import write_agent

    agent, test = write_agent(config.name, config.folder)
    print(f"{agent}: the agent\n{test}: its test")
    print(f"test it:     pytest {test}")
    print(f"measure it:  PYTHONPATH={config.folder} lita arena {agent.stem}.{config.name} --against lita --worlds 20")
    return 0

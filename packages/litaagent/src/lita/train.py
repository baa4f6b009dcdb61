"""``lita train``: the four layers from records; ``runners/run_hrl_bc_awr_train.py`` calls it."""

from __future__ import annotations

from litaagent_std.hrl_xf.training.config import TrainRunConfig as Config

__all__ = ["Config", "run"]


def run(config: Config) -> int:
    """Train, or go on with a run that stopped."""
    from litaagent_std.hrl_xf.training.launch import train

    return train(config)

"""``lita train-online``: PPO, MAPPO or evolution strategies in the league, strictly synchronous."""

from __future__ import annotations

from litaagent_std.hrl_xf.online.config import OnlineConfig as Config

__all__ = ["Config", "run"]


def run(config: Config) -> int:
    """Start the run of --output-dir, or go on with it."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    if config.executor == "inline":
        restart_with_fixed_hashing()  # worlds run in this very process
    from litaagent_std.hrl_xf.online.command import run_training, show_summary

    trainer, status = run_training(config)
    show_summary(trainer)
    return status

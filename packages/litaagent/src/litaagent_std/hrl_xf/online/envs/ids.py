"""Gymnasium ids of the league, registered by this package's entry point ``gymnasium.envs``."""

from typing import Final

from gymnasium.envs.registration import register, registry

__all__ = ["DAY_ID", "ROUND_ID", "register_ids"]

DAY_ID: Final = "litaagent/LeagueDay-v0"
ROUND_ID: Final = "litaagent/LeagueRound-v0"
_CLASSES: Final = {DAY_ID: "LeagueDayEnv", ROUND_ID: "LeagueRoundEnv"}


def register_ids() -> None:
    """Make `gymnasium.make` know the ids; the module of the classes is imported when one is made."""
    for name, cls in _CLASSES.items():
        if name not in registry:
            register(name, entry_point=f"litaagent_std.hrl_xf.online.envs.gym_env:{cls}")

"""The league as Gymnasium, PettingZoo and `VecEnv` environments.

* `stages`: worlds as steps, in lockstep: by day with several seats or by round with one.
* `layers`: the layers of the agent whose actions come from the user: residuals, or raw offers.
* `gym_env`, `pettingzoo_env`, `vec_env`: thin wrappers of the stages for each interface.
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.online.envs.gym_env import DAY_ID, ROUND_ID, LeagueDayEnv, LeagueRoundEnv
    from litaagent_std.hrl_xf.online.envs.pettingzoo_env import LeagueParallelEnv, parallel_env
    from litaagent_std.hrl_xf.online.envs.vec_env import LeagueDayVecEnv, LeagueRoundVecEnv
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "litaagent_std.hrl_xf.online.envs.gym_env": (
                "DAY_ID",
                "ROUND_ID",
                "LeagueDayEnv",
                "LeagueRoundEnv",
            ),
            "litaagent_std.hrl_xf.online.envs.pettingzoo_env": (
                "LeagueParallelEnv",
                "parallel_env",
            ),
            "litaagent_std.hrl_xf.online.envs.vec_env": (
                "LeagueDayVecEnv",
                "LeagueRoundVecEnv",
            ),
        },
    )

__all__ = [
    "DAY_ID",
    "ROUND_ID",
    "LeagueDayEnv",
    "LeagueDayVecEnv",
    "LeagueParallelEnv",
    "LeagueRoundEnv",
    "LeagueRoundVecEnv",
    "parallel_env",
]

"""The league as Gymnasium, PettingZoo and `VecEnv` environments.

* `game`: a world that stops at the decision requests of our seats; every rollout and environment is built on it.
* `stages`: a world as steps, by day with several seats or by round with one.
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

"""The league as Gymnasium, PettingZoo and `VecEnv` environments.

* `game`: a world that stops at the decision requests of our seats; every rollout and environment is built on it.
* `stages`: a world as steps, by day with several seats or by round with one.
* `gym_env`, `pettingzoo_env`, `vec_env`: thin wrappers of the stages for each interface.
"""

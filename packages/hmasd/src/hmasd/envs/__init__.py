"""The built-in tasks, each natively batched behind :class:`apexrl.envs.MultiAgentVecEnv`.

* :class:`~hmasd.envs.alice_and_bob.AliceAndBobEnv`: two agents, keys and goals, one sparse team reward.
* :class:`~hmasd.envs.uav.UAVEnv`: UAV base stations over users on the ground, with dense rewards.
* :class:`~hmasd.envs.overcooked.OvercookedEnv`: two cooks in a kitchen, rewarded for delivered soups.
* :mod:`hmasd.envs.pettingzoo`: the UAV tasks under PettingZoo's parallel API, and other PettingZoo modules as tasks.
"""

from hmasd.envs.alice_and_bob import AliceAndBobEnv
from hmasd.envs.overcooked import OvercookedEnv
from hmasd.envs.uav import UAVConfig, UAVEnv

__all__ = ["AliceAndBobEnv", "OvercookedEnv", "UAVConfig", "UAVEnv"]

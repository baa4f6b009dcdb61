"""Gymnasium ids, also those that installed packages declare by an entry point.

Gymnasium itself knows an id only after the module that registers it was imported. A package that declares ::

    [project.entry-points."gymnasium.envs"]
    my_package = "my_package.ids:register_ids"

needs no import: the function is called when one of its ids is first asked for here.
"""

from importlib.metadata import entry_points
from typing import Any

import gymnasium as gym

GROUP = "gymnasium.envs"
"""The group of the entry points."""


def make_env(env_id: str, **options: Any) -> gym.Env[Any, Any]:  # noqa: ANN401 - whatever the environment takes
    """Make an environment by its id, like `gymnasium.make`."""
    if env_id not in gym.registry and ":" not in env_id:
        for point in entry_points(group=GROUP):
            point.load()()
    env: gym.Env[Any, Any] = gym.make(env_id, **options)
    return env


def register_ids() -> None:
    """Register this package's environments; what its own entry point calls."""
    if "apexrl/CueRecall-v0" not in gym.registry:
        gym.register("apexrl/CueRecall-v0", entry_point="apexrl.envs.cue_recall:CueRecall")

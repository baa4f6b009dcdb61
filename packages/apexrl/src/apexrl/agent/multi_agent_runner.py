"""The runner of multi-agent algorithms: the same loop, callbacks, checkpoints and metrics as the on-policy runner."""

from typing import ClassVar

from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.mappo import MAPPO
from apexrl.algorithms.ppo import PPO


class MultiAgentRunner(OnPolicyRunner):
    """Trains MAPPO on a ``MultiAgentVecEnv``.

    It takes the arguments of :class:`apexrl.agent.on_policy_runner.OnPolicyRunner`, with ``algorithm="mappo"`` and a
    ``MAPPOConfig``. A step is a step of one environment, however many agents act in it; rewards in ``episode/`` and
    ``eval/`` are means over the agents present.
    """

    algorithms: ClassVar[dict[str, type[PPO]]] = {"mappo": MAPPO}
    default_algorithm: ClassVar[str] = "mappo"

"""The runner of multi-agent algorithms: the same loop, callbacks, checkpoints and metrics as the on-policy runner."""

from collections.abc import Mapping
from typing import ClassVar

from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.mappo import MAPPO
from apexrl.algorithms.ppo import PPO
from apexrl.collect.env_group import AnyVecEnv
from apexrl.envs.multi_agent import MultiAgentVecEnv
from apexrl.envs.vec_env import NotAnEnvError


class MultiAgentRunner(OnPolicyRunner):
    """Trains MAPPO on a ``MultiAgentVecEnv``.

    It takes the arguments of :class:`apexrl.agent.on_policy_runner.OnPolicyRunner`, with ``algorithm="mappo"`` and a
    ``MAPPOConfig``. A step is a step of one environment, however many agents act in it; rewards in ``episode/`` and
    ``eval/`` are means over the agents present.
    """

    algorithms: ClassVar[Mapping[str, type[PPO]]] = {"mappo": MAPPO}
    default_algorithm = "mappo"

    def _checked(self, env: AnyVecEnv) -> AnyVecEnv:
        """Refuse environments of a single agent."""
        if not isinstance(env, MultiAgentVecEnv):
            raise NotAnEnvError(
                f"env is a {type(env).__name__}, in which one agent acts",
                "MultiAgentRunner trains several agents: it takes a MultiAgentVecEnv or a PettingZoo parallel env",
                "use OnPolicyRunner (PPO)",
            )
        return env

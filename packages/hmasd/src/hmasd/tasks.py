"""Build environments from a task's name and an agent from an algorithm's name."""

from typing import Final

import torch

from apexrl.envs import MultiAgentVecEnv
from apexrl.runs.errors import ConfigurationError
from hmasd.agent import HMASDAgent
from hmasd.baselines.mappo import MAPPOAgent
from hmasd.baselines.mat import MATAgent
from hmasd.config import HMASDConfig
from hmasd.envs import AliceAndBobEnv, OvercookedEnv, UAVConfig, UAVEnv
from hmasd.envs.overcooked import LAYOUTS
from hmasd.envs.pettingzoo.modules import PREFIX, pettingzoo_env
from hmasd.learning.protocols import Agent

_BOARDS: Final = ("alice_and_bob", "alice_and_bob_crossed")
_OLD_DYNAMICS: Final = "_old_dynamics"
_KITCHENS: Final = (*LAYOUTS, *(layout + _OLD_DYNAMICS for layout in LAYOUTS))
SUCCESS_BY_TERMINATION: Final = frozenset(_BOARDS)
"""Tasks whose episodes terminate exactly when the team has succeeded."""

_AGENTS: Final[dict[str, type[HMASDAgent] | type[MAPPOAgent] | type[MATAgent]]] = {
    "hmasd": HMASDAgent,
    "mappo": MAPPOAgent,
    "mat": MATAgent,
}


def make_env(config: HMASDConfig, num_envs: int, seed: int) -> MultiAgentVecEnv:
    """Return a batch of the configured task's environments, not yet reset.

    Raises:
        ConfigurationError: The task is unknown or cannot be used, or has another number of agents.
    """
    task = config.task
    if config.reward_shaping > 0.0 and task not in _KITCHENS:
        raise ConfigurationError(
            f"reward_shaping={config.reward_shaping}: {task} has no shaped rewards; leave reward_shaping out, or use "
            f"one of: {', '.join(_KITCHENS)}"
        )
    if task in _BOARDS or task in _KITCHENS:
        if config.n_agents not in (None, 2):
            raise ConfigurationError(
                f"n_agents={config.n_agents}: {task} has 2 agents; leave n_agents out, or set n_agents=null "
                "where a file gives it"
            )
        if task in _KITCHENS:
            return OvercookedEnv(
                num_envs,
                layout=task.removesuffix(_OLD_DYNAMICS),
                max_steps=config.max_episode_steps,
                old_dynamics=task.endswith(_OLD_DYNAMICS),
                reward_shaping=config.reward_shaping,
            )
        is_crossed = task == "alice_and_bob_crossed"
        return AliceAndBobEnv(num_envs, max_steps=config.max_episode_steps, seed=seed, crossed=is_crossed)
    if task in ("uav_coverage", "uav_relay"):
        scenario = "relay" if task == "uav_relay" else "coverage"
        n_uavs = UAVConfig().n_uavs if config.n_agents is None else config.n_agents
        rules = UAVConfig(scenario=scenario, n_uavs=n_uavs, max_steps=config.max_episode_steps)  # type: ignore[arg-type]  # one of the two literals
        return UAVEnv(num_envs, config=rules, seed=seed)
    if task.startswith(PREFIX):
        return pettingzoo_env(task, num_envs=num_envs, max_steps=config.max_episode_steps, n_agents=config.n_agents)
    raise ConfigurationError(
        f"there is no task {task!r}; use {', '.join((*_BOARDS, *_KITCHENS))}, uav_coverage, uav_relay or "
        "pettingzoo:MODULE, for instance pettingzoo:mpe2.simple_spread_v3"
    )


def make_agent(config: HMASDConfig, env: MultiAgentVecEnv) -> Agent:
    """Return the configured algorithm, initialised from the configured seed; torch's global stream is not used."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return _AGENTS[config.algorithm](config, env)

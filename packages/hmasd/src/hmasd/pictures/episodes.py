"""One episode, recorded and animated with each agent in the colour of its skill."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from apexrl.envs import MultiAgentVecEnv
from apexrl.runs.errors import ConfigurationError
from hmasd.config.schema import HMASDConfig
from hmasd.envs.alice_and_bob.env import AliceAndBobEnv
from hmasd.envs.alice_and_bob.rules import GOALS, KEYS, SIDE
from hmasd.envs.uav.env import UAVEnv
from hmasd.pictures.svg import GRID, INK, animated, colour, document, rectangle, text
from hmasd.tasks import make_env
from hmasd.training.learner import Learner

_CELL = 36.0
_SECONDS_PER_STEP = 0.15


@dataclass(frozen=True, kw_only=True)
class Episode:
    """What happened in one environment, step by step."""

    places: NDArray[np.float64]
    """(x, y) of each agent before each step and at the end, in parts of the board ``(T + 1, n, 2)``."""
    skills: NDArray[np.int64]
    """Z, z_1 … z_n before each step and at the end ``(T + 1, n + 1)``; zeros without skills."""
    rewards: NDArray[np.float64]
    """Team reward of each step ``(T,)``."""
    fixed: NDArray[np.float64]
    """(x, y) of what does not move: users on the ground ``(m, 2)``."""


def record(learner: Learner, config: HMASDConfig, seed: int) -> Episode:
    """Play one episode of a task that has places.

    Raises:
        ConfigurationError: The task is not one that can be drawn.
    """
    env = make_env(config, 1, seed)
    policy = learner.policy(1, torch.Generator().manual_seed(seed), deterministic=config.eval_deterministic)
    observations, extras = env.reset(seed=seed)
    state, starts = extras["state"], torch.ones(1, dtype=torch.bool)
    fixed = env.worlds.users[0] / env.config.side if isinstance(env, UAVEnv) else np.zeros((0, 2))
    places, skills, rewards = [_places(env)], [], []
    while True:
        actions = policy.act(observations, state, starts)
        chosen = policy.skills
        skills.append(np.zeros(env.num_agents + 1, dtype=np.int64) if chosen is None else chosen[0].numpy().copy())
        here = _places(env)
        observations, reward, starts, extras = env.step(actions)
        state = extras["state"]
        rewards.append(float(reward[0].mean()))
        if bool(starts[0]):  # the environment is reset already; the last move is of no length in the picture
            places.append(here)
            skills.append(skills[-1])
            return Episode(
                places=np.stack(places), skills=np.stack(skills), rewards=np.array(rewards), fixed=fixed.copy()
            )
        places.append(_places(env))


def _places(env: MultiAgentVecEnv) -> NDArray[np.float64]:
    if isinstance(env, AliceAndBobEnv):
        rows, columns = np.divmod(env.cells[0], SIDE)
        return np.stack([columns + 0.5, rows + 0.5], axis=1) / SIDE
    if isinstance(env, UAVEnv):
        ground: NDArray[np.float64] = env.worlds.uavs[0, :, :2] / env.config.side
        return ground
    raise ConfigurationError(f"{type(env).__name__} has no places to draw; render alice_and_bob or a UAV task")


def animate(episode: Episode, task: str) -> str:
    """Return an animated SVG: agents in the colours of their individual skills, a bar in the colour of the team skill."""
    size = _CELL * SIDE
    seconds = _SECONDS_PER_STEP * len(episode.skills)
    # Without animation, as on paper, the picture shows the episode's end.
    elements = _board(size) if task == "alice_and_bob" else _ground(episode, size, relay=task == "uav_relay")
    band = [colour(skill) for skill in episode.skills[:, 0]]
    elements.append(
        f'<rect y="{size + 8:g}" width="{size:g}" height="10">{animated("fill", band, seconds, jumps=True)}</rect>'
    )
    elements.append(text(0, size + 36, f"{task}: colour of an agent = its skill, bar = team skill"))
    for agent in range(episode.places.shape[1]):
        xy = episode.places[:, agent] * size
        fill = [colour(skill) for skill in episode.skills[:, 1 + agent]]
        moving = animated("cx", xy[:, 0], seconds) + animated("cy", xy[:, 1], seconds)
        moving += animated("fill", fill, seconds, jumps=True)
        elements.append(
            f'<circle cx="{xy[-1, 0]:.5g}" cy="{xy[-1, 1]:.5g}" r="{_CELL * 0.32:g}" fill="{fill[-1]}" '
            f'stroke="{INK}" stroke-width="2">{moving}'
            f"<title>agent {agent}</title></circle>"
        )
    return document(size, size + 46, elements, f"An episode of {task}")


def _board(size: float) -> list[str]:
    elements = [rectangle(0, 0, size, size, INK), rectangle(_CELL, _CELL, size - 2 * _CELL, size - 2 * _CELL, "white")]
    for cells, sign, fill in ((KEYS, "key", "#fff3c4"), (GOALS, "goal", "#d7f5dd")):
        for cell in cells.tolist():
            row, column = divmod(cell, SIDE)
            elements.append(rectangle(column * _CELL, row * _CELL, _CELL, _CELL, fill))
            elements.append(text((column + 0.5) * _CELL, (row + 0.5) * _CELL + 4, sign, anchor="middle", size=11))
    return elements


def _ground(episode: Episode, size: float, *, relay: bool) -> list[str]:
    elements = [rectangle(0, 0, size, size, "#f6f8fa")]
    elements += [f'<circle cx="{x * size:.4g}" cy="{y * size:.4g}" r="3" fill="{GRID}"/>' for x, y in episode.fixed]
    if relay:
        elements.append(rectangle(0, size / 2 - 8, 10, 16, INK))
    return elements

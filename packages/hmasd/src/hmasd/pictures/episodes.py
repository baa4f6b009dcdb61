"""One episode, recorded and drawn as an animated SVG with each agent in the colour of its skill."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

import numpy as np
import torch

from apexrl.arrays import Floats, Ints
from apexrl.charts import color_of
from apexrl.envs import MultiAgentVecEnv
from apexrl.runs.errors import ConfigurationError
from hmasd.config import HMASDConfig
from hmasd.envs.alice_and_bob import GOALS, KEYS, SIDE, AliceAndBobEnv
from hmasd.envs.overcooked import LAYOUTS, OvercookedEnv
from hmasd.envs.pettingzoo.modules import PREFIX
from hmasd.envs.uav import UAVEnv
from hmasd.learning.protocols import Agent
from hmasd.tasks import make_env

_CELL: Final = 36.0
_SECONDS_PER_STEP: Final = 0.15
_DARK: Final = "#30363d"
_GREY: Final = "#d0d7de"
_TERRAIN: Final = {
    " ": ("", "white"),
    "X": ("", "#c8ccd1"),
    "O": ("onions", "#fff3c4"),
    "D": ("dishes", "#dbeafe"),
    "P": ("pot", "#f9d5cc"),
    "S": ("serve", "#d7f5dd"),
}
"""Label and colour of the cells of a kitchen."""


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One episode of one environment, step by step."""

    positions: Floats
    """(x, y) of each agent before each step and at the end, as shares of the board's side ``(T + 1, n, 2)``."""
    skills: Ints
    """Z, z_1 … z_n before each step and at the end ``(T + 1, n + 1)``; zeros for an algorithm without skills."""
    rewards: Floats
    """Team reward of each step ``(T,)``."""
    users: Floats
    """(x, y) of users on the ground, in the UAV tasks ``(m, 2)``."""


def is_drawn(task: str) -> bool:
    """Return whether the agents of a task have positions that can be drawn."""
    return not task.startswith(PREFIX)


def record(agent: Agent, config: HMASDConfig, seed: int) -> Episode:
    """Play one episode.

    Raises:
        ConfigurationError: The agents of the task have no positions.
    """
    if not is_drawn(config.task):
        raise ConfigurationError(f"agents of {config.task} have no positions to draw; render a task of this package")
    env = make_env(config, 1, seed)
    policy = agent.policy(1, torch.Generator(agent.device).manual_seed(seed), deterministic=config.eval_deterministic)
    observations, extras = env.reset(seed=seed)
    starts = torch.ones(1, dtype=torch.bool)
    users = env.worlds.users[0] / env.config.side if isinstance(env, UAVEnv) else np.zeros((0, 2))
    positions, skills, rewards = [_positions(env)], [], []
    while True:
        actions = policy.act(observations, extras["state"], starts, extras.get("action_mask"))
        chosen = policy.skills
        skills.append(
            np.zeros(env.num_agents + 1, dtype=np.int64) if chosen is None else chosen[0].cpu().numpy().copy()
        )
        before = _positions(env)
        observations, reward, starts, extras = env.step(actions)
        rewards.append(float(reward[0].mean()))
        if bool(starts[0]):  # the environment is already reset, so the last move is not drawn
            positions.append(before)
            skills.append(skills[-1])
            return Episode(
                positions=np.stack(positions), skills=np.stack(skills), rewards=np.array(rewards), users=users.copy()
            )
        positions.append(_positions(env))


def _positions(env: MultiAgentVecEnv) -> Floats:
    if isinstance(env, AliceAndBobEnv):
        rows, columns = np.divmod(env.cells[0], SIDE)
        return np.stack([columns + 0.5, rows + 0.5], axis=1) / SIDE
    if isinstance(env, UAVEnv):
        ground: Floats = env.worlds.uavs[0, :, :2] / env.config.side
        return ground
    assert isinstance(env, OvercookedEnv), f"{type(env).__name__} has no positions"
    width = env.kitchens.layout.width
    rows, columns = np.divmod(env.kitchens.cells[0], width)
    return np.stack([columns + 0.5, rows + 0.5], axis=1) / width


def animate(episode: Episode, task: str) -> str:
    """Return an animated SVG: agents in the colours of their skills and a bar in the colour of the team skill.

    Where animation is not supported, the picture shows the end of the episode.
    """
    size = _CELL * SIDE
    seconds = _SECONDS_PER_STEP * len(episode.skills)
    if task.startswith("alice_and_bob"):
        elements = _board(size)
    elif task.startswith("uav_"):
        elements = _ground(episode, size, relay=task == "uav_relay")
    else:
        elements = _kitchen(task.removesuffix("_old_dynamics"), size)
    team = _animated("fill", [color_of(skill) for skill in episode.skills[:, 0]], seconds, discrete=True)
    elements.append(f'<rect y="{size + 8:g}" width="{size:g}" height="10">{team}</rect>')
    for line, words in enumerate((task, "colour of an agent = its skill, bar = team skill")):
        elements.append(_text(0, size + 36 + 18 * line, words, anchor="start"))
    for agent in range(episode.positions.shape[1]):
        xy = episode.positions[:, agent] * size
        colors = [color_of(skill) for skill in episode.skills[:, 1 + agent]]
        motion = _animated("cx", xy[:, 0], seconds) + _animated("cy", xy[:, 1], seconds)
        motion += _animated("fill", colors, seconds, discrete=True)
        elements.append(
            f'<circle cx="{xy[-1, 0]:.5g}" cy="{xy[-1, 1]:.5g}" r="{_CELL * 0.32:g}" fill="{colors[-1]}" '
            f'stroke="{_DARK}" stroke-width="2">{motion}'
            f"<title>agent {agent}</title></circle>"
        )
    return _document(size, size + 64, elements, f"An episode of {task}")


def _board(size: float) -> list[str]:
    inner = size - 2 * _CELL
    elements = [_rectangle(0, 0, size, size, _DARK), _rectangle(_CELL, _CELL, inner, inner, "white")]
    for cells, label, fill in ((KEYS, "key", "#fff3c4"), (GOALS, "goal", "#d7f5dd")):
        for cell in cells.tolist():
            row, column = divmod(cell, SIDE)
            elements.append(_rectangle(column * _CELL, row * _CELL, _CELL, _CELL, fill))
            elements.append(_text((column + 0.5) * _CELL, (row + 0.5) * _CELL + 4, label, anchor="middle", size=11))
    return elements


def _kitchen(name: str, size: float) -> list[str]:
    layout = LAYOUTS[name]
    cell = size / layout.width
    elements = []
    for index, mark in enumerate(layout.terrain.tolist()):
        row, column = divmod(index, layout.width)
        label, fill = _TERRAIN[chr(mark)]
        elements.append(_rectangle(column * cell, row * cell, cell, cell, fill))
        elements.append(_text((column + 0.5) * cell, (row + 0.5) * cell + 4, label, anchor="middle", size=11))
    return elements


def _ground(episode: Episode, size: float, *, relay: bool) -> list[str]:
    elements = [_rectangle(0, 0, size, size, "#f6f8fa")]
    elements += [f'<circle cx="{x * size:.4g}" cy="{y * size:.4g}" r="3" fill="{_GREY}"/>' for x, y in episode.users]
    if relay:  # the ground station
        elements.append(_rectangle(0, size / 2 - 8, 10, 16, _DARK))
    return elements


def _document(width: float, height: float, elements: Iterable[str], title: str) -> str:
    """Return an SVG file on white, with a title for screen readers."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" font-family="sans-serif" font-size="12" fill="{_DARK}">'
    )
    background = f'<rect width="{width:g}" height="{height:g}" fill="white"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", background, *elements, "</svg>"]) + "\n"


def _text(x: float, y: float, content: str, *, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}">{escape(content)}</text>'


def _rectangle(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}" fill="{fill}"/>'


def _animated(attribute: str, values: Iterable[float | str], seconds: float, *, discrete: bool = False) -> str:
    """Return an attribute that repeats a sequence of values, interpolated unless ``discrete``."""
    listed = ";".join(value if isinstance(value, str) else f"{value:.5g}" for value in values)
    mode = ' calcMode="discrete"' if discrete else ""
    return f'<animate attributeName="{attribute}" values="{listed}" dur="{seconds:g}s" repeatCount="indefinite"{mode}/>'

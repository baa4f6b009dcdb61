"""What the agents and the critic see of a UAV world: numbers in [−1, 1], for a batch of worlds."""

import numpy as np
from numpy.typing import NDArray

from hmasd.envs.uav.world import Links, UAVConfig, UAVWorlds

Array = NDArray[np.float64]


def view_sizes(config: UAVConfig) -> tuple[int, int]:
    """Length of one UAV's observation and of the state."""
    shared = 2 * config.map_cells**2 + 1
    relay = config.scenario == "relay"
    # own place, load, own users, the others' places, maps and clock; in `relay` also the station, own hops, all links
    observation = 3 + 1 + 6 + 3 * (config.n_uavs - 1) + shared + (3 + 1 + config.n_uavs if relay else 0)
    state = 4 * config.n_uavs + shared + (2 * config.n_uavs if relay else 0)
    return observation, state


def look(worlds: UAVWorlds, links: Links, steps: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Observations ``(E, U, do)`` and states ``(E, ds)``, in fresh memory.

    Args:
        worlds: Positions.
        links: Who serves whom in these positions.
        steps: Steps since the start of each episode, ``(E,)``.
    """
    config = worlds.config
    n_envs, n_uavs = worlds.uavs.shape[:2]
    place = _scaled_places(worlds)
    load = links.served.sum(axis=2)[..., None] / config.capacity
    served = np.asarray(links.served.any(axis=1), dtype=np.bool_)
    clock = (steps / config.max_steps)[:, None]
    shared = np.concatenate([_user_map(worlds, np.ones_like(served)), _user_map(worlds, ~served), clock], axis=1)
    difference = worlds.uavs[:, None, :, :] - worlds.uavs[:, :, None, :]  # [e, i, j] = place of j seen from i
    others = difference[:, ~np.eye(n_uavs, dtype=bool)].reshape(n_envs, n_uavs, -1) / config.side
    everyone = np.broadcast_to(shared[:, None, :], (n_envs, n_uavs, shared.shape[1]))
    hears = links.ratio.argmax(axis=1)[:, None, :] == np.arange(n_uavs)[:, None]  # (E, U, K): whom a user hears best
    users = [_middle_of_users(worlds, hears), _middle_of_users(worlds, hears & ~served[:, None, :])]
    own = [place, load, *users, others, everyone]
    central = [place.reshape(n_envs, -1), load.reshape(n_envs, -1), shared]
    if config.scenario == "relay":
        hops = links.hops / n_uavs
        linked = (links.hops > 0).astype(np.float64)
        own += [
            (worlds.station - worlds.uavs) / config.side,
            hops[..., None],
            np.broadcast_to(linked[:, None, :], (n_envs, n_uavs, n_uavs)),
        ]
        central += [hops, linked]
    observation = np.clip(np.concatenate(own, axis=-1), -1.0, 1.0).astype(np.float32)
    state = np.clip(np.concatenate(central, axis=-1), -1.0, 1.0).astype(np.float32)
    return observation, state


def _middle_of_users(worlds: UAVWorlds, counted: NDArray[np.bool_]) -> Array:
    """For each UAV the way to the middle of its counted users, and their share of all users, ``(E, U, 3)``."""
    count = counted.sum(axis=2)
    total = np.einsum("euk,ekd->eud", counted.astype(np.float64), worlds.users)
    middle = total / np.maximum(count, 1)[..., None]
    way = np.where(count[..., None] > 0, middle - worlds.uavs[..., :2], 0.0) / worlds.config.side
    return np.concatenate([way, count[..., None] / worlds.config.n_users], axis=-1)


def _scaled_places(worlds: UAVWorlds) -> Array:
    """UAV positions with every axis scaled to [−1, 1]."""
    config = worlds.config
    low = np.array([0.0, 0.0, config.min_height])
    span = np.array([config.side, config.side, config.max_height - config.min_height])
    places: Array = 2.0 * (worlds.uavs - low) / span - 1.0
    return places


def _user_map(worlds: UAVWorlds, counted: NDArray[np.bool_]) -> Array:
    """Number of counted users in each cell of the map over a fifth of all users, clipped to 1, ``(E, cells²)``."""
    config = worlds.config
    cells = np.minimum((worlds.users / config.side * config.map_cells).astype(np.int64), config.map_cells - 1)
    flat = cells[..., 0] * config.map_cells + cells[..., 1]
    n_envs, n_cells = flat.shape[0], config.map_cells**2
    index = flat + np.arange(n_envs)[:, None] * n_cells
    counts = np.bincount(index.reshape(-1), weights=counted.reshape(-1), minlength=n_envs * n_cells)
    return np.minimum(counts.reshape(n_envs, n_cells) / (config.n_users / 5.0), 1.0)

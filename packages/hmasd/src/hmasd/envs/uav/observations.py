"""Observations of the UAVs and states for the critic, scaled to [−1, 1], for a batch of worlds."""

import numpy as np

from apexrl.arrays import Bools, Floats, Floats32, Ints
from hmasd.envs.uav.world import Links, UAVConfig, UAVWorlds


def observation_sizes(config: UAVConfig) -> tuple[int, int]:
    """Return the length of one UAV's observation and of the state."""
    shared = 2 * config.map_cells**2 + 1
    relay = config.scenario == "relay"
    # own position, load, own users, the others' positions, maps and time; in `relay` also station, own hops, all links
    observation = 3 + 1 + 6 + 3 * (config.n_uavs - 1) + shared + (3 + 1 + config.n_uavs if relay else 0)
    state = 4 * config.n_uavs + shared + (2 * config.n_uavs if relay else 0)
    return observation, state


def observe(worlds: UAVWorlds, links: Links, steps: Ints) -> tuple[Floats32, Floats32]:
    """Return observations ``(E, U, do)`` and states ``(E, ds)``, in fresh memory.

    Args:
        worlds: Positions.
        links: Links in these positions.
        steps: Steps since the start of each episode, ``(E,)``.
    """
    config = worlds.config
    n_envs, n_uavs = worlds.uavs.shape[:2]
    position = _scaled_positions(worlds)  # (E, U, 3)
    load = links.served.sum(axis=2)[..., None] / config.capacity  # (E, U, 1) users served, as a share of the capacity
    served = np.asarray(links.served.any(axis=1), dtype=np.bool_)  # (E, K) users with service
    time = (steps / config.max_steps)[:, None]  # (E, 1)
    # (E, 2·cells² + 1) what every UAV sees alike: maps of all users and of users without service, and the time
    shared = np.concatenate([_user_map(worlds, np.ones_like(served)), _user_map(worlds, ~served), time], axis=1)
    difference = worlds.uavs[:, None, :, :] - worlds.uavs[:, :, None, :]  # (E, U, U, 3) [e, i, j]: from i to j
    others = difference[:, ~np.eye(n_uavs, dtype=bool)].reshape(n_envs, n_uavs, -1) / config.side
    shared_rows = np.broadcast_to(shared[:, None, :], (n_envs, n_uavs, shared.shape[1]))
    is_best = links.ratio.argmax(axis=1)[:, None, :] == np.arange(n_uavs)[:, None]  # (E, U, K) best UAV of a user
    users = [_mean_user_offset(worlds, is_best), _mean_user_offset(worlds, is_best & ~served[:, None, :])]
    own = [position, load, *users, others, shared_rows]
    central = [position.reshape(n_envs, -1), load.reshape(n_envs, -1), shared]
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


def _mean_user_offset(worlds: UAVWorlds, counted: Bools) -> Floats:
    """Return the offset from each UAV to the mean of its counted users, and their share of all users, ``(E, U, 3)``."""
    count = counted.sum(axis=2)  # (E, U)
    total = np.einsum("euk,ekd->eud", counted.astype(np.float64), worlds.users)
    mean = total / np.maximum(count, 1)[..., None]  # (E, U, 2)
    offset = np.where(count[..., None] > 0, mean - worlds.uavs[..., :2], 0.0) / worlds.config.side
    return np.concatenate([offset, count[..., None] / worlds.config.n_users], axis=-1)


def _scaled_positions(worlds: UAVWorlds) -> Floats:
    """Return UAV positions with every axis scaled to [−1, 1], ``(E, U, 3)``."""
    config = worlds.config
    low = np.array([0.0, 0.0, config.min_height])
    span = np.array([config.side, config.side, config.max_height - config.min_height])
    positions: Floats = 2.0 * (worlds.uavs - low) / span - 1.0
    return positions


def _user_map(worlds: UAVWorlds, counted: Bools) -> Floats:
    """Return the counted users per cell of the map over a fifth of all users, clipped to 1, ``(E, cells²)``."""
    config = worlds.config
    cells = np.minimum((worlds.users / config.side * config.map_cells).astype(np.int64), config.map_cells - 1)
    # (E, K) cell of each user within its map, then within all maps
    flat = cells[..., 0] * config.map_cells + cells[..., 1]
    n_envs, n_cells = flat.shape[0], config.map_cells**2
    index = flat + np.arange(n_envs)[:, None] * n_cells
    counts = np.bincount(index.reshape(-1), weights=counted.reshape(-1), minlength=n_envs * n_cells)
    return np.minimum(counts.reshape(n_envs, n_cells) / (config.n_users / 5.0), 1.0)

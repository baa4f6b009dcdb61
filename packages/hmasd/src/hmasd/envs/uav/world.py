"""UAV base stations over a square of ground users: the physics and pay of both scenarios, for a batch of worlds.

Scenario ``coverage``: r = 0.7·coverage + 0.3·quality − 0.1·height.
Scenario ``relay``:    r = 0.4·coverage + 0.2·quality + 0.2·connectivity + 0.2·throughput − 0.1·hops/max_hops, where a
user is served only through a UAV that reaches the ground station, directly or over other UAVs.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apexrl.configuration import configuration
from hmasd.envs.uav.radio import RadioConfig, air_to_ground_gain, associate, hop_matrix, hops_to_station, sinr

Array = NDArray[np.float64]

_QUALITY_SPAN_DB = 30.0
"""A served user's quality is its SINR in dB over this span, clipped to [0, 1]."""
_HOTSPOT_SPREAD = 0.08
"""Standard deviation of users around their hot spot, in parts of the square's side."""
_START_RADIUS = 0.2
"""In ``relay`` UAVs start within this part of the side of the ground station."""


@configuration
class UAVConfig:
    """Size and rules of a UAV world."""

    scenario: Literal["coverage", "relay"] = "coverage"
    """Which of the two scenarios."""
    n_uavs: int = 5
    """Number of UAVs, which are the agents."""
    n_users: int = 50
    """Number of users on the ground."""
    side: float = 1000.0
    """Side of the square in metres."""
    min_height: float = 50.0
    """Lowest height in metres."""
    max_height: float = 150.0
    """Greatest height in metres."""
    max_speed: float = 30.0
    """Speed along each axis at action 1, in metres per second; steps last one second."""
    max_steps: int = 100
    """Time limit of an episode; reaching it truncates."""
    capacity: int = 10
    """Most users that one UAV serves."""
    hotspots: int = 4
    """Users gather around this many random places; 0 spreads them evenly."""
    map_cells: int = 5
    """Observations show users on a map of this many cells along each side."""


class Links(NamedTuple):
    """What the radio gives in the present positions. E worlds, U UAVs, K users."""

    served: NDArray[np.bool_]
    """``(E, U, K)``: which UAV serves which user."""
    ratio: Array
    """``(E, U, K)``: signal to interference and noise."""
    hops: NDArray[np.int64]
    """``(E, U)``: hops to the ground station, 0 without a way; all 1 in ``coverage``."""


@dataclass
class UAVWorlds:
    """Positions of a batch of worlds."""

    config: UAVConfig
    radio: RadioConfig
    uavs: Array
    """``(E, U, 3)`` in metres."""
    users: Array
    """``(E, K, 2)`` in metres."""

    @classmethod
    def empty(cls, num_envs: int, config: UAVConfig) -> "UAVWorlds":
        """Worlds at the origin; :meth:`restart` fills them."""
        uavs = np.zeros((num_envs, config.n_uavs, 3))
        return cls(config, RadioConfig(), uavs, np.zeros((num_envs, config.n_users, 2)))

    @property
    def station(self) -> Array:
        """The ground station of ``relay``: the middle of the western border, 25 m high."""
        return np.array([0.0, self.config.side / 2, 25.0])

    def restart(self, envs: NDArray[np.int64], rng: np.random.Generator) -> None:
        """New users and new starting places in some worlds."""
        config, count = self.config, envs.size
        self.users[envs] = _scatter_users(count, config, rng)
        if config.scenario == "relay":
            offset = rng.uniform(-1.0, 1.0, (count, config.n_uavs, 2)) * _START_RADIUS * config.side
            ground = np.clip(self.station[:2] + offset, 0.0, config.side)
        else:
            ground = rng.uniform(0.0, config.side, (count, config.n_uavs, 2))
        height = rng.uniform(config.min_height, config.max_height, (count, config.n_uavs, 1))
        self.uavs[envs] = np.concatenate([ground, height], axis=-1)

    def move(self, actions: Array) -> None:
        """Fly for one second with velocity ``actions ∈ [−1, 1]³`` times the greatest speed, inside the borders."""
        moved = self.uavs + np.clip(actions, -1.0, 1.0) * self.config.max_speed
        low = np.array([0.0, 0.0, self.config.min_height])
        high = np.array([self.config.side, self.config.side, self.config.max_height])
        self.uavs = np.clip(moved, low, high)

    def links(self) -> Links:
        """Who serves whom."""
        ratio = sinr(air_to_ground_gain(self.uavs, self.users, self.radio), self.radio)
        served = associate(ratio, 10.0 ** (self.radio.min_sinr_db / 10.0), self.config.capacity)
        if self.config.scenario == "coverage":
            return Links(served, ratio, np.ones(self.uavs.shape[:2], dtype=np.int64))
        station = np.broadcast_to(self.station, (self.uavs.shape[0], 1, 3))
        hops = hops_to_station(hop_matrix(np.concatenate([station, self.uavs], axis=1), self.radio))
        return Links(served & (hops > 0)[:, :, None], ratio, hops)

    def reward_parts(self, links: Links) -> dict[str, Array]:
        """Return the named quantities of the reward formulas, each ``(E,)`` in [0, 1]."""
        config = self.config
        served_ratio = np.where(links.served, links.ratio, 0.0).max(axis=1)  # (E, K); 0 for a user without service
        decibels = 10.0 * np.log10(np.maximum(served_ratio, 1e-9))
        parts = {
            "coverage": links.served.any(axis=1).mean(axis=1),
            "quality": np.clip(decibels / _QUALITY_SPAN_DB, 0.0, 1.0).mean(axis=1),
        }
        if config.scenario == "coverage":
            height = (self.uavs[..., 2] - config.min_height) / (config.max_height - config.min_height)
            parts["height"] = height.mean(axis=1)
            return parts
        connected = links.hops > 0
        parts["connectivity"] = connected.mean(axis=1)
        parts["throughput"] = self._throughput(links)
        parts["hops"] = links.hops.sum(axis=1) / np.maximum(connected.sum(axis=1), 1) / config.n_uavs
        return parts

    def reward(self, parts: dict[str, Array]) -> Array:
        """Return the team's reward ``(E,)`` of the scenario, from :meth:`reward_parts`."""
        if self.config.scenario == "coverage":
            return 0.7 * parts["coverage"] + 0.3 * parts["quality"] - 0.1 * parts["height"]
        gain = 0.4 * parts["coverage"] + 0.2 * parts["quality"] + 0.2 * parts["connectivity"]
        return gain + 0.2 * parts["throughput"] - 0.1 * parts["hops"]

    def _throughput(self, links: Links) -> Array:
        """Rate to users over the rate of all UAVs at 30 dB; each further hop takes its share of the air time."""
        users_of = links.served.sum(axis=2)  # (E, U)
        bits = np.where(links.served, np.log2(1.0 + links.ratio), 0.0).sum(axis=2)
        rate = bits / np.maximum(users_of, 1) / np.maximum(links.hops, 1)  # in units of the bandwidth
        full = self.config.n_uavs * np.log2(1.0 + 10.0 ** (_QUALITY_SPAN_DB / 10.0))
        share: Array = np.clip(rate.sum(axis=1) / full, 0.0, 1.0)
        return share


def _scatter_users(count: int, config: UAVConfig, rng: np.random.Generator) -> Array:
    if config.hotspots == 0:
        return rng.uniform(0.0, config.side, (count, config.n_users, 2))
    centres = rng.uniform(0.1 * config.side, 0.9 * config.side, (count, config.hotspots, 2))
    chosen = rng.integers(0, config.hotspots, (count, config.n_users))
    around = np.take_along_axis(centres, chosen[..., None], axis=1)
    spread = rng.normal(0.0, _HOTSPOT_SPREAD * config.side, around.shape)
    return np.clip(around + spread, 0.0, config.side)

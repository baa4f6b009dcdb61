"""UAV base stations over a square of ground users: physics and rewards of both scenarios, for a batch of worlds.

Scenario ``coverage``: r = 0.7·coverage + 0.3·quality − 0.1·height.
Scenario ``relay``:    r = 0.4·coverage + 0.2·quality + 0.2·connectivity + 0.2·throughput − 0.1·hops/max_hops, where a
user is served only through a UAV that reaches the ground station, directly or over other UAVs.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from apexrl.arrays import Bools, Floats, Ints
from apexrl.configuration import configuration
from hmasd.envs.uav.radio import RadioConfig, air_to_ground_gain, associate, hop_matrix, hops_to_station, sinr

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
    n_uavs: Annotated[int, Field(ge=1)] = 5
    """Number of UAVs, which are the agents."""
    n_users: Annotated[int, Field(ge=1)] = 50
    """Number of users on the ground."""
    side: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1000.0
    """Side of the square in metres."""
    min_height: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 50.0
    """Lowest height in metres."""
    max_height: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 150.0
    """Highest height in metres."""
    max_speed: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    """Speed along each axis at action 1, in metres per second; steps last one second."""
    max_steps: Annotated[int, Field(ge=1)] = 100
    """Time limit of an episode; reaching it truncates."""
    capacity: Annotated[int, Field(ge=1)] = 10
    """Most users that one UAV serves."""
    hotspots: Annotated[int, Field(ge=0)] = 4
    """Number of random centres that users gather around; 0 spreads them uniformly."""
    map_cells: Annotated[int, Field(ge=1)] = 5
    """Cells along each side of the user maps in observations."""

    def __post_init__(self) -> None:
        if self.min_height >= self.max_height:
            raise ValueError(f"min_height={self.min_height} must be below max_height={self.max_height}")


class Links(NamedTuple):
    """Radio links in the current positions. E worlds, U UAVs, K users."""

    served: Bools
    """``(E, U, K)``: which UAV serves which user."""
    ratio: Floats
    """``(E, U, K)``: signal to interference and noise."""
    hops: Ints
    """``(E, U)``: hops to the ground station, 0 if it cannot be reached; all 1 in ``coverage``."""


@dataclass
class UAVWorlds:
    """Positions of UAVs and users in a batch of worlds."""

    config: UAVConfig
    radio: RadioConfig
    uavs: Floats
    """``(E, U, 3)`` in metres."""
    users: Floats
    """``(E, K, 2)`` in metres."""

    @classmethod
    def empty(cls, num_envs: int, config: UAVConfig) -> "UAVWorlds":
        """Return worlds with all positions 0; :meth:`reset` draws them."""
        uavs = np.zeros((num_envs, config.n_uavs, 3))
        return cls(config, RadioConfig(), uavs, np.zeros((num_envs, config.n_users, 2)))

    @property
    def station(self) -> Floats:
        """Position of the ground station of ``relay``, ``(3,)``: the middle of the western border, 25 m high."""
        return np.array([0.0, self.config.side / 2, 25.0])

    def reset(self, envs: Ints, rng: np.random.Generator) -> None:
        """Draw new users and starting positions in some worlds."""
        config, count = self.config, envs.size
        self.users[envs] = _scatter_users(count, config, rng)
        if config.scenario == "relay":
            offset = rng.uniform(-1.0, 1.0, (count, config.n_uavs, 2)) * _START_RADIUS * config.side
            ground = np.clip(self.station[:2] + offset, 0.0, config.side)
        else:
            ground = rng.uniform(0.0, config.side, (count, config.n_uavs, 2))
        height = rng.uniform(config.min_height, config.max_height, (count, config.n_uavs, 1))
        self.uavs[envs] = np.concatenate([ground, height], axis=-1)

    def move(self, actions: Floats) -> None:
        """Move for one second with velocity ``actions ∈ [−1, 1]³`` times the maximum speed, clipped to the borders."""
        moved = self.uavs + np.clip(actions, -1.0, 1.0) * self.config.max_speed
        low = np.array([0.0, 0.0, self.config.min_height])
        high = np.array([self.config.side, self.config.side, self.config.max_height])
        self.uavs = np.clip(moved, low, high)

    def links(self) -> Links:
        """Compute which UAV serves which user, and the hops to the station."""
        ratio = sinr(air_to_ground_gain(self.uavs, self.users, self.radio), self.radio)
        served = associate(ratio, 10.0 ** (self.radio.min_sinr_db / 10.0), self.config.capacity)
        if self.config.scenario == "coverage":
            return Links(served, ratio, np.ones(self.uavs.shape[:2], dtype=np.int64))
        station = np.broadcast_to(self.station, (self.uavs.shape[0], 1, 3))
        hops = hops_to_station(hop_matrix(np.concatenate([station, self.uavs], axis=1), self.radio))
        return Links(served & (hops > 0)[:, :, None], ratio, hops)

    def reward_parts(self, links: Links) -> dict[str, Floats]:
        """Return the named quantities of the reward formulas, each ``(E,)`` in [0, 1]."""
        config = self.config
        served_ratio = np.where(links.served, links.ratio, 0.0).max(axis=1)  # (E, K), 0 for a user without service
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

    def reward(self, parts: dict[str, Floats]) -> Floats:
        """Return the team's reward ``(E,)`` of the scenario, from :meth:`reward_parts`."""
        if self.config.scenario == "coverage":
            return 0.7 * parts["coverage"] + 0.3 * parts["quality"] - 0.1 * parts["height"]
        gain = 0.4 * parts["coverage"] + 0.2 * parts["quality"] + 0.2 * parts["connectivity"]
        return gain + 0.2 * parts["throughput"] - 0.1 * parts["hops"]

    def _throughput(self, links: Links) -> Floats:
        """Return the rate to users over the rate of all UAVs at 30 dB, ``(E,)``; hops divide the air time."""
        user_count = links.served.sum(axis=2)  # (E, U)
        bits = np.where(links.served, np.log2(1.0 + links.ratio), 0.0).sum(axis=2)
        rate = bits / np.maximum(user_count, 1) / np.maximum(links.hops, 1)  # (E, U) in units of the bandwidth
        full = self.config.n_uavs * np.log2(1.0 + 10.0 ** (_QUALITY_SPAN_DB / 10.0))
        share: Floats = np.clip(rate.sum(axis=1) / full, 0.0, 1.0)
        return share


def _scatter_users(count: int, config: UAVConfig, rng: np.random.Generator) -> Floats:
    if config.hotspots == 0:
        return rng.uniform(0.0, config.side, (count, config.n_users, 2))
    # (count, hotspots, 2) centres; every user draws one and a normal offset from it
    centres = rng.uniform(0.1 * config.side, 0.9 * config.side, (count, config.hotspots, 2))
    chosen = rng.integers(0, config.hotspots, (count, config.n_users))
    around = np.take_along_axis(centres, chosen[..., None], axis=1)
    spread = rng.normal(0.0, _HOTSPOT_SPREAD * config.side, around.shape)
    return np.clip(around + spread, 0.0, config.side)

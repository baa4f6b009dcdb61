"""A vectorised air-to-ground radio model: every function takes leading batch axes and has no Python loop over links.

Powers are in milliwatts and gains are plain ratios, so that interference adds. Decibels are in the configuration only.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from apexrl.arrays import Bools, Floats, Ints

SPEED_OF_LIGHT: Final = 299_792_458.0


@dataclass(frozen=True, kw_only=True)
class RadioConfig:
    """Physical constants of the links."""

    frequency_hz: float = 2.4e9
    """Carrier frequency."""
    transmit_dbm: float = 20.0
    """Transmit power of each UAV and of the ground station."""
    noise_dbm: float = -104.0
    """Noise power over the band."""
    min_sinr_db: float = 0.0
    """A user is served at this signal to interference and noise ratio or above."""
    backhaul_snr_db: float = 34.0
    """A backhaul hop needs this ratio; at 34 dB a line-of-sight hop reaches about 316 m, so far UAVs need relays."""
    los_a: float = 9.61
    """First constant of the urban line-of-sight probability 1 / (1 + a·exp(−b·(θ − a))), θ in degrees."""
    los_b: float = 0.16
    """Second constant of the line-of-sight probability."""
    loss_los_db: float = 1.0
    """Excess loss of a line-of-sight link over free space."""
    loss_nlos_db: float = 20.0
    """Excess loss of an obstructed link over free space."""


def milliwatts(dbm: float) -> float:
    """Convert a power from dBm to milliwatts."""
    return float(10.0 ** (dbm / 10.0))


def free_space_gain(distance: Floats, frequency_hz: float) -> Floats:
    """Return the free-space power gain (c / 4πfd)², as a ratio."""
    return np.square(SPEED_OF_LIGHT / (4.0 * np.pi * frequency_hz * np.maximum(distance, 1.0)))


def air_to_ground_gain(uavs: Floats, users: Floats, radio: RadioConfig) -> Floats:
    """Return the mean power gain between UAVs and users on the ground.

    Free-space gain times the excess loss averaged (in dB) over the line-of-sight probability of the elevation angle.

    Args:
        uavs: Positions ``(..., U, 3)`` in metres.
        users: Positions ``(..., K, 2)`` in metres, on the ground.
        radio: Physical constants.

    Returns:
        Gains ``(..., U, K)``.
    """
    offset = uavs[..., :, None, :2] - users[..., None, :, :]  # (..., U, K, 2)
    ground = np.square(offset).sum(axis=-1)
    height = uavs[..., :, None, 2]  # (..., U, 1)
    distance = np.sqrt(ground + np.square(height))  # (..., U, K)
    elevation = np.degrees(np.arcsin(height / np.maximum(distance, 1.0)))
    line_of_sight = 1.0 / (1.0 + radio.los_a * np.exp(-radio.los_b * (elevation - radio.los_a)))
    excess_db = radio.loss_nlos_db + (radio.loss_los_db - radio.loss_nlos_db) * line_of_sight
    excess: Floats = np.exp(excess_db * (-np.log(10.0) / 10.0))
    return free_space_gain(distance, radio.frequency_hz) * excess


def sinr(gain: Floats, radio: RadioConfig) -> Floats:
    """Return the ratio of each UAV's signal at each user to noise plus all other UAVs' signals, ``(..., U, K)``."""
    power = milliwatts(radio.transmit_dbm) * gain
    interference = power.sum(axis=-2, keepdims=True) - power
    ratio: Floats = power / (interference + milliwatts(radio.noise_dbm))
    return ratio


def associate(ratio: Floats, min_ratio: float, capacity: int) -> Bools:
    """Assign users to UAVs.

    A user requests the UAV with the best SINR, if that reaches ``min_ratio``. A UAV serves the ``capacity`` best
    requests; ties go to the users that come first along the axis.

    Args:
        ratio: SINR ``(..., U, K)``.
        min_ratio: Lowest SINR that is served, as a ratio.
        capacity: Most users of one UAV.

    Returns:
        ``(..., U, K)``, at most one true per user and ``capacity`` per UAV.
    """
    n_uavs, n_users = ratio.shape[-2:]
    best = ratio.argmax(axis=-2)  # (..., K) UAV with the best SINR
    requests: Bools = (best[..., None, :] == np.arange(n_uavs)[:, None]) & (ratio >= min_ratio)
    if capacity >= n_users:
        return requests
    # Rank instead of a threshold: users at the same position, as at the borders, have equal SINR.
    ranking = np.argsort(np.where(requests, -ratio, np.inf), axis=-1, kind="stable")
    served = np.zeros_like(requests)
    np.put_along_axis(served, ranking[..., :capacity], True, axis=-1)
    return requests & served


def hop_matrix(nodes: Floats, radio: RadioConfig) -> Bools:
    """Return which pairs of backhaul nodes can make a hop by free-space loss, ``(..., N, N)``."""
    difference = nodes[..., :, None, :] - nodes[..., None, :, :]
    distance = np.sqrt(np.square(difference).sum(axis=-1))
    power = milliwatts(radio.transmit_dbm) * free_space_gain(distance, radio.frequency_hz)
    linked: Bools = power >= milliwatts(radio.noise_dbm + radio.backhaul_snr_db)
    return linked


def hops_to_station(linked: Bools) -> Ints:
    """Count the hops from each UAV to the ground station, which is node 0; 0 for a UAV that cannot reach it.

    Args:
        linked: Symmetric hop matrix ``(..., U + 1, U + 1)``.

    Returns:
        Hops ``(..., U)``.
    """
    n_uavs = linked.shape[-1] - 1
    # (..., U + 1) nodes reached so far; every pass adds the nodes that are one hop further
    reached = linked[..., 0, :].copy()
    reached[..., 0] = True
    hops = np.where(reached[..., 1:], 1, 0).astype(np.int64)
    for hop in range(2, n_uavs + 1):
        grown = reached | (linked & reached[..., None, :]).any(axis=-1)
        hops[(grown & ~reached)[..., 1:]] = hop
        reached = grown
    return hops

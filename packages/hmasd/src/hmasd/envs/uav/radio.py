"""A vectorised air-to-ground radio model: every function takes leading batch axes and has no Python loop over links.

Powers are in milliwatts and gains are plain ratios, so that interference adds; decibels appear only at the borders.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

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
    """Power in milliwatts."""
    return float(10.0 ** (dbm / 10.0))


def free_space_gain(distance: Array, frequency_hz: float) -> Array:
    """Free-space power gain (c / 4πfd)², as a ratio."""
    return np.square(SPEED_OF_LIGHT / (4.0 * np.pi * frequency_hz * np.maximum(distance, 1.0)))


def air_to_ground_gain(uavs: Array, users: Array, radio: RadioConfig) -> Array:
    """Mean power gain between UAVs and users on the ground.

    Free-space gain times the excess loss averaged (in dB) over the line-of-sight probability of the elevation angle.

    Args:
        uavs: Positions ``(..., U, 3)`` in metres.
        users: Positions ``(..., K, 2)`` in metres, on the ground.
        radio: Physical constants.

    Returns:
        Gains ``(..., U, K)``.
    """
    flat = uavs[..., :, None, :2] - users[..., None, :, :]
    ground = np.square(flat).sum(axis=-1)
    height = uavs[..., :, None, 2]
    distance = np.sqrt(ground + np.square(height))
    elevation = np.degrees(np.arcsin(height / np.maximum(distance, 1.0)))
    line_of_sight = 1.0 / (1.0 + radio.los_a * np.exp(-radio.los_b * (elevation - radio.los_a)))
    excess_db = radio.loss_nlos_db + (radio.loss_los_db - radio.loss_nlos_db) * line_of_sight
    excess: Array = np.exp(excess_db * (-np.log(10.0) / 10.0))
    return free_space_gain(distance, radio.frequency_hz) * excess


def sinr(gain: Array, radio: RadioConfig) -> Array:
    """Ratio of each UAV's signal at each user to the noise plus all other UAVs' signals, ``(..., U, K)``."""
    power = milliwatts(radio.transmit_dbm) * gain
    interference = power.sum(axis=-2, keepdims=True) - power
    ratio: Array = power / (interference + milliwatts(radio.noise_dbm))
    return ratio


def associate(ratio: Array, min_ratio: float, capacity: int) -> NDArray[np.bool_]:
    """Which UAV serves which user.

    A user asks the UAV it hears best, if that is good enough; a UAV serves the best ``capacity`` of those that ask, and
    of equally good ones those that come first along the axis.

    Args:
        ratio: SINR ``(..., U, K)``.
        min_ratio: Lowest SINR that is served, as a ratio.
        capacity: Most users of one UAV.

    Returns:
        ``(..., U, K)``, at most one true per user and ``capacity`` per UAV.
    """
    n_uavs, n_users = ratio.shape[-2:]
    best = ratio.argmax(axis=-2)  # (..., K)
    asks: NDArray[np.bool_] = (best[..., None, :] == np.arange(n_uavs)[:, None]) & (ratio >= min_ratio)
    if capacity >= n_users:
        return asks
    # A rank, not a threshold: users in one place, as the borders make them, hear a UAV equally well.
    ranking = np.argsort(np.where(asks, -ratio, np.inf), axis=-1, kind="stable")
    served = np.zeros_like(asks)
    np.put_along_axis(served, ranking[..., :capacity], True, axis=-1)
    return asks & served


def hop_matrix(nodes: Array, radio: RadioConfig) -> NDArray[np.bool_]:
    """Which pairs of backhaul nodes hear each other well enough for a hop, ``(..., N, N)``, by free-space loss."""
    difference = nodes[..., :, None, :] - nodes[..., None, :, :]
    distance = np.sqrt(np.square(difference).sum(axis=-1))
    power = milliwatts(radio.transmit_dbm) * free_space_gain(distance, radio.frequency_hz)
    linked: NDArray[np.bool_] = power >= milliwatts(radio.noise_dbm + radio.backhaul_snr_db)
    return linked


def hops_to_station(linked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number of hops from each UAV to the ground station, which is node 0; 0 for a UAV that cannot reach it.

    Args:
        linked: Symmetric hop matrix ``(..., U + 1, U + 1)``.

    Returns:
        Hops ``(..., U)``.
    """
    n_uavs = linked.shape[-1] - 1
    reached = linked[..., 0, :].copy()
    reached[..., 0] = True
    hops = np.where(reached[..., 1:], 1, 0).astype(np.int64)
    for hop in range(2, n_uavs + 1):
        grown = reached | (linked & reached[..., None, :]).any(axis=-1)
        hops[(grown & ~reached)[..., 1:]] = hop
        reached = grown
    return hops

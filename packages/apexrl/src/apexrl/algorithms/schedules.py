"""How the learning rate moves from update to update: pure functions."""

ADAPTIVE_FACTOR = 1.5
"""How far one adaptive adjustment goes."""
ADAPTIVE_BAND = 2.0
"""The learning rate stays while desired / band ≤ KL ≤ desired · band."""


def linear(initial: float, progress: float) -> float:
    """From ``initial`` at progress 0 to 0 at progress 1."""
    return initial * max(0.0, 1.0 - progress)


def follow_kl(current: float, kl: float, desired_kl: float, bounds: tuple[float, float]) -> float:
    """Shorter steps when the policy moved too far, longer ones when it hardly moved.

    Args:
        current: The learning rate of the last update.
        kl: KL(π_old ‖ π_new) that the last update made.
        desired_kl: What to aim at.
        bounds: The smallest and the largest learning rate.
    """
    low, high = bounds
    if kl > desired_kl * ADAPTIVE_BAND:
        return max(low, current / ADAPTIVE_FACTOR)
    if kl < desired_kl / ADAPTIVE_BAND:
        return min(high, current * ADAPTIVE_FACTOR)
    return current

"""Delivery buckets: groups of leads (days until delivery) for which L2 sets one quantity and one price."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

__all__ = ["bucket_edges", "bucket_of", "buckets", "n_buckets"]


def buckets(horizon: int) -> tuple[range, ...]:
    """Return the leads of each delivery bucket: today, then three parts of the horizon that grow."""
    cuts = sorted({0, 1, 1 + ceil(horizon * 0.2), 1 + ceil(horizon * 0.5), horizon + 1})
    return tuple(range(low, high) for low, high in pairwise(cuts))


def bucket_edges(horizon: int) -> tuple[int, ...]:
    """Return the first lead of each bucket, and the lead after the last one.

    Bucket ``b`` holds the leads from ``edges[b]`` to ``edges[b + 1] - 1``; together they are 0 to the horizon.

    Raises:
        ValueError: If the horizon is negative.
    """
    if horizon < 0:
        raise ValueError(f"horizon={horizon} is negative; give the number of days ahead that can be agreed for")
    parts = buckets(horizon)
    return (*(part.start for part in parts), parts[-1].stop)


def bucket_of(lead: int, horizon: int) -> int:
    """Return the bucket of a lead.

    Raises:
        ValueError: If the lead lies outside 0 to the horizon.
    """
    edges = bucket_edges(horizon)
    if not 0 <= lead < edges[-1]:
        raise ValueError(f"lead={lead} is in no bucket; deliveries can be agreed for 0 to {horizon} days ahead")
    return sum(lead >= edge for edge in edges[1:])


def n_buckets(horizon: int) -> int:
    """Return the number of buckets."""
    return len(bucket_edges(horizon)) - 1

"""Delivery buckets by number: which bucket a lead falls into, and where buckets begin and end."""

from __future__ import annotations

from .l2.heuristic import buckets

__all__ = ["bucket_edges", "bucket_of", "n_buckets"]


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

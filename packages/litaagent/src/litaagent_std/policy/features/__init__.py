"""From observations to arrays: the inputs of a live agent and of the data pipeline.

`day_features` and `thread_features` evaluate the rows of `FEATURES`, the table of every name, source, formula and
scale, for a batch of days or threads; `of_day` and `of_thread` take one. `as_markdown` prints the table for the
documentation. Datasets and weights carry its digest (`features_digest`), so that they are never used with arrays of
another table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ..observation import REPORTS_KEPT
from ..versions import same_digest
from .day import ROLE, STATIC, TEMPORAL, DayFeatures, WiderHorizonWarning, day_features
from .one import OneThread, of_day, of_thread
from .table import LIMIT, Feature
from .thread import HISTORY, PARTNER, RANGES, THREAD, ThreadFeatures, thread_features

__all__ = [
    "DAY_FEATURES",
    "FEATURES",
    "LIMIT",
    "REVISION",
    "THREAD_FEATURES",
    "DayFeatures",
    "Feature",
    "OneThread",
    "ThreadFeatures",
    "WiderHorizonWarning",
    "as_markdown",
    "check_digest",
    "day_features",
    "features_digest",
    "of_day",
    "of_thread",
    "thread_features",
]

REVISION: Final = 1
"""Increased when values change although no row of the table does."""

_DAY: Final[Mapping[str, Sequence[Feature[Any]]]] = {"x_static": STATIC, "x_temporal": TEMPORAL, "x_role": ROLE}
_THREAD: Final[Mapping[str, Sequence[Feature[Any]]]] = {
    "history": HISTORY,
    "ranges": RANGES,
    "x_thread": THREAD,
    "x_partner": PARTNER,
}

FEATURES: Final[Mapping[str, Sequence[Feature[Any]]]] = MappingProxyType({**_DAY, **_THREAD})
"""Every feature by the array it is a column of, in the order of the columns."""

DAY_FEATURES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {array: tuple(feature.name for feature in features) for array, features in _DAY.items()}
)
"""Names of the columns of `DayFeatures`' arrays."""

THREAD_FEATURES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {array: tuple(feature.name for feature in features) for array, features in _THREAD.items()}
)
"""Names of the columns of `ThreadFeatures`' arrays."""


def features_digest() -> str:
    """Return the table's SHA-256 in hexadecimal digits."""
    rows = [
        [array, f.name, f.source, f.formula, float(f.scale)] for array, features in FEATURES.items() for f in features
    ]
    content = {"features": rows, "limit": LIMIT, "reports_kept": REPORTS_KEPT, "revision": REVISION}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_digest(digest: str, what: str) -> None:
    """Make sure that something was made with the present table.

    Args:
        digest: The digest that it carries.
        what: What it is, for the message.

    Raises:
        ValueError: If it was made with another table.
    """
    present = features_digest()
    if not same_digest(digest, present):
        raise ValueError(
            f"{what} was made with features {digest[:12]}…, present are {present[:12]}…; inputs would mean something "
            "else, so make it again with this version, or use the version that made it"
        )


def as_markdown() -> str:
    """Return the table for the documentation."""
    parts = []
    for array, features in FEATURES.items():
        lines = [f"### `{array}`", "", "| feature | from | formula | divided by |", "|---|---|---|---|"]
        lines += [f"| `{f.name}` | {f.source or '—'} | {f.formula} | {f.scale:g} |" for f in features]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)

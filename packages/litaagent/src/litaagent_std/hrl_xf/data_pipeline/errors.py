"""What can be wrong with records, tables and datasets, each with the way out."""

from __future__ import annotations

from apexrl.runs.errors import UserFacingError

__all__ = ["BadSampleError", "DatasetError", "EmptySplitError", "NoSuchAgentError"]


class DatasetError(UserFacingError):
    """A dataset cannot be made or read."""


class NoSuchAgentError(DatasetError):
    """No recorded factory was played by the agent that was asked for."""


class EmptySplitError(DatasetError):
    """A split has no rows."""


class BadSampleError(DatasetError, ValueError):
    """A sample is not usable: a value is not finite, or nothing of it is left after masking."""

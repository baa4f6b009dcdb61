"""Errors of records, tables and datasets; each message says got, expected and hint."""

from __future__ import annotations

from apexrl.runs.errors import ReadFailedError

__all__ = ["BadSampleError", "DatasetError", "EmptySplitError", "NoSuchAgentError"]


class DatasetError(ReadFailedError):
    """A dataset cannot be built or read."""


class NoSuchAgentError(DatasetError):
    """No recorded factory was played by the requested agent."""


class EmptySplitError(DatasetError):
    """A split has no rows."""


class BadSampleError(DatasetError, ValueError):
    """A sample cannot be used: a value is not finite, or everything is masked."""

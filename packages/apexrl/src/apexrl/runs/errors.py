"""Errors meant for the person at the keyboard: what was got, what was expected, and a hint."""

from __future__ import annotations


class UserFacingError(Exception):
    """An error whose message alone is enough to act on.

    Commands print ``str(error)`` without a traceback and leave with a non-zero exit code.

    Attributes:
        got: The offending value, including the name of the file, flag or field.
        expected: What is required instead; empty if ``got`` says it all.
        hint: What to do about it; empty if ``got`` says it all.
    """

    def __init__(self, got: str, expected: str = "", hint: str = "") -> None:
        super().__init__(got, expected, hint)
        self.got = got
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        # The text often begins with a name or a flag, so its first letter stays as it is.
        advice = [f"{part[:1].upper()}{part[1:]}" for part in (self.expected, self.hint)]
        parts = (part.rstrip(".") for part in (self.got, *advice) if part)
        return " ".join(part if part.endswith("?") else f"{part}." for part in parts)


def safe_text(error: BaseException, limit: int = 2000) -> str:
    """Return the text of any exception, also of one whose ``__str__`` raises or gives what cannot be written."""
    try:
        text = str(error)
    except (Exception, SystemExit):  # the text is the code of whoever raised it
        text = "(its text cannot be shown)"
    return str.encode(text, "utf-8", "backslashreplace")[:limit].decode(errors="ignore")


class ReadFailedError(UserFacingError):
    """A file cannot be read, or is not what was written."""


class ConfigurationError(UserFacingError, ValueError):
    """A configuration key or value is not acceptable."""


class WriteFailedError(UserFacingError):
    """A file could not be written; the file that had its name before is untouched."""


class DiskFullError(WriteFailedError):
    """The disk, the quota or the limit on file sizes is exhausted."""


class UnwritableError(WriteFailedError):
    """The folder does not exist, is not a folder, or may not be written."""


class NotPlainError(UserFacingError):
    """A configuration or a checkpoint holds a value that cannot be stored faithfully."""


class CheckpointMissingError(UserFacingError):
    """There is no checkpoint under the given name."""


class CheckpointDamagedError(ReadFailedError):
    """The checksum of a checkpoint does not match its content, or there is none."""


class SchemaMismatchError(UserFacingError):
    """A checkpoint was written under another schema than the one that reads it."""


class RngMismatchError(UserFacingError):
    """A stored random-number state does not fit the generator it should go into."""


class ConfigMismatchError(UserFacingError):
    """A run cannot be resumed under another configuration than it was started with."""


class DivergedError(UserFacingError, ValueError):
    """Training has diverged: a number that it learns from is NaN or infinite."""


class RunLockedError(UserFacingError):
    """Another process is writing this run."""


class RunDirError(ReadFailedError):
    """A folder is not the run directory that it should be."""


class MetricError(ReadFailedError):
    """A metric has an impossible name, value or step, or its file is damaged."""

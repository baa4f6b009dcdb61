"""Errors that a user can act on: each message names the value, the rule and the way out."""


class UserFacingError(Exception):
    """Something a user did or met that a message explains fully; commands print it without a traceback."""


class ConfigurationError(UserFacingError, ValueError):
    """A configuration key or value is not acceptable."""

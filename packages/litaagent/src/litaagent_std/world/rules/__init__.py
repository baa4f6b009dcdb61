"""The rules of the Standard league as pure functions."""

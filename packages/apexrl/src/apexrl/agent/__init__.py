"""Runners: the loops that train, log, evaluate, save and resume."""

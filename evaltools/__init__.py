"""Evaluation of trained agents; the code is in :mod:`hmasd.training.evaluation`."""

"""Document 004's name for evaluation; the code is in :mod:`hmasd.training.evaluation`."""

"""Metrics: ``logger`` writes every step's values to its sinks: ``jsonl``, ``tensorboard`` and ``console``."""

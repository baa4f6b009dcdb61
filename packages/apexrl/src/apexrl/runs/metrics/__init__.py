"""Metrics: ``logger`` writes every step's values to its sinks; ``jsonl`` is the one that every run has."""

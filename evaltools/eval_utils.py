"""Evaluation of trained agents; the code is in :mod:`hmasd.training.evaluation`."""

from hmasd.training.evaluation import EvaluationResult, evaluate, play_episodes

__all__ = ["EvaluationResult", "evaluate", "play_episodes"]

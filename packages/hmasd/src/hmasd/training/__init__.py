"""The run: collection of a batch, update, evaluation and checkpoints (:class:`Trainer`), and its folder."""

from hmasd.training.evaluation import EvaluationResult, evaluate, play_episodes
from hmasd.training.trainer import Trainer, stored_config, train

__all__ = ["EvaluationResult", "Trainer", "evaluate", "play_episodes", "stored_config", "train"]

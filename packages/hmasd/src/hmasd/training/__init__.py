"""The run: what the engine's loop trains (:class:`SyncLearner`), and the run with its folder (:class:`Trainer`)."""

from hmasd.training.evaluation import EvaluationResult, evaluate, play_episodes
from hmasd.training.learner import SyncLearner
from hmasd.training.trainer import Trainer, stored_config, train

__all__ = ["EvaluationResult", "SyncLearner", "Trainer", "evaluate", "play_episodes", "stored_config", "train"]

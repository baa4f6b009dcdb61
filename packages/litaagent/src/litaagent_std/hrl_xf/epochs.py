"""Learning by epochs over fixed rows: the weights of the best epoch are kept, and patience may end it.

Phases of offline training and students of a distillation are such learners.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from apexrl.agent.learner import Learner
from apexrl.agent.runner import Runner
from apexrl.algorithms.losses import check_weights
from apexrl.runs.session import Session

__all__ = ["EpochLearner", "Interrupted", "copy_weights", "epoch_runner", "run_epochs"]

logger = logging.getLogger(__name__)


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """A signal asked to stop; the same command resumes."""


class EpochLearner(Learner):
    """Base of learners whose iteration is an epoch. A subclass calls :meth:`end_epoch` when it has learned one.

    Args:
        model: The network whose best weights are kept.
        patience: Epochs without a smaller loss after which there is nothing more to learn; 0 never ends it.
        seed: Seed of everything random.

    Attributes:
        epoch: Epochs so far, those before a resume included.
        best_epoch: The epoch with the smallest loss.
        best_loss: Its loss.
        best: Its weights.
    """

    unit = "epochs"
    collects = False

    def __init__(self, model: nn.Module, patience: int, seed: int) -> None:
        self.model = model
        self._patience, self._seed = patience, seed
        self.epoch, self.best_epoch, self.best_loss = 0, 0, float("inf")
        self.best = copy_weights(model)

    @property
    def config(self) -> Mapping[str, Any]:
        """Nothing: the options are in the record of the run around it."""
        return {}

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        return self._seed

    def end_epoch(self, loss: float) -> None:
        """Count an epoch, and keep its weights if its loss is the smallest so far.

        Raises:
            DivergedError: If a weight is no number any more.
        """
        check_weights(self.model, self.epoch + 1)
        self.epoch += 1
        if loss < self.best_loss:
            self.best_loss, self.best_epoch, self.best = loss, self.epoch, copy_weights(self.model)
        self._check_patience()

    def _check_patience(self) -> None:
        if self._patience and self.epoch - self.best_epoch >= self._patience:
            self.finished = f"no smaller loss for {self._patience} epochs"

    def counters(self, state: Mapping[str, Any]) -> tuple[int, int]:
        """Return the epoch, which is both iteration and progress."""
        return state["epoch"], state["epoch"]

    def state_dict(self) -> dict[str, Any]:
        """Return the epochs so far and the best one."""
        best = {"best_epoch": self.best_epoch, "best_loss": self.best_loss, "best": self.best}
        return {"epoch": self.epoch, **best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.epoch, self.best_epoch, self.best_loss = state["epoch"], state["best_epoch"], state["best_loss"]
        self.best = dict(state["best"])
        self._check_patience()


def epoch_runner(
    learner: EpochLearner,
    folder: Path | None,
    save_every: int,
    session: Session | None = None,
    *,
    keep_last: int | None = None,
) -> Runner:
    """Return the runner of a learner, which saves every so many epochs and the last; None writes nothing."""
    return Runner(
        learner,
        log_dir=folder,
        save_interval=save_every,
        save_last=folder is not None,
        keep_last=keep_last,
        sinks=("jsonl",),
        show_progress=False,
        session=session,
    )


def run_epochs(runner: Runner, epochs: int, checkpoint: Path | None = None) -> None:
    """Resume and train up to so many epochs; the model then holds the weights of the best one.

    Args:
        runner: The runner of an `EpochLearner`.
        epochs: Epochs in total.
        checkpoint: Checkpoint to resume from; default: the newest.

    Raises:
        Interrupted: If a stop was requested.
    """
    learner = runner.learner
    assert isinstance(learner, EpochLearner)
    name = learner.name.removeprefix("litaagent.")
    if checkpoint is None:
        runner.resume()
    else:
        runner.load_checkpoint(checkpoint)
    if learner.epoch:
        logger.info("%s: resuming from epoch %d", name, learner.epoch)
    if learner.epoch < epochs and learner.finished is None:
        result = runner.learn(total_timesteps=epochs)
        if result.stopped_by not in ("goal", "learner"):
            raise Interrupted(f"{name}: stopped after epoch {learner.epoch}; run the same command again to resume")
    learner.model.load_state_dict(learner.best)


def copy_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of a network's weights on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}

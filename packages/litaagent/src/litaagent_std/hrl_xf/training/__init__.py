"""Training of the layers from datasets: cloning, advantage-weighted regression, distillation; exact to resume.

``TrainConfig`` and ``HRLXFTrainer`` are the way in; ``lita train`` and ``runners/run_hrl_bc_awr_train.py`` call them.
The trainer, and torch with it, is imported when it is asked for, so that commands can show their options at once.
"""

from typing import TYPE_CHECKING, Any

from litaagent_std.hrl_xf.training.config import TrainConfig

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.training.trainer import HRLXFTrainer

__all__ = ["HRLXFTrainer", "TrainConfig"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the trainer's module holds under the name
    if name == "HRLXFTrainer":
        from litaagent_std.hrl_xf.training.trainer import HRLXFTrainer

        return HRLXFTrainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

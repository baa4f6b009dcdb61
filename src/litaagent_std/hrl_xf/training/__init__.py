"""Training of the layers from datasets: cloning, advantage-weighted regression, distillation; exact to resume.

``TrainConfig`` and ``HRLXFTrainer`` are the way in; ``lita train`` and ``runners/run_hrl_bc_awr_train.py`` call them.
"""

from litaagent_std.hrl_xf.training.config import TrainConfig
from litaagent_std.hrl_xf.training.trainer import HRLXFTrainer

__all__ = ["HRLXFTrainer", "TrainConfig"]

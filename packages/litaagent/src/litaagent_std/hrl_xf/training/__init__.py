"""Offline training of the layers from datasets: behaviour cloning, advantage-weighted regression, distillation.

Doors: `TrainConfig` and `HRLXFTrainer`; ``lita train`` and ``runners/run_hrl_bc_awr_train.py`` call them. Inside:

===============  =========================================================================================
``config``       options; ``data``: batches from a dataset's arrays; ``losses``: what is minimised
``phases``       loss, data and options of each phase; ``learner``: its epochs, for the engine's run loop
``backfill``     goals for L3, predicted out of fold; ``l4_rounds``: rounds to distil L4 from
``trainer``      `HRLXFTrainer`: the phases in order; ``launch``: a run from records to weights for play
``export``       networks as ``.npz``; ``record``, ``report``: what was trained, with what result
``evaluation/``  networks beside baselines
===============  =========================================================================================

The trainer, and torch with it, is imported on first use, so that commands can show their options at once.
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

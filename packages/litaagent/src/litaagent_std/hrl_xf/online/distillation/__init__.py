"""Distillation of trained layers into smaller networks that decide faster.

* `run`: the command ``lita distill``, with `config` for its options.
* `samples`: the inputs of a teacher in worlds that it plays.
* `fitting`: the regression of a student on the teacher's outputs.
* `check`: student and teacher in held-out worlds, with `shadow` for decisions in the same situations.
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
    from litaagent_std.hrl_xf.online.distillation.run import Distilled, run_distillation
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "litaagent_std.hrl_xf.online.distillation.config": ("DistillConfig",),
            "litaagent_std.hrl_xf.online.distillation.run": (
                "Distilled",
                "run_distillation",
            ),
        },
    )

__all__ = ["DistillConfig", "Distilled", "run_distillation"]

"""Online training in the league: snapshot → worlds → barrier → update, by PPO, MAPPO, evolution or a response surface.

* `command`: the command ``lita train-online``, with `config` for its options.
* `trainer`: the training loop, with `monitor` (roll-back, early stopping), `gate` (evaluation in the arena) and
  `opponents`.
* `worlds`, `lockstep`, `hierarchy`, `rollout`, `jobs`: which worlds are played, how many of them together, with which
  networks, what a world yields as arrays, and their execution.
* `methods`: how a batch of worlds becomes the next version.
* `envs`: the league as Gymnasium, PettingZoo and vectorised environments.
* `distillation`: trained layers into smaller networks.

Rewards are in `litaagent_std.hrl_xf.rewards`. Names are imported on first use, so that commands can show their options
without torch.
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.online.command import run_training
    from litaagent_std.hrl_xf.online.config import OnlineConfig
    from litaagent_std.hrl_xf.online.trainer import Trainer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "litaagent_std.hrl_xf.online.command": ("run_training",),
            "litaagent_std.hrl_xf.online.config": ("OnlineConfig",),
            "litaagent_std.hrl_xf.online.trainer": ("Trainer",),
        },
    )

__all__ = ["OnlineConfig", "Trainer", "run_training"]

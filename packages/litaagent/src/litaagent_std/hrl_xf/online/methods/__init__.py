"""Training methods: how a batch of worlds becomes the next version of the networks.

* `base`: the protocol `Method`.
* `gradient`: PPO for L2, MAPPO or independent PPO for L3 and L4, with `ppo` (the learner of one layer), `networks` (the
  layers' networks as actors) and `batches` (from rollouts to rows with rewards).
* `evolution`: evolution strategies on `shifts` of L2's residuals.
* `surface`: a Bayesian response surface over such shifts.

All of them start from the same networks and write the same files.
"""

import logging

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import OnlineConfig
from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS, Hierarchy
from litaagent_std.hrl_xf.online.methods.base import Method
from litaagent_std.hrl_xf.online.methods.evolution import EvolutionMethod
from litaagent_std.hrl_xf.online.methods.gradient import GradientMethod
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.hrl_xf.online.methods.surface import SurfaceMethod

__all__ = ["EvolutionMethod", "GradientMethod", "Method", "SurfaceMethod", "make_method"]

logger = logging.getLogger(__name__)


def make_method(cfg: OnlineConfig, warm_start: Hierarchy | None) -> Method:
    """Make the method that the options name.

    Args:
        cfg: Options of the run.
        warm_start: Networks to start from; if None, new ones, which are the heuristic agent.

    Raises:
        ConfigurationError: If the options do not go together.
    """
    if cfg.method == "surface" and warm_start is not None:
        raise ConfigurationError(
            f"--method surface was given --warm {cfg.warm}",
            "its surface is centred on the heuristic agent",
            "remove --warm, or use --method ppo or es",
        )
    learning = cfg.layers if cfg.method == "ppo" else ("l2",)
    if set(cfg.layers) != set(learning):
        logger.warning(
            "--method %s learns L2 alone, not --layers %s; --method ppo learns them", cfg.method, " ".join(cfg.layers)
        )
    start = warm_start or untrained(learning, cfg.seed, {layer: cfg.layer(layer).dim for layer in LAYERS})
    if cfg.method == "es":
        return EvolutionMethod(cfg.evolution, cfg.seed, start, cfg.places)
    if cfg.method == "surface":
        return SurfaceMethod(cfg.surface, cfg.seed, start, cfg.places)
    return GradientMethod(cfg, start)

"""Training methods: how a batch of worlds becomes the next version of the policies.

* `base`: the protocol `Method`.
* `gradient`: PPO for L2, MAPPO or independent PPO for L3 and L4, with `ppo` (the learner of one layer) and `batches`
  (from rollouts to rows with rewards).
* `hierarchy`: the same for the networks of offline training, with `hierarchy_learner`.
* `evolution`: evolution strategies on a linear L2.
* `surface`: a Bayesian response surface over constants of L2.
"""

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.hrl_xf.online.config import OnlineConfig
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.methods.base import Method
from litaagent_std.hrl_xf.online.methods.evolution import EvolutionMethod
from litaagent_std.hrl_xf.online.methods.gradient import GradientMethod
from litaagent_std.hrl_xf.online.methods.hierarchy import HierarchyMethod
from litaagent_std.hrl_xf.online.methods.surface import SurfaceMethod

__all__ = ["EvolutionMethod", "GradientMethod", "Method", "SurfaceMethod", "make_method"]


def make_method(cfg: OnlineConfig, warm_start: PolicySet | Hierarchy | None) -> Method:
    """Make the method that the options name.

    Args:
        cfg: Options of the run.
        warm_start: Policies to start from; if None, the heuristic agent.

    Raises:
        ConfigurationError: If the networks of the layers are given to a method that does not train them.
    """
    if isinstance(warm_start, Hierarchy):
        if cfg.method != "ppo":
            raise ConfigurationError(
                f"--method {cfg.method} was given the networks of the layers",
                "it searches over constants of L2",
                "use --method ppo, or leave out --warm",
            )
        return HierarchyMethod(cfg, warm_start)
    if cfg.method == "es":
        return EvolutionMethod(cfg.evolution, cfg.seed, warm_start, cfg.places)
    if cfg.method == "surface":
        return SurfaceMethod(cfg.surface, cfg.seed, warm_start, cfg.places)
    return GradientMethod(cfg, warm_start)

"""The agent that plays weights from online training.

* `agent`: `LitaOnline`, the agent for arena and league.
* `steering`: residual actions, and how they change what the heuristic layers decide.
* `views`: the vectors that policies see.
* `seat`: the layers that request residual actions from a policy, and the agent that plays with them.
* `acting`: policies as numpy arrays.
* `weights`: files of weights, and those that come with the package.

``lita export`` copies `acting`, `seat`, `steering` and `views` into a submission: these four import numpy, the policy
and `litaagent_std.agents.hrl` alone.
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from litaagent_std.agents.online.acting import ActingNet, PolicySet
    from litaagent_std.agents.online.agent import LitaOnline
    from litaagent_std.agents.online.weights import save, weights_file
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "litaagent_std.agents.online.acting": (
                "ActingNet",
                "PolicySet",
            ),
            "litaagent_std.agents.online.agent": ("LitaOnline",),
            "litaagent_std.agents.online.weights": (
                "save",
                "weights_file",
            ),
        },
    )

__all__ = ["ActingNet", "LitaOnline", "PolicySet", "save", "weights_file"]

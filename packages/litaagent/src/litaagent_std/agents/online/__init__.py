"""The agent that plays weights from online training.

* `agent`: `LitaOnline`, the agent for arena and league.
* `steering`: residual actions, and how they change what the heuristic layers decide.
* `views`: the vectors that policies see.
* `seat`: the agent that requests residual actions from a policy, and the log of its episode.
* `acting`: policies as numpy arrays.
* `weights`: files of weights, and those that come with the package.

``lita export`` copies `acting`, `seat`, `steering` and `views` into a submission: these four import numpy, the policy
and `litaagent_std.agents.hrl` alone.
"""

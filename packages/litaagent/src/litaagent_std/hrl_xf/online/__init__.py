"""Online training in the league: snapshot → worlds → barrier → update, by PPO, MAPPO, evolution or a response surface.

* `command`: the command ``lita train-online``, with `config` for its options.
* `trainer`: the training loop, with `monitor` (roll-back, early stopping), `gate` (evaluation in the arena) and
  `opponents`.
* `worlds`, `rollout`, `jobs`: which worlds are played, what a world yields as arrays, and their execution.
* `methods`: how a batch of worlds becomes the next version.
* `envs`: the league as Gymnasium, PettingZoo and vectorised environments.
* `distillation`: trained policies into compact ones.
* `agent`: alias of the agent that plays the trained weights, `litaagent_std.agents.online`.

Rewards are in `litaagent_std.hrl_xf.rewards`.
"""

"""The learned hierarchy online: the networks of L2, L3 and L4 of offline training, trained further in the league.

* `policies`: the networks as they are sent to workers and played, in the weights' one format.
* `rows`: what the layers sampled, as rows of trajectories; observations as flat vectors.
* `play`: worlds in lockstep with these layers.

`methods` trains them.
"""

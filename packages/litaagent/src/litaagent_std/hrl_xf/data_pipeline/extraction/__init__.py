"""From the record of one world to the arrays of its samples.

The observations and threads of a record (`records.observations`, `records.threads`) go through the policy's features;
``labels`` reads goals and returns, ``heuristic`` what our agent would have done; ``world_samples`` joins them into the
rows of a dataset.
"""

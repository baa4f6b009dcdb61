"""From the record of one world to the arrays of its samples.

The observations and threads of a record (`records.observations`, `records.threads`) go through the policy's features;
``labels`` reads goals and returns, ``baseline`` L1's decision before each turn; ``world_samples`` joins them into the
rows of a dataset.
"""

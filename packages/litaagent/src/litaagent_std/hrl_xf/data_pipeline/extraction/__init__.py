"""From the record of one world to the arrays of its samples.

``columns`` and ``days`` read the tables of a record into numpy columns (negotiations and turns; observations).
``day_arrays`` and ``thread_arrays`` compute the policy's features from them, ``labels`` the goals and returns, and
``baseline`` L1's decision before each turn. ``world_samples`` joins them into the rows of a dataset.
"""

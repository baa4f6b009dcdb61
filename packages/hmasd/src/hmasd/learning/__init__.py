"""Storage and updates: the rollout, skill timing, PPO of coordinator and discoverer, and discriminator training.

* :mod:`hmasd.learning.protocols`: what an algorithm implements for training.
* :mod:`hmasd.learning.rollout`: one batch of one policy version.
* :mod:`hmasd.learning.skill_clock`: skill clocks, intervals, their advantages, and sequences for the GRU.
* :mod:`hmasd.learning.high_level`, :mod:`hmasd.learning.low_level`, :mod:`hmasd.learning.discriminators`: updates.
"""

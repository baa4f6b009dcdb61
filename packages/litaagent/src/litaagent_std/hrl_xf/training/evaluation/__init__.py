"""Evaluation of trained networks beside baselines that need no network.

``run`` evaluates all networks of a trainer: ``l2`` the goals, ``l3`` operations, counter-offers and acceptance.
``linear`` fits the linear baselines, ``metrics`` holds the measures, ``tables`` compares networks with baselines, and
``l2_error`` is the command behind ``scripts/eval_l2_val_error.py``.
"""

"""Distillation of a trained policy into a compact one that decides faster.

* `run`: the command ``lita distill``, with `config` for its options.
* `samples`: the inputs of a teacher in worlds that it plays.
* `fitting`: the regression of a student on the teacher's actions.
* `check`: student and teacher in held-out worlds, with `shadow` for decisions in the same situations.
"""

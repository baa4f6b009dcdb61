"""Gradients of PPO's loss: ``autograd`` for every network, ``analytic`` for plain MLPs on the CPU.

``flat_parameters`` keeps all parameters in one buffer, so that clipping and the optimiser handle one tensor.
"""

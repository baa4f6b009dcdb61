"""Gradients of a minibatch: by autograd for every network, analytically for plain MLPs."""

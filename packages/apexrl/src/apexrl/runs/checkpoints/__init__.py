"""Checkpoints: sealed files without pickled objects, and the store that keeps several of them."""

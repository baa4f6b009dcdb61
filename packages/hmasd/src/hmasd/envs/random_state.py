"""Numpy random streams as plain values, so that a checkpoint can hold them without pickled code."""

import json

import numpy as np


def generator_state(rng: np.random.Generator) -> str:
    """Return the exact position of a PCG64 stream, as JSON."""
    return json.dumps(rng.bit_generator.state, sort_keys=True)


def generator_from_state(state: str) -> np.random.Generator:
    """Return the stream that :func:`generator_state` described."""
    bits = np.random.PCG64()
    bits.state = json.loads(state)
    return np.random.Generator(bits)

"""Random-number states as tensors and plain values, so that a resumed run draws what it would have drawn.

Covers the global streams (``random``, ``numpy.random``, torch on the CPU and on every CUDA device) and any
generators that a run keeps for itself, given by name.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from apexrl.runs.errors import RngMismatchError

logger = logging.getLogger(__name__)

Generator = random.Random | np.random.Generator | np.random.RandomState | torch.Generator
State = dict[str, Any]
"""Tensors, numbers, strings and None, in dictionaries with string keys."""


def capture_rng(generators: Mapping[str, Generator] | None = None) -> State:
    """Take the states of the global streams and of named generators, without drawing from any.

    Args:
        generators: The run's own generators, by the names under which they are to be restored.
    """
    # RandomState._bit_generator would be private; get_state(legacy=False) also covers a swapped generator.
    state: State = {
        "python": _python_state(random.getstate()),
        "numpy": _encode(np.random.get_state(legacy=False)),
        "torch": torch.get_rng_state(),
        "cuda": list(torch.cuda.get_rng_state_all()) if torch.cuda.is_available() else [],
        "generators": {name: _capture_one(item) for name, item in (generators or {}).items()},
    }
    return state


def restore_rng(state: State, generators: Mapping[str, Generator] | None = None) -> None:
    """Put captured states back, the named ones into the given generators.

    Nothing is changed unless the names and kinds of all generators fit.

    Args:
        state: What :func:`capture_rng` returned.
        generators: The same names as at capture, with generators of the same kinds.

    Raises:
        RngMismatchError: If names or kinds differ.
    """
    own = dict(generators or {})
    stored: dict[str, State] = state["generators"]
    if own.keys() != stored.keys():
        raise RngMismatchError(
            f"the checkpoint holds the random generators {sorted(stored)}, the program has {sorted(own)}",
            "every generator must find its state",
            "pass the same names to save and to restore",
        )
    for name, generator in own.items():
        _check_kind(name, _kind(generator), stored[name]["kind"])
    _check_kind(
        "numpy.random", _bit_generator_name(np.random.get_state(legacy=False)), _bit_generator_name(state["numpy"])
    )

    random.setstate(_python_tuple(state["python"]))
    np.random.set_state(_decode(state["numpy"]))
    torch.set_rng_state(state["torch"])
    _restore_cuda(state["cuda"])
    for name, generator in own.items():
        _restore_one(generator, stored[name]["state"])


@contextmanager
def global_streams(states: State) -> Iterator[None]:
    """Let the global random streams be these while the block runs, and afterwards what they were before."""
    before = capture_rng()
    restore_rng(states)
    try:
        yield
    finally:
        restore_rng(before)


def streams_from(seed: int) -> State:
    """Return the global random streams as a seed makes them; they themselves are left alone."""
    with global_streams(capture_rng()):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        return capture_rng()


def _capture_one(generator: Generator) -> State:
    state: Any
    if isinstance(generator, random.Random):
        state = _python_state(generator.getstate())
    elif isinstance(generator, torch.Generator):
        state = generator.get_state()
    elif isinstance(generator, np.random.RandomState):
        state = _encode(generator.get_state(legacy=False))
    else:
        state = _encode(generator.bit_generator.state)
    return {"kind": _kind(generator), "state": state}


def _restore_one(generator: Generator, state: Any) -> None:  # noqa: ANN401 - as _capture_one made it
    if isinstance(generator, random.Random):
        generator.setstate(_python_tuple(state))
    elif isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(_decode(state))
    else:
        generator.bit_generator.state = _decode(state)


def _restore_cuda(states: list[torch.Tensor]) -> None:
    available = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if len(states) != available:
        logger.warning(
            "the checkpoint holds the random states of %d CUDA devices and this machine has %d: "
            "draws on the others continue from their present states",
            len(states),
            available,
        )
    for device, state in enumerate(states[:available]):
        torch.cuda.set_rng_state(state, device)


def _kind(generator: Generator) -> str:
    if isinstance(generator, random.Random):
        return "random.Random"
    if isinstance(generator, torch.Generator):
        return f"torch.Generator on {generator.device.type}"
    if isinstance(generator, np.random.RandomState):
        return f"numpy.RandomState of {_bit_generator_name(generator.get_state(legacy=False))}"
    return f"numpy.Generator of {_bit_generator_name(generator.bit_generator.state)}"


def _bit_generator_name(state: Mapping[str, Any]) -> str:
    return str(state["bit_generator"])


def _check_kind(name: str, actual: str, stored: str) -> None:
    if actual != stored:
        raise RngMismatchError(
            f"random generator {name!r} is a {actual}, its stored state comes from a {stored}",
            "a state fits only the kind of generator it was taken from",
            "create the generator as at the time of saving",
        )


def _python_state(state: tuple[Any, ...]) -> State:
    version, words, gauss = state
    return {"version": version, "words": torch.tensor(words, dtype=torch.int64), "gauss": gauss}


def _python_tuple(state: State) -> tuple[Any, ...]:
    return (state["version"], tuple(state["words"].tolist()), state["gauss"])


def _encode(value: Any) -> Any:  # noqa: ANN401 - numpy's nested states
    """Replace numpy's arrays and scalars; unsigned 64-bit words keep their bits as int64."""
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        words = value.view(np.int64) if value.dtype == np.uint64 else value.astype(np.int64)
        return {"dtype": value.dtype.name, "words": torch.tensor(words.tolist(), dtype=torch.int64)}
    return value.item() if isinstance(value, np.generic) else value


def _decode(value: Any) -> Any:  # noqa: ANN401 - what _encode returned
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {"dtype", "words"}:
        words = np.array(value["words"].tolist(), dtype=np.int64)
        return words.view(np.uint64) if value["dtype"] == "uint64" else words.astype(value["dtype"])
    return {key: _decode(item) for key, item in value.items()}

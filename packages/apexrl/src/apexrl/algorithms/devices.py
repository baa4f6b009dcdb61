"""Which device to compute on."""

import logging
from typing import Final

import torch

from apexrl.runs.errors import ConfigurationError

logger = logging.getLogger(__name__)

_TYPES: Final = ("cpu", "cuda", "mps", "xpu")


def resolve_device(device: torch.device | str | None = None, env_device: torch.device | None = None) -> torch.device:
    """Return the device that was asked for, or the CPU with a warning if this machine does not have it.

    None and ``"auto"`` are the environment's device if it is a GPU, else the first CUDA device if there is one, else
    the CPU. ``"gpu"`` is ``"cuda"``.

    Raises:
        ConfigurationError: It is not the name of a device that can compute, or an MPS or XPU device that is not here.
    """
    if device is None or device == "auto":
        if env_device is not None and env_device.type != "cpu":
            return env_device
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    wanted = _parsed("cuda" if device == "gpu" else device)
    if wanted is None or wanted.type not in _TYPES or not _is_here(wanted.type):
        reason = "torch has none here" if wanted is not None and wanted.type in _TYPES else "it does not compute"
        raise ConfigurationError(
            f"device={str(device)!r} cannot be used ({reason})",
            "a device is auto, cpu, cuda (also gpu) or cuda:1, and mps or xpu where torch has them",
            "leave device out for a GPU if torch finds one, and the CPU otherwise",
        )
    if wanted.type == "cuda" and not torch.cuda.is_available():
        logger.warning("device %s was asked for and CUDA is not available here: falling back to the CPU", wanted)
        return torch.device("cpu")
    return wanted


def _parsed(device: torch.device | str) -> torch.device | None:
    """Return the device of a name, or None if torch knows no such name."""
    try:
        return torch.device(device)
    except RuntimeError:  # its text lists every backend of torch
        return None


def _is_here(kind: str) -> bool:
    """Return whether torch computes on Apple's or Intel's GPUs here; True for other kinds."""
    if kind == "mps":
        return torch.backends.mps.is_available()
    return kind != "xpu" or torch.xpu.is_available()

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
        ConfigurationError: It is not the name of a device that can compute.
    """
    if device is None or device == "auto":
        if env_device is not None and env_device.type != "cpu":
            return env_device
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        wanted = torch.device("cuda" if device == "gpu" else device)
        if wanted.type not in _TYPES:
            raise RuntimeError(f"{wanted.type} does not compute")
        if wanted.type in ("mps", "xpu"):
            torch.empty(0, device=wanted)
    except (RuntimeError, AssertionError) as error:
        raise ConfigurationError(
            f"device={device!r} cannot be used ({str(error).splitlines()[0]})",
            "a device is auto, cpu, cuda (also gpu) or cuda:1",
            "leave device out for a GPU if torch finds one, and the CPU otherwise",
        ) from error
    if wanted.type == "cuda" and not torch.cuda.is_available():
        logger.warning("device %s was asked for and CUDA is not available here: falling back to the CPU", wanted)
        return torch.device("cpu")
    return wanted

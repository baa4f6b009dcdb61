"""Which device to compute on."""

import logging

import torch

logger = logging.getLogger(__name__)


def resolve_device(device: torch.device | str | None = None, env_device: torch.device | None = None) -> torch.device:
    """Return the device that was asked for, or the CPU with a warning if this machine does not have it.

    None and ``"auto"`` are the environment's device if it is a GPU, else the first CUDA device if there is one, else
    the CPU. ``"gpu"`` is ``"cuda"``.
    """
    if device is None or device == "auto":
        if env_device is not None and env_device.type != "cpu":
            return env_device
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    wanted = torch.device("cuda" if device == "gpu" else device)
    if wanted.type == "cuda" and not torch.cuda.is_available():
        logger.warning("device %s was asked for and CUDA is not available here: falling back to the CPU", wanted)
        return torch.device("cpu")
    return wanted

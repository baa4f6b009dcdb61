"""One gradient step, and random streams on any device."""

import logging
import math

import torch
from torch import Tensor, nn

from apexrl.runs.errors import DivergedError

logger = logging.getLogger(__name__)


def gradient_step(loss: Tensor, *optimizers: torch.optim.Optimizer, max_norm: float) -> None:
    """Minimise a loss; the gradient of each optimiser's parameters is scaled down to ``max_norm``.

    Raises:
        DivergedError: A gradient is not finite; no parameter has moved.
    """
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
    for optimizer in optimizers:
        norm = float(nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm))
        if not math.isfinite(norm):
            raise DivergedError(
                f"a loss is {loss.item()} and the norm of its gradient {norm}",
                "losses and gradients are finite numbers",
                "lower the learning rates or bound the rewards; the last checkpoint is sound",
            )
    for optimizer in optimizers:
        optimizer.step()


def restore_generator(generator: torch.Generator, state: Tensor) -> None:
    """Put a stream back where it was; one of another kind of device restarts, with a warning."""
    if state.shape == generator.get_state().shape:
        generator.set_state(state)
        return
    logger.warning(
        "the checkpoint's random stream is of another device than %s: it restarts, so the run does not continue bit by "
        "bit",
        generator.device,
    )

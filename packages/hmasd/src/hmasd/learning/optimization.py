"""One gradient step, and random streams on any device."""

import logging
import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from apexrl.runs.errors import DivergedError

logger = logging.getLogger(__name__)


def gradient_step(loss: Tensor, *groups: tuple[torch.optim.Optimizer, Iterable[nn.Parameter]], max_norm: float) -> None:
    """Minimise a loss; the gradient of each group of parameters is scaled down to ``max_norm``.

    Raises:
        DivergedError: A gradient is not finite; no parameter has moved.
    """
    for optimizer, _ in groups:
        optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
    for _, parameters in groups:
        norm = float(nn.utils.clip_grad_norm_(parameters, max_norm))
        if not math.isfinite(norm):
            raise DivergedError(
                f"a loss is {loss.item()} and the norm of its gradient {norm}",
                "losses and gradients are finite numbers",
                "lower the learning rates or bound the rewards; the last checkpoint is sound",
            )
    for optimizer, _ in groups:
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

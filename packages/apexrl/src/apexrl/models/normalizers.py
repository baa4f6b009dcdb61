"""Running statistics of observations and values.

They are modules, so their buffers are part of checkpoints and snapshots. Statistics change only in `update`,
which the learner calls once per iteration at the barrier; `forward` and `normalize` never do. So all samples
of an iteration are normalised alike, wherever they were collected.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from apexrl.runs.errors import DivergedError


class RunningMoments(nn.Module):
    """Count, mean and sum of squared deviations of a stream, merged batch by batch (Chan, Golub & LeVeque).

    With n_a, n_b samples and δ = mean_b − mean_a:
    mean = mean_a + δ·n_b/n and M2 = M2_a + M2_b + δ²·n_a·n_b/n. Sums are kept in float64.

    Args:
        shape: Shape of one sample.
    """

    count: Tensor
    mean: Tensor
    m2: Tensor

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(self.shape, dtype=torch.float64))
        self.register_buffer("m2", torch.zeros(self.shape, dtype=torch.float64))

    @property
    def var(self) -> Tensor:
        """Population variance; 1 before the second sample."""
        return self.m2 / self.count if self.count > 1 else torch.ones_like(self.m2)

    @torch.no_grad()
    def update(self, batch: Tensor, mask: Tensor | None = None) -> None:
        """Merge samples ``[*batch, *shape]``; `mask` (bool ``[*batch]``) selects the ones that count.

        Raises:
            ValueError: If the shape does not fit.
            DivergedError: If a sample is not finite.
        """
        leading = batch.dim() - len(self.shape)
        if leading < 1 or tuple(batch.shape[leading:]) != self.shape:
            raise ValueError(f"Expected samples of shape [*batch, *{self.shape}], got {tuple(batch.shape)}.")
        samples = batch[mask] if mask is not None else batch.reshape(-1, *self.shape)
        if len(samples) == 0:
            return
        samples = samples.to(torch.float64)
        mean = samples.mean(0)
        m2 = (samples - mean).square().sum(0)
        if not bool(torch.isfinite(m2).all()):
            raise _diverged("a sample")
        self.merge(len(samples), mean, m2)

    @torch.no_grad()
    def merge(self, count: float, mean: Tensor, m2: Tensor) -> None:
        """Merge another stream's statistics."""
        total = self.count + count
        delta = mean - self.mean
        self.mean += delta * (count / total)
        self.m2 += m2 + delta.square() * (self.count * count / total)
        self.count.copy_(total)


class RunningObservationNormalizer(nn.Module):
    """Standardises observations by their running mean and deviation, then clips.

    Args:
        shape: Shape of one observation.
        clip: Normalised values are limited to ±clip.
        epsilon: Added to the variance.

    Attributes:
        frozen: While True, `update` changes nothing.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, shape: Sequence[int], *, clip: float = 10.0, epsilon: float = 1e-8) -> None:
        super().__init__()
        if clip <= 0:
            raise ValueError(f"clip must be positive, got {clip}.")
        self.moments = RunningMoments(shape)
        self.clip = clip
        self.epsilon = epsilon
        self.frozen = False
        # float32 copies, so that the inner loop does no float64 arithmetic
        self.register_buffer("shift", torch.zeros(tuple(shape)))
        self.register_buffer("scale", torch.ones(tuple(shape)))

    def forward(self, obs: Tensor) -> Tensor:
        """Normalise observations of any batch shape; identity (up to the clip) before the first update."""
        return ((obs - self.shift) * self.scale).clamp(-self.clip, self.clip)

    def update(self, obs: Tensor, mask: Tensor | None = None) -> None:
        """Merge observations ``[*batch, *shape]`` into the statistics; does nothing while frozen.

        Args:
            obs: Raw observations.
            mask: bool ``[*batch]``, True for the samples that count.
        """
        if self.frozen:
            return
        self.moments.update(obs, mask)
        self.shift.copy_(self.moments.mean)
        self.scale.copy_(torch.rsqrt(self.moments.var + self.epsilon))

    def freeze(self) -> None:
        """Stop updating the statistics."""
        self.frozen = True

    def unfreeze(self) -> None:
        """Resume updating the statistics."""
        self.frozen = False


class ValueNormalizer(nn.Module):
    """Lets a critic learn standardised returns: targets are normalised, its outputs denormalised.

    Args:
        shape: Shape of one value; ``()`` for a scalar critic.
        decay: None averages over everything seen. A number β < 1 forgets: statistics follow
            β·old + (1−β)·batch, which suits returns that grow while learning.
        debias: With `decay`, divide by 1 − βᵗ, so that the zero start does not pull early estimates down.
        epsilon: Smallest variance.
    """

    mean: Tensor
    std: Tensor
    mean_average: Tensor
    square_average: Tensor
    updates: Tensor

    def __init__(
        self,
        shape: Sequence[int] = (),
        *,
        decay: float | None = None,
        debias: bool = True,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        if decay is not None and not 0.0 < decay < 1.0:
            raise ValueError(f"decay must lie in (0, 1) or be None, got {decay}.")
        self.decay = decay
        self.debias = debias
        self.epsilon = epsilon
        self.moments = RunningMoments(shape) if decay is None else None
        if decay is not None:
            self.register_buffer("mean_average", torch.zeros(tuple(shape), dtype=torch.float64))
            self.register_buffer("square_average", torch.zeros(tuple(shape), dtype=torch.float64))
            self.register_buffer("updates", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(tuple(shape)))
        self.register_buffer("std", torch.ones(tuple(shape)))

    @torch.no_grad()
    def update(self, returns: Tensor, mask: Tensor | None = None) -> None:
        """Merge returns ``[*batch, *shape]``; `mask` (bool ``[*batch]``) selects the ones that count."""
        if self.moments is not None:
            self.moments.update(returns, mask)
            mean, var = self.moments.mean, self.moments.var
        else:
            samples = returns[mask] if mask is not None else returns.reshape(-1, *self.mean.shape)
            if len(samples) == 0:
                return
            mean, var = self._forgetting_update(samples.to(torch.float64))
        self.mean.copy_(mean)
        self.std.copy_(var.clamp(min=self.epsilon).sqrt())

    def _forgetting_update(self, samples: Tensor) -> tuple[Tensor, Tensor]:
        assert self.decay is not None  # the caller distinguishes
        if not bool(torch.isfinite(samples).all()):
            raise _diverged("a return")
        self.mean_average.lerp_(samples.mean(0), 1.0 - self.decay)
        self.square_average.lerp_(samples.square().mean(0), 1.0 - self.decay)
        self.updates += 1
        weight = 1.0 - math.pow(self.decay, float(self.updates)) if self.debias else 1.0
        mean = self.mean_average / weight
        return mean, self.square_average / weight - mean.square()

    def normalize(self, values: Tensor) -> Tensor:
        """Convert values to the critic's units."""
        return (values - self.mean) / self.std

    def denormalize(self, values: Tensor) -> Tensor:
        """Convert the critic's outputs to units of reward."""
        return values * self.std + self.mean


def _diverged(what: str) -> DivergedError:
    return DivergedError(
        f"{what} is NaN or infinite",
        "running statistics take finite numbers, because one bad sample would spoil them for good",
        "lower the learning rate or bound the rewards; checkpoints before this step are not affected",
    )

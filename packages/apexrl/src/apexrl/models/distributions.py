"""Action distributions, light enough for the inner loop.

`torch.distributions` validates arguments and expands shapes at each construction, which costs more than a
small network's forward pass. These classes hold parameters and compute formulas, nothing else. All of them
treat the last dimension of their parameters as the action and everything before it as batch: ``[*batch, n]``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_HALF_LOG_2PI_E = _HALF_LOG_2PI + 0.5


class Distribution(ABC):
    """What an algorithm may ask of a policy's distribution over actions."""

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw actions ``[*batch, *action]`` without gradient, from `generator` or torch's global stream."""

    @abstractmethod
    def mode(self) -> Tensor:
        """Return the deterministic action ``[*batch, *action]``."""

    @abstractmethod
    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log-probability (density) ``[*batch]`` of whole actions."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """Return the entropy ``[*batch]`` in nats."""

    @abstractmethod
    def kl(self, other: Self) -> Tensor:
        """Return the Kullback–Leibler divergence KL(self ‖ other), ``[*batch]``."""


def _batch(mean: Tensor) -> tuple[int, ...]:
    return tuple(mean.shape[:-1])


class DiagonalGaussian(Distribution):
    """Independent normal distributions, ``a ~ N(mean, exp(log_std)²)``.

    Args:
        mean: ``[*batch, n]``.
        log_std: ``[n]`` if shared by the batch, or ``[*batch, n]``.
    """

    def __init__(self, mean: Tensor, log_std: Tensor) -> None:
        self.mean = mean
        self.log_std = log_std

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw actions ``[*batch, n]``."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return torch.addcmul(self.mean, noise, self.log_std.exp())

    def mode(self) -> Tensor:
        """Return the mean."""
        return self.mean

    def log_prob(self, actions: Tensor) -> Tensor:
        """Compute Σ −½((a−μ)/σ)² − log σ − ½ log 2π."""
        z = (actions - self.mean) * torch.exp(-self.log_std)
        n = self.mean.shape[-1]
        return -0.5 * z.square().sum(-1) - self.log_std.sum(-1) - n * _HALF_LOG_2PI

    def entropy(self) -> Tensor:
        """Compute Σ log σ + ½ log 2πe."""
        value = self.log_std.sum(-1) + self.mean.shape[-1] * _HALF_LOG_2PI_E
        return value.expand(_batch(self.mean))

    def kl(self, other: Self) -> Tensor:
        """Compute Σ log(σ₂/σ₁) + (σ₁² + (μ₁−μ₂)²) / 2σ₂² − ½."""
        variance_ratio = torch.exp(2.0 * (self.log_std - other.log_std))
        distance = ((self.mean - other.mean) * torch.exp(-other.log_std)).square()
        terms = other.log_std - self.log_std + 0.5 * (variance_ratio + distance - 1.0)
        return terms.sum(-1)


class SquashedGaussian(Distribution):
    """A diagonal Gaussian squashed into bounds: ``a = center + half_range · tanh(u)``.

    Actions are kept strictly inside the bounds by one float step, so the inverse is finite and the
    log-probability of a stored action is the same function at collection and at update.

    Args:
        mean: Mean of u, ``[*batch, n]``.
        log_std: ``[n]`` or ``[*batch, n]``.
        center: Middle of the bounds, ``[n]``.
        half_range: Half the width of the bounds, ``[n]``, positive.
    """

    def __init__(self, mean: Tensor, log_std: Tensor, center: Tensor, half_range: Tensor) -> None:
        self.base = DiagonalGaussian(mean, log_std)
        self.center = center
        self.half_range = half_range

    def _stretch(self, squashed: Tensor) -> Tensor:
        return self.center + self.half_range * squashed

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw actions ``[*batch, n]`` inside the bounds."""
        squashed = torch.tanh(self.base.sample(generator))
        limit = 1.0 - torch.finfo(squashed.dtype).eps
        return self._stretch(squashed.clamp(-limit, limit))

    def mode(self) -> Tensor:
        """Return the squashed mean (the median of the distribution)."""
        return self._stretch(torch.tanh(self.base.mean))

    def log_prob(self, actions: Tensor) -> Tensor:
        """Compute the log-density of u minus Σ log(half_range · (1 − tanh² u)), in its stable form."""
        limit = 1.0 - torch.finfo(actions.dtype).eps
        u = torch.atanh(((actions - self.center) / self.half_range).clamp(-limit, limit))
        return self.base.log_prob(u) - self._log_slope(u).sum(-1)

    def _log_slope(self, u: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - u - torch.nn.functional.softplus(-2.0 * u)) + self.half_range.log()

    def entropy(self) -> Tensor:
        """Estimate H[N] + Σ log slope at the mean, to first order; it has no closed form.

        It keeps the right gradient direction in both parameters: wider is more, saturated is less.
        """
        return self.base.entropy() + self._log_slope(self.base.mean).sum(-1)

    def kl(self, other: Self) -> Tensor:
        """Return the divergence of the Gaussians before squashing: an invertible map does not change it."""
        return self.base.kl(other.base)


def apply_action_mask(logits: Tensor, mask: Tensor) -> Tensor:
    """Make illegal actions impossible without producing infinities or NaN.

    Args:
        logits: ``[*batch, n]``.
        mask: bool, broadcastable to the logits; True = legal.

    Raises:
        ValueError: If a row has no legal action or the mask has the wrong type or shape.
    """
    if mask.dtype is not torch.bool or mask.shape[-1] != logits.shape[-1]:
        raise ValueError(
            f"An action mask must be bool with {logits.shape[-1]} entries in its last dimension, got "
            f"{mask.dtype} of shape {tuple(mask.shape)}. Convert it with mask.bool() and give one entry per action."
        )
    legal_rows = mask.any(-1)
    if not bool(legal_rows.all()):
        row = torch.nonzero(~legal_rows)[0].tolist()
        raise ValueError(
            f"The action mask forbids every action in row {row} (of shape {tuple(mask.shape)}). At least "
            "one action per row must be legal; give absent agents and finished episodes an all-True row."
        )
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min / 4)


class Categorical(Distribution):
    """One of n actions, P(a) = softmax(logits)[a].

    Args:
        logits: ``[*batch, n]``, in any scale.
        mask: bool ``[*batch, n]``, True = legal; None = everything is.
    """

    def __init__(self, logits: Tensor, mask: Tensor | None = None) -> None:
        if mask is not None:
            logits = apply_action_mask(logits, mask)
        self.logits = logits
        self._log_probs: Tensor | None = None

    @property
    def log_probs(self) -> Tensor:
        """Normalised logits ``[*batch, n]``."""
        if self._log_probs is None:
            self._log_probs = torch.log_softmax(self.logits, dim=-1)
        return self._log_probs

    @torch.no_grad()
    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw actions int64 ``[*batch]`` by the exponential race: argmax of softmax(logits) / Exp(1)."""
        race = torch.empty_like(self.logits).exponential_(generator=generator)
        # An exact 0 (once in 2²⁴ draws) would win every race, even for a masked action.
        race.clamp_(min=torch.finfo(race.dtype).tiny)
        return (self.logits - race.log_()).argmax(-1)

    def mode(self) -> Tensor:
        """Return the most probable action."""
        return self.logits.argmax(-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log-probability ``[*batch]`` of actions int64 ``[*batch]``."""
        return self.log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Compute −Σ p log p."""
        return -(self.log_probs.exp() * self.log_probs).sum(-1)

    def kl(self, other: Self) -> Tensor:
        """Compute Σ p (log p − log q)."""
        return (self.log_probs.exp() * (self.log_probs - other.log_probs)).sum(-1)


class MultiCategorical(Distribution):
    """Several independent choices, ``a[d] ~ Categorical(nvec[d])``.

    Args:
        logits: ``[*batch, sum(nvec)]``.
        nvec: Number of options of each choice.
        mask: bool ``[*batch, sum(nvec)]``, True = legal.
    """

    def __init__(self, logits: Tensor, nvec: Sequence[int], mask: Tensor | None = None) -> None:
        sizes = list(nvec)
        logit_parts = torch.split(logits, sizes, dim=-1)
        mask_parts: Sequence[Tensor | None] = [None] * len(sizes) if mask is None else torch.split(mask, sizes, dim=-1)
        self.parts = [Categorical(part, legal) for part, legal in zip(logit_parts, mask_parts, strict=True)]

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw actions int64 ``[*batch, len(nvec)]``."""
        return torch.stack([part.sample(generator) for part in self.parts], dim=-1)

    def mode(self) -> Tensor:
        """Return the most probable options."""
        return torch.stack([part.mode() for part in self.parts], dim=-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the sum of the choices' log-probabilities."""
        chosen = actions.unbind(-1)
        return torch.stack([p.log_prob(a) for p, a in zip(self.parts, chosen, strict=True)]).sum(0)

    def entropy(self) -> Tensor:
        """Return the sum of the choices' entropies."""
        return torch.stack([part.entropy() for part in self.parts]).sum(0)

    def kl(self, other: Self) -> Tensor:
        """Return the sum of the choices' divergences."""
        return torch.stack([p.kl(q) for p, q in zip(self.parts, other.parts, strict=True)]).sum(0)

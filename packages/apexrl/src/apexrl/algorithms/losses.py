"""The mathematics of the objectives, pure functions of tensors with the equation beside the line; and its checks.

Notation: r = π_new(a|s) / π_old(a|s), A = advantage, R = value target, ε = clip range, β = temperature.
Every mean may be weighted by a mask of 0 and 1; masked-out samples then count neither above nor below the line.
"""

import logging
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from apexrl.runs.errors import DivergedError

logger = logging.getLogger(__name__)

REPLAY_TOLERANCE = 1e-4
"""Largest difference of log-probabilities that float32 explains."""
_WARNING_FRACTION = 0.1
"""A warning comes from this fraction of the tolerance on: 1e-5 for the default tolerance of 1e-4."""


class MinibatchResult(NamedTuple):
    """What one minibatch showed before its step; tensors, so that nothing waits for the device."""

    losses: Tensor
    """Policy loss, value loss and entropy ``[3]``."""
    log_probs: Tensor
    """Under the present policy, without gradient; the samples' shape."""


def masked_mean(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute the mean of ``values`` over the entries where ``mask`` is 1; if None, over all entries.

    An all-zero mask gives 0, not NaN.
    """
    if mask is None:
        return values.mean()
    weights = mask.to(values.dtype)
    return (values * weights).sum() / weights.sum().clamp(min=1.0)  # Σ m·x / Σ m


def needed_mask(mask: Tensor) -> Tensor | None:
    """Return the mask, or None if it leaves nothing out.

    Whoever always counts then gets the plain mean to the last bit; Σ m·x / Σ m rounds in another order.
    """
    return None if bool(mask.all()) else mask


def ppo_surrogate(
    log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip_range: float, mask: Tensor | None = None
) -> Tensor:
    """Return the clipped policy loss of PPO (Schulman et al., 2017, equation 7), to be minimised.

    Args:
        log_prob: log π_new(a|s), any shape.
        old_log_prob: log π_old(a|s), the same shape.
        advantage: A, the same shape.
        clip_range: ε; raising it lets one update move the policy further.
        mask: 1 where the sample counts.
    """
    ratio = torch.exp(log_prob - old_log_prob)  # r = π_new / π_old
    clipped = torch.clamp(ratio, 1.0 - clip_range, 1.0 + clip_range)  # clip(r, 1−ε, 1+ε)
    return -masked_mean(torch.minimum(ratio * advantage, clipped * advantage), mask)  # −E[min(r·A, clip(r)·A)]


def squared_error(prediction: Tensor, target: Tensor, huber_delta: float | None = None) -> Tensor:
    """Compute e², or with ``huber_delta`` δ its robust form: e² up to an error of δ, beyond it 2δ·abs(e) − δ²."""
    error = prediction - target
    if huber_delta is None:
        return error.square()
    size = error.abs()
    quadratic = size.clamp(max=huber_delta)
    return quadratic.square() + 2.0 * huber_delta * (size - quadratic)


def value_loss(
    value: Tensor,
    target: Tensor,
    old_value: Tensor | None = None,
    clip_range: float | None = None,
    mask: Tensor | None = None,
    huber_delta: float | None = None,
) -> Tensor:
    """Return the critic's loss; with ``clip_range`` the larger of the clipped and the plain error **of each sample**.

    Args:
        value: V_new(s).
        target: R.
        old_value: V_old(s); needed when ``clip_range`` is given.
        clip_range: ε; ``None`` turns clipping off. Raising it lets the critic move further in one update.
        mask: 1 where the sample counts.
        huber_delta: Errors beyond it count linearly; ``None`` squares all of them.
    """
    plain = squared_error(value, target, huber_delta)  # (V − R)²
    if clip_range is None:
        return masked_mean(plain, mask)
    if old_value is None:
        raise ValueError(
            f"value clipping with clip_range={clip_range} compares with the values of the rollout; pass old_value, or "
            "clip_range=None"
        )
    near = old_value + torch.clamp(value - old_value, -clip_range, clip_range)  # V_old + clip(V − V_old, ±ε)
    return masked_mean(
        torch.maximum(plain, squared_error(near, target, huber_delta)), mask
    )  # E[max(·, ·)], not max of means


def approximate_kl(log_prob: Tensor, old_log_prob: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return a non-negative, low-variance estimate of KL(π_old ‖ π_new) from samples of π_old: E[(r − 1) − log r]."""
    log_ratio = log_prob - old_log_prob
    return masked_mean(torch.expm1(log_ratio) - log_ratio, mask)


def clip_fraction(log_prob: Tensor, old_log_prob: Tensor, clip_range: float, mask: Tensor | None = None) -> Tensor:
    """Return the share of samples whose ratio left [1−ε, 1+ε]."""
    ratio = torch.exp(log_prob - old_log_prob)
    return masked_mean(((ratio - 1.0).abs() > clip_range).to(log_prob.dtype), mask)


def explained_variance(prediction: Tensor, target: Tensor) -> Tensor:
    """Compute 1 − Var(R − V) / Var(R): 1 is perfect, 0 is no better than a constant; 0 for a constant target."""
    variance = target.var(unbiased=False)
    residual = (target - prediction).var(unbiased=False)
    return torch.where(
        variance > 0, 1.0 - residual / variance.clamp(min=torch.finfo(variance.dtype).tiny), torch.zeros_like(variance)
    )


def standardize(values: Tensor, mask: Tensor | None = None, epsilon: float = 1e-8) -> Tensor:
    """Scale to (x − mean) / (std + ε) over the unmasked entries; a single value becomes 0."""
    mean = masked_mean(values, mask)
    variance = masked_mean((values - mean).square(), mask)
    return (values - mean) / (variance.sqrt() + epsilon)


def negative_log_likelihood(log_prob: Tensor, weight: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
    """Compute −E[w · log π(a|s)] over demonstrated actions, the loss of behaviour cloning; if None, w = 1."""
    weighted = log_prob if weight is None else weight * log_prob
    return -masked_mean(weighted, mask)


def awr_weights(advantage: Tensor, temperature: float, max_weight: float) -> Tensor:
    """Compute the weights of AWR (Peng et al., 2019): min(exp(A / β), w_max).

    Args:
        advantage: A = R − V(s), any shape.
        temperature: β; raising it makes all samples count more alike.
        max_weight: w_max; raising it lets the best samples dominate a minibatch.
    """
    if temperature <= 0.0:
        raise ValueError(f"temperature={temperature} must be positive: weights are exp(advantage / temperature)")
    # The clamp before exp keeps the gradient-free weight finite for any advantage.
    limit = torch.log(torch.as_tensor(max_weight, dtype=advantage.dtype, device=advantage.device))
    return torch.exp(torch.minimum(advantage / temperature, limit))  # min(exp(A/β), w_max)


def check_weights(network: nn.Module, update: int) -> None:
    """Refuse weights that are no longer numbers, so that no checkpoint is made of them.

    Raises:
        DivergedError: It names the update and the parameters.
    """
    names = [name for name, values in network.named_parameters() if not bool(torch.isfinite(values).all())]
    if names:
        raise DivergedError(
            f"update {update} made weights NaN or infinite: {', '.join(names[:4])}",
            "weights are finite numbers",
            "lower learning_rate, set max_grad_norm, or bound the rewards; the last checkpoint is sound",
        )


# -- the replay audit


class ReplayMismatchError(RuntimeError):
    """Stored and recomputed log-probabilities differ, so the rollout was not made by the policy that learns from it."""


def audit_log_probs(
    who: str,
    stored: Tensor,
    recomputed: Tensor,
    mask: Tensor | None = None,
    tolerance: float = REPLAY_TOLERANCE,
    network: nn.Module | None = None,
) -> float:
    """Check that the policy still gives what it gave when it acted: compare, warn, or refuse.

    A difference means that stored observations are not what the policy saw (aliased buffers), that a normaliser moved
    in between, that memories were restored wrongly, that a network is random, or that fragments of other versions
    slipped in. All of them make importance ratios meaningless, and none of them shows in a loss curve.

    Args:
        who: Whose log-probabilities they are, for messages.
        stored: log π(a|s) from collection.
        recomputed: log π(a|s) now, of the same shape.
        mask: 1 where the sample counts.
        tolerance: Largest difference that is not refused.
        network: The network, to name what in it may be the cause.

    Returns:
        The largest difference over the samples that count.

    Raises:
        DivergedError: A log-probability is not a finite number.
        ReplayMismatchError: The difference is above the tolerance.
    """
    difference = (recomputed - stored).detach().abs()
    if mask is not None:
        difference = difference * mask
    error = float(difference.max())
    if not error <= tolerance:  # also true for NaN
        _refuse(who, stored, recomputed, error, tolerance, network)
    if error > _WARNING_FRACTION * tolerance:
        logger.warning(
            "%s: recomputed log-probabilities differ from the stored ones by up to %.3g (error above %g)",
            who,
            error,
            tolerance,
        )
    return error


def _refuse(
    who: str, stored: Tensor, recomputed: Tensor, error: float, tolerance: float, network: nn.Module | None
) -> None:
    for name, values in (("stored", stored), ("recomputed", recomputed)):
        if not bool(torch.isfinite(values).all()):
            raise DivergedError(
                f"{who}: {name} log-probabilities are NaN or infinite",
                "observations, actions and weights are finite numbers",
                "check rewards and observations with apexrl.check_env, or lower the learning rate",
            )
    cause = (
        "Run apexrl.check_env on the environment (aliased observations are the usual cause), and change networks and "
        "normalisers only between iterations"
    )
    if network is not None and (random := random_layers(network.named_modules())):
        cause = (
            f"The network contains {random}, whose output changes from call to call: importance ratios need the same "
            "output for the same input. Leave it out, or call eval() on it in the network's constructor"
        )
    raise ReplayMismatchError(
        f"{who}: recomputed log-probabilities differ from the stored ones by up to {error:.3g}, more than the "
        f"tolerance of {tolerance:g}: the rollout does not fit the policy. {cause}"
    )


def random_layers(modules: Iterable[tuple[str, nn.Module]]) -> str:
    """Name the layers whose output is not a function of their input alone: dropout and batch normalisation."""
    kinds = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
    layers = [f"{type(module).__name__} ({name})" for name, module in modules if isinstance(module, kinds)]
    return ", ".join(layers)

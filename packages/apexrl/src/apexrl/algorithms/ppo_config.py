"""The configuration of PPO: every field says what raising it does, and every field works."""

import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, PlainSerializer, model_validator

from apexrl.configuration import configuration, from_mapping

logger = logging.getLogger(__name__)

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]
Count = Annotated[int, Field(ge=1)]

Schedule = (
    Literal["constant", "linear", "adaptive"]
    | Annotated[
        Callable[[float], float],
        PlainSerializer(lambda function: f"{function.__module__}.{function.__qualname__}", return_type=str),
    ]
)
"""A name, or a function from the fraction of the run that is done to the learning rate."""


@configuration
class PPOConfig:
    """Proximal policy optimisation (Schulman et al., 2017), with generalised advantage estimation (2016).

    Minimised per minibatch: −E[min(r·A, clip(r, 1−ε, 1+ε)·A)] + c_v·E[(V − R)²] − c_e·E[H(π)].
    """

    num_steps: Count = 256
    """Steps per environment and rollout. Raising it gives better advantages and fewer updates per sample."""
    num_epochs: Count = 10
    """Passes over each rollout. Raising it learns more from each sample, and risks leaving the trust region."""
    minibatch_size: Count = 64
    """The most samples per gradient step; a rollout is split evenly. Raising it gives fewer, smoother steps."""
    learning_rate: Positive = 3e-4
    """Adam's step size at the start. Raising it learns faster until it becomes unstable."""
    schedule: Schedule = "constant"
    """How the learning rate moves: not at all, linearly to 0 at the end, so that KL stays near `desired_kl`, or by a
    function of the fraction of the run that is done, from 0 to 1, which returns the learning rate."""
    desired_kl: Positive = 0.01
    """For the adaptive schedule: the KL divergence per update to aim at. Raising it allows larger policy changes."""
    learning_rate_range: tuple[Positive, Positive] = (1e-5, 1e-2)
    """For the adaptive schedule: the smallest and the largest learning rate."""
    gamma: Fraction = 0.99
    """Discount. Raising it makes distant rewards count more, and values harder to learn."""
    gae_lambda: Fraction = 0.95
    """Raising it trusts the critic less: less bias, more variance in advantages."""
    clip_range: Positive = 0.2
    """ε of the policy's clipping. Raising it lets one update move the policy further."""
    clip_range_vf: Positive | None = None
    """ε of the critic's clipping, in units of its output; None does not clip. Raising it lets values move further."""
    vf_coef: NonNegative = 0.5
    """Weight of the critic's loss. Raising it gives the critic more of the clipped gradient's norm."""
    ent_coef: NonNegative = 0.0
    """Weight of the entropy bonus. Raising it keeps the policy more random."""
    max_grad_norm: Positive | None = 0.5
    """The gradient is scaled down to this norm; None never scales. Raising it allows larger steps after surprises."""
    target_kl: Positive | None = None
    """An update ends before the step whose minibatch shows a larger KL divergence; None never ends early."""
    huber_delta: Positive | None = None
    """Value errors beyond it count linearly; None squares all. Raising it makes the critic follow outliers more."""
    normalize_advantages: bool = True
    """Scale a rollout's advantages to mean 0 and deviation 1, so that steps do not depend on the rewards' scale."""
    normalize_observations: bool = False
    """Scale observations by their running mean and deviation, which move only between rollouts."""
    normalize_rewards: bool = False
    """Divide rewards by the running deviation of the discounted return; for rewards far from unit size."""
    normalize_values: bool = False
    """Let the critic learn targets scaled by their running mean and deviation; for returns far from unit size."""
    sequence_length: Count = 16
    """Recurrent policies: steps that gradients flow back through. Raising it learns longer memories, and costs more."""
    adam_epsilon: Positive = 1e-5
    """Adam's ε. Raising it damps steps along directions with tiny gradients."""
    replay_tolerance: Positive = 1e-4
    """Largest allowed difference of stored and recomputed log-probabilities before the first step; more is an error."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of networks, environments, action sampling and minibatches."""

    @model_validator(mode="after")
    def _check_learning_rate_range(self) -> "PPOConfig":
        low, high = self.learning_rate_range
        if low > high:
            raise ValueError(f"learning_rate_range={self.learning_rate_range} must be (smallest, largest)")
        return self


C = TypeVar("C", bound=PPOConfig)


def stored_config(config_class: type[C], values: Mapping[str, Any], source: str) -> C:
    """Return the configuration in a checkpoint; a schedule that was a function becomes constant, with a warning."""
    known = dict(values)
    if known.get("schedule") not in (None, "constant", "linear", "adaptive"):
        logger.warning(
            "%s was made with the schedule %s, a function that a checkpoint cannot hold: the learning rate is constant "
            "unless cfg= says otherwise",
            source,
            known["schedule"],
        )
        known["schedule"] = "constant"
    return from_mapping(config_class, known, f"the configuration in {source!r}")

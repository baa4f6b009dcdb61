"""What is learned from: returns and advantages of a rollout, samples, and minibatches of them.

Advantages and returns are pure functions over time-major tensors: T steps, then any number of batch dimensions (N envs,
or N envs × agents). Feed-forward policies learn from single samples, recurrent ones from sequences. A pass shuffles by
one gather per field; minibatches are then contiguous slices of it, which cost nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor


def next_values(
    values: Tensor, last_values: Tensor, terminated: Tensor, time_outs: Tensor, final_values: Tensor
) -> Tensor:
    """Arrange V of what came after each step, as the Bellman target needs it.

    Args:
        values: V(s_t) [T, ...].
        last_values: V(s_T), the observation after the last step [...].
        terminated: 1 where the episode really ended at step t [T, ...].
        time_outs: 1 where the episode was cut at step t while it could have continued [T, ...].
        final_values: V of the true final observation where ``time_outs`` is 1, anything finite elsewhere [T, ...].

    Returns:
        0 where terminated, V(final observation) where cut, V(s_{t+1}) elsewhere [T, ...].
    """
    following = torch.cat((values[1:], last_values.unsqueeze(0)))  # V(s_{t+1})
    following = torch.where(time_outs.bool(), final_values, following)
    return following.masked_fill(terminated.bool(), 0.0)


def gae(
    rewards: Tensor, values: Tensor, following: Tensor, dones: Tensor, gamma: float | Tensor, gae_lambda: float
) -> Tensor:
    """Compute generalised advantage estimates (Schulman et al., 2016).

    Args:
        rewards: r_t [T, ...].
        values: V(s_t) [T, ...].
        following: V of what came after, from :func:`next_values` [T, ...].
        dones: 1 where an episode ended at step t for whatever reason: no advantage flows over that border [T, ...].
        gamma: γ, the discount; raising it makes distant rewards count more. A tensor [T, ...] where steps last for
            different times.
        gae_lambda: λ; raising it trusts the critic less: less bias, more variance.

    Returns:
        A_t [T, ...]; ``A_t + V(s_t)`` is the critic's target.
    """
    # δ_t = r_t + γ·V' − V(s_t)
    if isinstance(gamma, Tensor):
        delta = torch.addcmul(rewards - values, gamma, following)
    else:
        delta = torch.add(rewards - values, following, alpha=gamma)
    decay = (gamma * gae_lambda) * (1.0 - dones.to(values.dtype))  # γλ·(1 − d_t)
    advantages = torch.empty_like(delta)
    running = torch.zeros_like(delta[0])
    for t in range(delta.shape[0] - 1, -1, -1):
        running = torch.addcmul(delta[t], decay[t], running, out=advantages[t])  # A_t = δ_t + γλ·(1 − d_t)·A_{t+1}
    return advantages


def discounted_returns(rewards: Tensor, following: Tensor, dones: Tensor, gamma: float) -> Tensor:
    """Compute returns-to-go that bootstrap where an episode was cut.

    Args:
        rewards: r_t [T, ...].
        following: What to bootstrap with at borders and the last step: 0 where terminated, V where cut [T, ...].
        dones: 1 where an episode ended at step t [T, ...].
        gamma: γ.

    Returns:
        G_t = r_t + γ·(V' at a border, else G_{t+1}) [T, ...].
    """
    borders = dones.bool()
    returns = torch.empty_like(rewards)
    running = following[-1]
    for t in range(rewards.shape[0] - 1, -1, -1):
        after = torch.where(borders[t], following[t], running)
        running = torch.add(rewards[t], after, alpha=gamma, out=returns[t])  # G_t = r_t + γ·G_{t+1}
    return returns


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """Samples to learn from. B is a batch dimension; for sequences the shapes are ``[L, B, ...]``.

    Attributes:
        observations: What the actor is given, normalised ``[B, *obs]``.
        critic_observations: What the critic is given, normalised; the same tensor when both see the same.
        actions: ``[B, *action]``.
        log_probs: Under the policy that acted ``[B]`` or ``[B, agents]``; the same shape as all that follow.
        advantages: A.
        returns: The critic's targets, in units of its outputs.
        values: The critic's outputs at collection.
        valid: 1 where a sample counts; None if all do.
        action_masks: Legal actions; None if all are.
        episode_starts: Sequences only: where memories are reset ``[L, B]``.
        memories: Sequences only: memories before the first step, by network ``[B, *state]``.
    """

    observations: Tensor
    critic_observations: Tensor
    actions: Tensor
    log_probs: Tensor
    advantages: Tensor
    returns: Tensor
    values: Tensor
    valid: Tensor | None = None
    action_masks: Tensor | None = None
    episode_starts: Tensor | None = None
    memories: dict[str, Tensor] = field(default_factory=dict)

    @property
    def is_sequences(self) -> bool:
        """Whether the first dimension is time."""
        return self.episode_starts is not None

    @property
    def batch_size(self) -> int:
        """B: samples or sequences."""
        return self.log_probs.shape[1 if self.is_sequences else 0]

    def take(self, indices: Tensor) -> "Samples":
        """Return the samples or sequences at these indices, by one gather per field."""
        along = 1 if self.is_sequences else 0
        taken = self._each(lambda values: values.index_select(along, indices))
        memories = {name: values.index_select(0, indices) for name, values in self.memories.items()}
        return Samples(**taken, memories=memories)

    def split(self, sizes: list[int]) -> "Iterator[Samples]":
        """Return neighbouring samples or sequences, as views; all views of a field are made at once."""
        along = 1 if self.is_sequences else 0
        fields_by_name = self._each(lambda values: torch.split(values, sizes, along))
        present = [name for name, views in fields_by_name.items() if views is not None]
        memories = {name: torch.split(values, sizes) for name, values in self.memories.items()}
        for index, views in enumerate(zip(*(fields_by_name[name] for name in present), strict=True)):
            part = {name: states[index] for name, states in memories.items()}
            yield Samples(**dict(zip(present, views, strict=True)), memories=part)

    def _each(self, change: Callable[[Tensor], Any]) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        for name in _TENSOR_FIELDS:
            values = getattr(self, name)
            changed[name] = None if values is None else change(values)
        if self.critic_observations is self.observations:
            changed["critic_observations"] = changed["observations"]
        return changed


_TENSOR_FIELDS = tuple(item.name for item in fields(Samples) if item.name != "memories")


def even_sizes(total: int, largest: int) -> list[int]:
    """Split ``total`` into the fewest parts of at most ``largest``, sizes differing by at most 1.

    Even parts keep the last minibatch from being a single noisy sample.
    """
    parts = -(-total // largest)
    small, extra = divmod(total, parts)
    return [small + 1] * extra + [small] * (parts - extra)


def minibatches(samples: Samples, minibatch_size: int, generator: torch.Generator) -> Iterator[Samples]:
    """Yield minibatches of one pass over all samples in random order.

    Args:
        samples: What to learn from.
        minibatch_size: The most samples per minibatch; sequences count with their length.
        generator: Decides the order.
    """
    count = samples.batch_size
    largest = max(1, minibatch_size // samples.log_probs.shape[0]) if samples.is_sequences else minibatch_size
    order = torch.randperm(count, generator=generator, device=generator.device).to(samples.log_probs.device)
    yield from samples.take(order).split(even_sizes(count, largest))


def as_sequences(values: Tensor, length: int) -> Tensor:
    """Cut ``[T, N, ...]`` into sequences ``[L, T/L · N, ...]``; sequence k·N + n is the k-th of environment n."""
    steps, envs = values.shape[:2]
    return values.reshape(steps // length, length, envs, *values.shape[2:]).transpose(0, 1).flatten(1, 2)

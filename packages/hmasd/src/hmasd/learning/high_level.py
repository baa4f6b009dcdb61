"""PPO for the skill coordinator: one sample per choice, tokens for the team skill and each agent's skill.

A choice is a sample of the batch in which it was made, whose policy version made it. If its skills last beyond the
batch, the value after its steps is U_h of the continuation critic, which learns from every step of every batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from apexrl.algorithms.losses import (
    approximate_kl,
    masked_mean,
    needed_mask,
    ppo_surrogate,
    standardize,
    value_loss,
)
from apexrl.arrays import Floats
from apexrl.models.normalizers import ValueNormalizer
from apexrl.storage.samples import discounted_returns
from hmasd.config.schema import HMASDConfig
from hmasd.learning.audit import audit_transformer
from hmasd.learning.optimization import gradient_step
from hmasd.learning.rollout import Rollout, as_bools
from hmasd.learning.skill_clock import (
    Intervals,
    cut_intervals,
    ever_within,
    interval_advantages,
    steps_left,
)
from hmasd.networks.blocks import VALUE_DECAY, VALUE_VARIANCE_FLOOR
from hmasd.networks.coordinator import ContinuationCritic, SkillChoice, SkillCoordinator


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """M choices with n + 1 tokens: the team skill and each agent's skill."""

    states: Tensor
    """``[M, ds]``."""
    observations: Tensor
    """``[M, n, do]``."""
    skills: Tensor
    """Z, z_1 … z_n ``[M, n + 1]``."""
    log_probs: Tensor
    """log π_h of each choice given those before it, from collection ``[M, n + 1]``."""
    values: Tensor
    """V_h of each token at collection, in the units of the value normaliser ``[M, n + 1]``."""
    advantages: Tensor
    """Standardised ``[M, n + 1]``."""
    targets: Tensor
    """Returns in the units of the value normaliser ``[M, n + 1]``."""
    mask: Tensor | None
    """1 for tokens that count, else 0 ``[M, n + 1]``; None if all of them count."""


class _Continued(NamedTuple):
    """All states of the batch with the skills in force there, the samples of U_h; C = T·E."""

    states: Tensor
    """``[C, ds]``."""
    observations: Tensor
    """``[C, n, do]``."""
    skills: Tensor
    """``[C, n + 1]``."""
    left: Tensor
    """Steps that they still last ``[C]``, 1 … k."""
    targets: Tensor
    """Returns in the units of the value normaliser ``[C]``."""


class HighLevel:
    """The coordinator with its optimiser and update.

    Args:
        config: Hyperparameters.
        coordinator: The networks.
        continuation: Values while skills are in force.
        device: Where they are.
    """

    def __init__(
        self,
        config: HMASDConfig,
        coordinator: SkillCoordinator,
        continuation: ContinuationCritic,
        device: torch.device,
    ) -> None:
        self._config = config
        self.coordinator = coordinator
        self.continuation = continuation
        self.continuation_optimizer = torch.optim.Adam(continuation.parameters(), lr=config.lr, eps=1e-5, fused=True)
        self.value_norm = ValueNormalizer(decay=VALUE_DECAY, epsilon=VALUE_VARIANCE_FLOOR).to(device)
        self.optimizer = torch.optim.Adam(coordinator.parameters(), lr=config.lr, eps=1e-5, fused=True)

    def choose(
        self,
        state: Tensor,
        observations: Tensor,
        generator: torch.Generator,
        *,
        uniform: bool,
        deterministic: bool = False,
    ) -> SkillChoice:
        """Sample skills for some environments; ``uniform`` ignores the policy, as during warm-up."""
        floor = 1.0 if uniform else self._config.skill_floor
        return self.coordinator.act(state, observations, generator, deterministic=deterministic, floor=floor)

    def update(self, rollout: Rollout, intervals: Intervals) -> dict[str, float]:
        """Audit the log-probabilities, then run the PPO epochs; returns losses and diagnostics by name.

        An epoch takes all choices at once, whatever ``num_minibatches`` is, because a batch holds few of them. A batch
        without a choice, whose skills are all from earlier ones, trains the continuation critic only.
        """
        batch, continued = self._prepare(rollout, intervals)
        if not intervals.chosen.any():
            return {"continuation": self._fit_continuation(continued)}
        audit = self._audit(batch)
        totals: dict[str, float] = {}
        for _ in range(self._config.ppo_epochs):
            for name, value in self._gradient_step(batch).items():
                totals[name] = totals.get(name, 0.0) + value / self._config.ppo_epochs
        return totals | {"continuation": self._fit_continuation(continued), "replay_error": audit}

    def _fit_continuation(self, batch: _Continued) -> float:
        """Regress U_h on the returns of all steps; each epoch takes another part of them. Returns the mean loss."""
        epochs = self._config.ppo_epochs
        with torch.no_grad():
            choosing = self.coordinator.values(batch.states, batch.observations)[:, 0]  # [C] V_h of the team's token
        total = 0.0
        for epoch in range(epochs):
            rows = slice(epoch, None, epochs)
            values = choosing[rows] + self.continuation(batch.states[rows], batch.skills[rows], batch.left[rows])
            loss = value_loss(values, batch.targets[rows], huber_delta=self._config.huber_delta)
            gradient_step(loss, self.continuation_optimizer, max_norm=self._config.max_grad_norm)
            total += loss.item() / epochs
        return total

    def _gradient_step(self, batch: _Batch) -> dict[str, float]:
        config = self._config
        scores = self.coordinator.evaluate(batch.states, batch.observations, batch.skills, floor=config.skill_floor)
        mask = batch.mask
        # L_h sums over Z, z_1 … z_n; the loss functions average, so the sum is the mean times the number of tokens.
        tokens = batch.skills.shape[1] if mask is None else mask.sum().item() / mask.shape[0]
        surrogate = tokens * ppo_surrogate(scores.log_probs, batch.log_probs, batch.advantages, config.clip_range, mask)
        entropy = tokens * masked_mean(scores.entropies, mask)
        error = value_loss(scores.values, batch.targets, batch.values, config.clip_range, mask, config.huber_delta)
        loss = surrogate - config.entropy_high * entropy + config.value_coef * error
        gradient_step(loss, self.optimizer, max_norm=config.max_grad_norm)
        with torch.no_grad():
            divergence = approximate_kl(scores.log_probs, batch.log_probs, mask)
        return {
            "total": loss.item(),
            "policy": surrogate.item(),
            "value": error.item(),
            "entropy": entropy.item(),
            "kl": divergence.item(),
        }

    def _audit(self, batch: _Batch) -> float:
        def score(coordinator: SkillCoordinator, convert: Callable[[Tensor], Tensor]) -> Tensor:
            states, observations = convert(batch.states), convert(batch.observations)
            return coordinator.evaluate(states, observations, batch.skills, floor=self._config.skill_floor).log_probs

        with torch.no_grad():
            return audit_transformer("coordinator", self.coordinator, score, batch.log_probs, batch.mask)

    @torch.no_grad()
    def _prepare(self, rollout: Rollout, intervals: Intervals) -> tuple[_Batch, _Continued]:
        """Compute advantages over all intervals; choices are PPO's samples, all steps those of U_h."""
        is_choice = torch.from_numpy(intervals.chosen)
        start, env = torch.from_numpy(intervals.start), torch.from_numpy(intervals.env)
        counted = token_mask(rollout, intervals)
        stored, values, next_values = self._values(rollout, intervals, counted)
        discount: Floats = np.power(self._config.gamma_per_step, intervals.length.astype(np.float64))
        advantages = interval_advantages(intervals, values, next_values, discount, self._config.gae_lambda)
        returns = torch.from_numpy(advantages + values).to(stored)[is_choice]  # [choices, n + 1]
        # update the normaliser before the targets, so that they are in its new units
        mask = None if counted is None else needed_mask(counted[is_choice.to(counted.device)])
        if bool(is_choice.any()):
            self.value_norm.update(returns, mask)
        weights = None if mask is None else mask.to(stored.dtype)
        differences = torch.from_numpy(advantages).to(stored)[is_choice]
        rows = start[is_choice], env[is_choice]
        batch = _Batch(
            states=rollout.states[rows],
            observations=rollout.observations[rows],
            skills=rollout.skills[rows],
            log_probs=rollout.skill_log_probs[rows],
            values=stored[is_choice],
            advantages=standardize(differences, weights, epsilon=self._config.advantage_floor),
            targets=self.value_norm.normalize(returns),
            mask=weights,
        )
        return batch, self._continued(rollout, intervals, next_values[:, 0], advantages[:, 0])

    def _continued(self, rollout: Rollout, intervals: Intervals, next_values: Floats, advantages: Floats) -> _Continued:
        """Return the samples of U_h: its target is the return by the team's token, which counts in every interval.

        Args:
            rollout: The batch.
            intervals: Its M intervals.
            next_values: V_h after each interval, in units of reward ``(M,)``.
            advantages: Generalised advantages of the intervals ``(M,)``.
        """
        # what follows an interval: V' + λ·A of the next one, where there is a next one in the episode
        following = next_values + self._config.gae_lambda * np.where(intervals.continues, np.roll(advantages, -1), 0.0)
        rewards = rollout.rewards.to(torch.float64)
        after = torch.zeros_like(rewards)  # [T, E], 0 inside intervals
        after[intervals.end, intervals.env] = torch.from_numpy(following).to(after.device)
        returns = discounted_returns(rewards, after, rollout.interval_ends(), self._config.gamma_per_step)  # [T, E]
        ages = rollout.skill_ages.cpu().numpy()
        left = steps_left(as_bools(rollout.assigned), ages, self._config.skill_steps)
        return _Continued(
            rollout.states.flatten(0, 1),
            rollout.observations.flatten(0, 1),
            rollout.skills.flatten(0, 1),
            torch.from_numpy(left).to(rollout.device).flatten(),
            self.value_norm.normalize(returns.flatten().to(rollout.rewards.dtype)),
        )

    def _values(self, rollout: Rollout, intervals: Intervals, counted: Tensor | None) -> tuple[Tensor, Floats, Floats]:
        """Return the values at interval starts and after interval ends.

        The value at a start is V_h where skills were chosen, else U_h. After the end it is 0 if the episode terminated,
        the value at the next interval's start within an episode, and V_h of the final state and observations after a
        time limit. At the barrier it is V_h of the current ones where skills are due, and U_h where skills continue.

        Args:
            rollout: The batch.
            intervals: Its M intervals.
            counted: Tokens that count ``[M, n + 1]``; None for all of them. V_h of an absent agent's token is never
                trained, so the team's stands for it.

        Returns:
            Values at starts as the normaliser has them ``[M, n + 1]``; the same and those after ends, in units of
            reward ``(M, n + 1)``.
        """
        start, end = torch.from_numpy(intervals.start), torch.from_numpy(intervals.end)
        env, left = torch.from_numpy(intervals.env), torch.from_numpy(intervals.left)
        inside, old = torch.from_numpy(intervals.continues), ~torch.from_numpy(intervals.chosen)
        stored = rollout.skill_values[start, env]
        if bool(old.any()):
            rows = start[old], env[old]
            seen = rollout.states[rows], rollout.observations[rows]
            remaining = self._config.skill_steps - torch.from_numpy(intervals.age)[old]
            stored[old] = self._continue_values(*seen, rollout.skills[rows], remaining)
        if counted is not None:
            stored = torch.where(counted, stored, stored[:, :1])
        # the next interval of an episode is the next row
        following = torch.where(inside.to(rollout.device).unsqueeze(1), stored.roll(-1, dims=0), 0.0)
        outside = ~inside & ~torch.from_numpy(intervals.terminated)
        if bool(outside.any()):
            rows = end[outside], env[outside]
            seen = rollout.next_states[rows], rollout.next_observations[rows]
            following[outside] = self._continue_values(*seen, rollout.skills[rows], left[outside])
        if counted is not None:
            following = torch.where(counted, following, following[:, :1])
        values, next_values = (
            self.value_norm.denormalize(part).cpu().numpy().astype(np.float64) for part in (stored, following)
        )
        next_values[intervals.terminated] = 0.0
        return stored, values, next_values

    def _continue_values(self, states: Tensor, observations: Tensor, skills: Tensor, left: Tensor) -> Tensor:
        """Return U_h of every token ``[C, n + 1]``, in the units of the value normaliser; V_h where ``left`` is 0."""
        difference = self.continuation(states, skills, left.to(states.device))
        values: Tensor = self.coordinator.values(states, observations) + difference.unsqueeze(1)
        return values

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        return {
            "coordinator": self.coordinator.state_dict(),
            "value_norm": self.value_norm.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "continuation_critic": self.continuation.state_dict(),
            "continuation_critic_optimizer": self.continuation_optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.coordinator.load_state_dict(state["coordinator"])
        self.value_norm.load_state_dict(state["value_norm"])
        self.optimizer.load_state_dict(state["optimizer"])
        if "continuation_critic" in state:  # older releases had none, or one of whole values
            self.continuation.load_state_dict(state["continuation_critic"])
            self.continuation_optimizer.load_state_dict(state["continuation_critic_optimizer"])


def token_mask(rollout: Rollout, intervals: Intervals) -> Tensor | None:
    """Return the tokens that count ``[M, n + 1]``: Z, and z_i if agent i was present in the interval; None for all."""
    present = torch.from_numpy(ever_within(as_bools(rollout.present), intervals)).to(rollout.device)
    return needed_mask(torch.cat([torch.ones_like(present[:, :1]), present], dim=1))


def rollout_intervals(rollout: Rollout, config: HMASDConfig) -> Intervals:
    """Return the intervals of a rollout."""
    return cut_intervals(
        as_bools(rollout.assigned),
        rollout.rewards.cpu().numpy().astype(np.float64),
        as_bools(rollout.terminated),
        as_bools(rollout.truncated),
        config.gamma_per_step,
        skill_steps=config.skill_steps,
        age=rollout.skill_ages.cpu().numpy(),
    )

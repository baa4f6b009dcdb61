"""PPO for the skill coordinator: one sample per choice, tokens for the team skill and each agent's skill.

A choice is a sample of the batch in which it was made, whose policy version made it. If its skills last beyond the
batch, the value after its steps is U_h of the continuation critic, which learns from such skills in the next batch.
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
from hmasd.config.schema import HMASDConfig
from hmasd.learning.audit import audit_transformer
from hmasd.learning.optimization import gradient_step
from hmasd.learning.rollout import Rollout, as_bools
from hmasd.learning.skill_clock import Intervals, cut_intervals, ever_within, interval_advantages
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
    """C states in which skills of earlier choices are in force."""

    states: Tensor
    """``[C, ds]``."""
    skills: Tensor
    """``[C, n + 1]``."""
    left: Tensor
    """Steps that they still last ``[C]``."""
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
        self._fit_continuation(continued)
        if not intervals.chosen.any():
            return {}
        audit = self._audit(batch)
        totals: dict[str, float] = {}
        for _ in range(self._config.ppo_epochs):
            for name, value in self._gradient_step(batch).items():
                totals[name] = totals.get(name, 0.0) + value / self._config.ppo_epochs
        return totals | {"replay_error": audit}

    def _fit_continuation(self, batch: _Continued) -> None:
        """Regress U_h on the returns of skills that began in earlier batches."""
        if batch.left.numel() == 0:
            return
        for _ in range(self._config.ppo_epochs):
            values = self.continuation(batch.states, batch.skills, batch.left)
            loss = value_loss(values, batch.targets, huber_delta=self._config.huber_delta)
            group = self.continuation_optimizer, self.continuation.parameters()
            gradient_step(loss, group, max_norm=self._config.max_grad_norm)

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
        gradient_step(loss, (self.optimizer, self.coordinator.parameters()), max_norm=config.max_grad_norm)
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
        """Compute advantages over all intervals; choices are PPO's samples, the others those of U_h."""
        is_choice = torch.from_numpy(intervals.chosen)
        start, env = torch.from_numpy(intervals.start), torch.from_numpy(intervals.env)
        # values at interval starts and after interval ends, [M, n + 1], in units of reward: V_h at choices, else U_h
        stored = rollout.skill_values[start, env]
        left = torch.from_numpy(self._config.skill_steps - intervals.age).to(rollout.device)
        rows = start[~is_choice], env[~is_choice]
        ongoing = rollout.states[rows], rollout.skills[rows], left[~is_choice]
        stored[~is_choice] = self._continue_values(*ongoing)
        values = self.value_norm.denormalize(stored).cpu().numpy().astype(np.float64)
        next_values = self._next_values(rollout, intervals)
        discount: Floats = np.power(self._config.gamma_per_step, intervals.length.astype(np.float64))
        advantages = interval_advantages(intervals, values, next_values, discount, self._config.gae_lambda)
        returns = torch.from_numpy(advantages + values).to(stored)  # [M, n + 1]
        # update the normaliser before the targets, so that they are in its new units
        counted = token_mask(rollout, intervals, is_choice)
        if bool(is_choice.any()):
            self.value_norm.update(returns[is_choice], counted)
        mask = None if counted is None else counted.to(stored.dtype)
        differences = torch.from_numpy(advantages).to(stored)[is_choice]
        targets = self.value_norm.normalize(returns)
        rows = start[is_choice], env[is_choice]
        batch = _Batch(
            states=rollout.states[rows],
            observations=rollout.observations[rows],
            skills=rollout.skills[rows],
            log_probs=rollout.skill_log_probs[rows],
            values=stored[is_choice],
            advantages=standardize(differences, mask, epsilon=self._config.advantage_floor),
            targets=targets[is_choice],
            mask=mask,
        )
        # tokens hold n + 1 estimates of one return; U_h learns their mean
        return batch, _Continued(*ongoing, targets[~is_choice].mean(dim=1))

    def _continue_values(self, states: Tensor, skills: Tensor, left: Tensor) -> Tensor:
        """Return U_h for every token ``[C, n + 1]``, in the units of the value normaliser."""
        values: Tensor = self.continuation(states, skills, left)
        return values.unsqueeze(1).expand(-1, skills.shape[1])

    def _next_values(self, rollout: Rollout, intervals: Intervals) -> Floats:
        """Return V_h after each interval, in units of reward ``(M, n + 1)``.

        It is 0 after a termination, the value at the next interval's start within an episode, and the value of the
        final state and observations after a time limit. At the barrier it is V_h of the current ones where skills are
        due, and U_h where skills continue.
        """
        end, env = torch.from_numpy(intervals.end), torch.from_numpy(intervals.env)
        inside = torch.from_numpy(intervals.continues)
        left = torch.from_numpy(intervals.left)
        outside = ~inside & ~torch.from_numpy(intervals.terminated) & (left == 0)
        normalized = torch.zeros(end.shape[0], rollout.n_agents + 1, device=rollout.device)
        normalized[inside] = rollout.skill_values[end[inside] + 1, env[inside]]
        if bool(outside.any()):
            row, column = end[outside], env[outside]
            normalized[outside] = self.coordinator.values(
                rollout.next_states[row, column], rollout.next_observations[row, column]
            )
        if bool((left > 0).any()):
            rows = end[left > 0], env[left > 0]
            ongoing = rollout.next_states[rows], rollout.skills[rows], left[left > 0].to(rollout.device)
            normalized[left > 0] = self._continue_values(*ongoing)
        next_values: Floats = self.value_norm.denormalize(normalized).cpu().numpy().astype(np.float64)
        next_values[intervals.terminated] = 0.0
        return next_values

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        return {
            "coordinator": self.coordinator.state_dict(),
            "value_norm": self.value_norm.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "continuation": self.continuation.state_dict(),
            "continuation_optimizer": self.continuation_optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.coordinator.load_state_dict(state["coordinator"])
        self.value_norm.load_state_dict(state["value_norm"])
        self.optimizer.load_state_dict(state["optimizer"])
        if "continuation" in state:  # skills of older releases ended at the barrier
            self.continuation.load_state_dict(state["continuation"])
            self.continuation_optimizer.load_state_dict(state["continuation_optimizer"])


def token_mask(rollout: Rollout, intervals: Intervals, rows: Tensor | None = None) -> Tensor | None:
    """Return the tokens that count ``[M, n + 1]``: Z, and z_i if agent i was present in the interval; None for all.

    ``rows [M]`` selects intervals; default: all of them.
    """
    present = torch.from_numpy(ever_within(as_bools(rollout.present), intervals)).to(rollout.device)
    if rows is not None:
        present = present[rows.to(present.device)]
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

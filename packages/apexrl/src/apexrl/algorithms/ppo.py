"""Proximal policy optimisation, feed-forward and recurrent."""

import copy
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import torch
from numpy.typing import NDArray
from torch import Tensor

from apexrl.algorithms.actor_critic import (
    ActorCritic,
    FlatParameters,
    build_actor_critic,
    evaluate_actor,
    evaluate_critic,
)
from apexrl.algorithms.analytic import AnalyticGradients, applies_to
from apexrl.algorithms.blueprint import Spaces, describe_network, network_of, options_of
from apexrl.algorithms.devices import resolve_device
from apexrl.algorithms.losses import (
    MinibatchResult,
    approximate_kl,
    audit_log_probs,
    check_weights,
    clip_fraction,
    explained_variance,
    masked_mean,
    ppo_surrogate,
    standardize,
    value_loss,
)
from apexrl.algorithms.ppo_config import PPOConfig, stored_config
from apexrl.algorithms.reward_scale import RewardScale
from apexrl.configuration import of_class
from apexrl.models.base import Policy, ValueFunction
from apexrl.models.distributions import Distribution
from apexrl.runs.checkpoints.checkpoint import Schema, fitting, load_checkpoint
from apexrl.runs.errors import ConfigurationError
from apexrl.storage.rollout import RolloutStorage
from apexrl.storage.samples import Samples, as_sequences, gae, minibatches

__all__ = ["PPO", "PPOConfig"]

logger = logging.getLogger(__name__)

_ADAPTIVE_FACTOR: Final = 1.5
"""How far one adaptive adjustment goes."""
_ADAPTIVE_BAND: Final = 2.0
"""The learning rate stays while desired / band ≤ KL ≤ desired · band."""
_ROUNDING: Final = 1e-9
"""A schedule may end this far below 0."""


class PPO:
    """PPO with the networks, the optimiser and the random stream that it learns with.

    A recurrent actor or critic makes it recurrent PPO: it then learns from sequences of ``cfg.sequence_length`` steps.

    Args:
        env: Gives the spaces; it is not stepped here. Not needed if the spaces are given.
        cfg: Hyperparameters; if None, ``PPOConfig()``.
        actor_class: The policy network; if None, the MLP for the action space.
        critic_class: The value network; if None, an MLP.
        actor_cfg: Keyword arguments of the actor, such as ``{"hidden_dims": [256]}``.
        critic_cfg: Keyword arguments of the critic.
        device: Where to learn; None and ``"auto"`` take the environment's device if it is a GPU, else CUDA if there is
            one, else the CPU. CUDA falls back to the CPU with a warning.
        spaces: Keyword arguments of :class:`~apexrl.algorithms.blueprint.Spaces`, such as ``observation_space`` and
            ``action_space``, instead of ``env``.

    Attributes:
        policy: Networks and normalisers.
        optimizer: Adam over all parameters.
        version: Updates so far; the version of the snapshot that goes out next.
        learning_rate: The learning rate of the next update.
    """

    name = "ppo"
    config_class: ClassVar[type[PPOConfig]] = PPOConfig

    def __init__(
        self,
        env: Any = None,  # noqa: ANN401 - whatever stands for an environment
        cfg: PPOConfig | None = None,
        actor_class: type[Policy] | None = None,
        critic_class: type[ValueFunction] | None = None,
        actor_cfg: Mapping[str, Any] | None = None,
        critic_cfg: Mapping[str, Any] | None = None,
        device: torch.device | str | None = None,
        **spaces: Any,  # noqa: ANN401 - fields of Spaces
    ) -> None:
        self.cfg = of_class(self.config_class, cfg, type(self).__name__)
        self.spaces = Spaces.from_arguments(env, spaces, type(self).__name__)
        self.device = resolve_device(device, self.spaces.device)
        self._networks = {
            "actor": describe_network(actor_class, actor_cfg),
            "critic": describe_network(critic_class, critic_cfg),
        }
        with torch.random.fork_rng(devices=[]):  # the seed decides the networks, and the caller's stream is left alone
            torch.manual_seed(self.cfg.seed)
            policy = self._build(self.spaces, actor_class, critic_class, actor_cfg or {}, critic_cfg or {})
        self.policy = policy.to(self.device)
        self.reward_scale = RewardScale(self.cfg.gamma) if self.cfg.normalize_rewards else None
        self._check_sequences()
        self.learning_rate = self.cfg.learning_rate
        self.version = 0
        self.generator = torch.Generator().manual_seed(self.cfg.seed)
        fused = self.device.type in ("cpu", "cuda")
        self._parameters = FlatParameters(self.policy)
        self.optimizer = torch.optim.Adam(
            [self._parameters.flat], lr=self.learning_rate, eps=self.cfg.adam_epsilon, fused=fused
        )
        self._last_kl: float | None = None

    def _build(
        self,
        env: Spaces,
        actor_class: type[Policy] | None,
        critic_class: type[ValueFunction] | None,
        actor_cfg: Mapping[str, Any],
        critic_cfg: Mapping[str, Any],
    ) -> ActorCritic:
        if env.num_agents is not None:
            raise TypeError("PPO needs an environment with a single agent: for several, use MAPPO, MultiAgentRunner")
        return build_actor_critic(env, self.cfg, actor_class, critic_class, actor_cfg, critic_cfg)

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: Any = None,  # noqa: ANN401 - whatever stands for an environment
        *,
        cfg: PPOConfig | None = None,
        actor_class: type[Policy] | None = None,
        critic_class: type[ValueFunction] | None = None,
        actor_cfg: Mapping[str, Any] | None = None,
        critic_cfg: Mapping[str, Any] | None = None,
        device: torch.device | str | None = None,
        reset_learning_rate: bool = False,
    ) -> Self:
        """Build the agent of a checkpoint, ready to act or to learn further.

        Args:
            path: What ``save_checkpoint`` or a periodic save wrote.
            env: Gives the spaces; not needed for checkpoints that describe them.
            cfg: Other hyperparameters than the checkpoint's; of the learning rate see ``reset_learning_rate``.
            actor_class: The policy network, if it is a class of your own.
            critic_class: The value network, likewise.
            actor_cfg: Keyword arguments of the actor, if the checkpoint could not hold them.
            critic_cfg: Keyword arguments of the critic, likewise.
            device: Where to learn.
            reset_learning_rate: Learn with the learning rate of ``cfg`` instead of the checkpoint's.

        Raises:
            CheckpointMissingError: There is no such file.
            SchemaMismatchError: It belongs to another algorithm, or to networks of other shapes.
            ConfigurationError: The checkpoint needs one of the arguments that were left out.
        """
        checkpoint = load_checkpoint(path, Schema(name=f"apexrl.{cls.name}", version=1))
        blueprint = checkpoint.state.get("blueprint", {})
        nothing: dict[str, Any] = {"class": None, "options": {}}
        actor, critic = blueprint.get("actor", nothing), blueprint.get("critic", nothing)
        known = Spaces.from_state_dict(blueprint["spaces"]) if env is None and "spaces" in blueprint else env
        agent = cls(
            known,
            cfg or stored_config(cls.config_class, checkpoint.config, str(path)),
            network_of("actor", actor, actor_class),
            network_of("critic", critic, critic_class),
            options_of("actor", actor, actor_cfg),
            options_of("critic", critic, critic_cfg),
            device,
        )
        with fitting(f"checkpoint {str(path)!r}", "agent"):
            agent.load_state_dict(checkpoint.state["agent"])
        if reset_learning_rate:
            agent.set_learning_rate(agent.cfg.learning_rate)
        elif cfg is not None and cfg.learning_rate != checkpoint.config.get("learning_rate"):
            logger.warning(
                "%s has learning_rate=%s, which holds instead of cfg's %s (reset_learning_rate=True changes it)",
                path,
                checkpoint.config.get("learning_rate"),
                cfg.learning_rate,
            )
        return agent

    def blueprint(self) -> dict[str, Any]:
        """Return what :meth:`load` needs beside the state: spaces, networks and their options."""
        return {"spaces": self.spaces.state_dict(), **self._networks}

    def predict(
        self,
        observation: NDArray[Any] | Tensor,
        state: dict[str, Tensor] | None = None,
        episode_start: NDArray[Any] | Tensor | None = None,
        deterministic: bool = True,
        action_mask: NDArray[Any] | Tensor | None = None,
    ) -> tuple[Any, dict[str, Tensor]]:
        """Choose actions; see :meth:`apexrl.algorithms.actor_critic.ActingPolicy.predict`."""
        return self.policy.predict(observation, state, episode_start, deterministic, action_mask)

    def _check_sequences(self) -> None:
        if self.policy.is_recurrent and self.cfg.num_steps % self.cfg.sequence_length:
            raise ValueError(
                f"num_steps={self.cfg.num_steps} is not a multiple of sequence_length={self.cfg.sequence_length}; a "
                "recurrent policy learns from whole sequences, so choose one that divides the other"
            )

    def update(self, storage: RolloutStorage) -> dict[str, float]:
        """Learn from a complete rollout: advantages, audit, then epochs of minibatches.

        Returns:
            Metrics under ``train/``.

        Raises:
            ReplayMismatchError: The rollout was not made by the present policy.
        """
        self._parameters.attach()
        samples, value_quality = self._prepare(storage)
        replay = self.audit(samples)
        results, kls, clipped, norms, stopped = self._optimize(samples)
        self._last_kl = float(kls)
        self.version += 1
        self._update_observation_statistics(storage)
        policy_loss, critic_loss, entropy = torch.stack(results).mean(0).tolist()
        return {
            "train/policy_loss": policy_loss,
            "train/value_loss": critic_loss,
            "train/entropy_loss": -entropy,
            "train/approx_kl": self._last_kl,
            "train/clip_fraction": float(clipped),
            "train/grad_norm": norms,
            "train/explained_variance": value_quality,
            "train/learning_rate": self.learning_rate,
            "train/num_gradient_steps": float(len(results)),
            "train/stopped_early": float(stopped),
            "train/replay_error": replay,
        }

    def _optimize(self, samples: Samples) -> tuple[list[Tensor], Tensor, Tensor, float, bool]:
        """Take gradient steps; return losses per step, last KL and clip fraction, mean norm, and if it ended early."""
        cfg, gradients = self.cfg, self._gradients(samples)
        limit = float("inf") if cfg.max_grad_norm is None else cfg.max_grad_norm
        losses: list[Tensor] = []
        norms: list[Tensor] = []
        kl = clipped = torch.zeros(())
        stopped = False
        for _ in range(cfg.num_epochs):
            seen: list[tuple[MinibatchResult, Samples]] = []
            for minibatch in minibatches(samples, cfg.minibatch_size, self.generator):
                result = gradients(minibatch)
                seen.append((result, minibatch))
                losses.append(result.losses)
                stopped = cfg.target_kl is not None and self._kl_of([seen[-1]])[0].item() > cfg.target_kl
                if stopped:
                    break
                norms.append(self._parameters.clip(limit))
                self.optimizer.step()
            kl, clipped = self._kl_of(seen)
            if stopped:
                break
        check_weights(self.policy, self.version + 1)
        mean_norm = float(torch.stack(norms).mean()) if norms else 0.0
        return losses, kl, clipped, mean_norm, stopped

    def policy_loss(self, distribution: Distribution, log_probs: Tensor, samples: Samples) -> Tensor:
        """Return the policy's loss of a minibatch. An algorithm that differs from PPO in it overrides this alone.

        Args:
            distribution: The present policy at the samples' observations.
            log_probs: log π_new(a|s) of the samples' actions, with gradient.
            samples: The minibatch; ``samples.log_probs`` is log π_old, ``samples.advantages`` A.
        """
        return ppo_surrogate(log_probs, samples.log_probs, samples.advantages, self.cfg.clip_range, samples.valid)

    def penalty(self, distribution: Distribution, samples: Samples) -> Tensor | None:
        """Return a term to add to the loss, such as a distance from another policy; None for none."""
        return None

    def _gradients(self, samples: Samples) -> Callable[[Samples], MinibatchResult]:
        """Return what fills the gradient: analytic for PPO's own loss and plain MLPs, autograd for everything else."""
        is_plain = type(self).policy_loss is PPO.policy_loss and type(self).penalty is PPO.penalty
        if is_plain and applies_to(self.policy, samples, self.cfg.minibatch_size):
            return AnalyticGradients(self.policy, self.cfg, self._parameters)
        return self.autograd

    def autograd(self, samples: Samples) -> MinibatchResult:
        """Compute the loss of one minibatch and fill the gradient with its derivative; old gradients are dropped."""
        cfg, policy = self.cfg, self.policy
        distribution = evaluate_actor(policy, samples)
        log_probs = distribution.log_prob(samples.actions)
        policy_loss = self.policy_loss(distribution, log_probs, samples)
        values, clip, delta = evaluate_critic(policy, samples), cfg.clip_range_vf, cfg.huber_delta
        critic_loss = value_loss(values, samples.returns, samples.values, clip, samples.valid, delta)
        entropy = masked_mean(distribution.entropy(), samples.valid)
        loss = policy_loss + cfg.vf_coef * critic_loss - cfg.ent_coef * entropy  # L = L_π + c_v·L_V − c_e·H
        if (penalty := self.penalty(distribution, samples)) is not None:
            loss = loss + penalty
        self._parameters.gradient.zero_()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own annotation is missing
        return MinibatchResult(torch.stack((policy_loss, critic_loss, entropy)).detach(), log_probs.detach())

    @torch.no_grad()
    def audit(self, samples: Samples) -> float:
        """Recompute a rollout's log-probabilities; see :func:`apexrl.algorithms.losses.audit_log_probs`."""
        recomputed = evaluate_actor(self.policy, samples).log_prob(samples.actions)
        tolerance, actor = self.cfg.replay_tolerance, self.policy.actor
        return audit_log_probs("actor", samples.log_probs, recomputed, samples.valid, tolerance, actor)

    def _kl_of(self, seen: list[tuple[MinibatchResult, Samples]]) -> tuple[Tensor, Tensor]:
        """Compute KL and clip fraction over some minibatches."""
        new = torch.cat([result.log_probs.flatten() for result, _ in seen])
        old = torch.cat([samples.log_probs.flatten() for _, samples in seen])
        masks = [samples.valid.flatten() for _, samples in seen if samples.valid is not None]
        mask = torch.cat(masks) if masks else None
        return approximate_kl(new, old, mask), clip_fraction(new, old, self.cfg.clip_range, mask)

    @torch.no_grad()
    def _prepare(self, storage: RolloutStorage) -> tuple[Samples, float]:
        """Compute advantages and targets of a rollout, and the explained variance of the old values."""
        cfg, policy, steps = self.cfg, self.policy, storage.steps
        valid = steps.get("valid")
        # A_t and R_t [T, N] (or [T, N, agents]) in units of reward
        rewards = self._rewards(steps["rewards"], valid).to(steps["values"].dtype)
        if self.reward_scale is not None:
            rewards = self.reward_scale(rewards, steps["dones"], valid)
        advantages = gae(rewards, steps["values"], steps["following"], steps["dones"], cfg.gamma, cfg.gae_lambda)
        returns = advantages + steps["values"]  # R = A + V
        # Statistics use only samples that count.
        chosen = slice(None) if valid is None else valid
        quality = float(explained_variance(steps["values"][chosen].flatten(), returns[chosen].flatten()))
        old_outputs = policy.from_rewards(steps["values"])  # before the scale moves: what the critic really put out
        if policy.value_normalizer is not None:
            policy.value_normalizer.update(returns[chosen].flatten())
        if cfg.normalize_advantages:
            advantages = standardize(advantages, valid)
        # Inputs and targets as the networks see them: normalised observations, targets in the critic's units
        learned = {
            "observations": policy.actor_input(steps["observations"]),
            "actions": steps["actions"],
            "log_probs": steps["log_probs"],
            "advantages": advantages,
            "returns": policy.from_rewards(returns),
            "values": old_outputs,
        }
        if "critic_observations" in steps:
            learned["critic_observations"] = policy.critic_input(steps["critic_observations"])
        for name in ("valid", "action_masks"):
            if name in steps:
                learned[name] = steps[name]
        if policy.is_recurrent:
            return self._sequences(learned, storage), quality
        return _single_samples(learned), quality

    def _rewards(self, rewards: Tensor, valid: Tensor | None) -> Tensor:
        """Return the rewards to learn from."""
        return rewards

    def _sequences(self, learned: dict[str, Tensor], storage: RolloutStorage) -> Samples:
        length = self.cfg.sequence_length
        arranged: dict[str, Any] = {name: as_sequences(values, length) for name, values in learned.items()}
        arranged.setdefault("critic_observations", arranged["observations"])
        starts = as_sequences(storage.steps["episode_starts"], length)
        memories = {name: values.flatten(0, 1) for name, values in storage.borders.items()}  # [T/L · N, *state]
        return Samples(**arranged, episode_starts=starts, memories=memories)

    def _update_observation_statistics(self, storage: RolloutStorage) -> None:
        """Update normalisers at the barrier, after the update: the next snapshot is the first to use them."""
        policy, valid = self.policy, storage.steps.get("valid")
        pairs = {"observations": policy.observation_normalizer, "critic_observations": policy.critic_normalizer}
        for name, normalizer in pairs.items():
            if normalizer is None or name not in storage.steps:
                continue
            seen = storage.steps[name]
            if valid is None:
                normalizer.update(seen.flatten(0, 1))
            elif name == "observations":
                normalizer.update(seen[valid])
            else:
                normalizer.update(seen[valid.flatten(2).any(-1) if valid.dim() > 2 else valid])

    def adjust_learning_rate(self, progress: float) -> None:
        """Set the next update's learning rate by the schedule.

        Args:
            progress: The share of training that is done, from 0 to 1; the linear schedule needs it.
        """
        cfg = self.cfg
        if cfg.schedule == "linear":
            self.set_learning_rate(_linear_rate(cfg.learning_rate, progress))
        elif callable(cfg.schedule):
            rate = float(cfg.schedule(progress))
            if not -_ROUNDING <= rate < float("inf"):
                raise ConfigurationError(
                    f"schedule({progress:g}) returned {rate:g}",
                    "a schedule maps the fraction of the run that is done, 0 to 1, to a learning rate of 0 or more",
                    "correct the function",
                )
            self.set_learning_rate(max(0.0, rate))
        elif cfg.schedule == "adaptive" and self._last_kl is not None:
            bounds = cfg.learning_rate_range
            self.set_learning_rate(_adaptive_rate(self.learning_rate, self._last_kl, cfg.desired_kl, bounds))

    def start_schedule(self, progress: float) -> None:
        """Set the learning rate at the start of a call of ``learn``, for schedules that depend on progress alone.

        A run that learns further after its end then does not begin with the rate 0 of that end.
        """
        if self.cfg.schedule == "linear" or callable(self.cfg.schedule):
            self.adjust_learning_rate(progress)

    def set_learning_rate(self, rate: float) -> None:
        """Use a learning rate from the next update on."""
        self.learning_rate = rate
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides the next update: networks, normalisers, optimiser, counters, random stream."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "learning_rate": self.learning_rate,
            "last_kl": self._last_kl,
            "version": self.version,
            "generator": self.generator.get_state(),
        } | ({} if self.reward_scale is None else {"reward_scale": self.reward_scale.state_dict()})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))  # torch would share its tensors
        self.learning_rate = state["learning_rate"]
        self._last_kl = state["last_kl"]
        self.version = state["version"]
        self.generator.set_state(state["generator"].cpu())
        if self.reward_scale is not None and "reward_scale" in state:
            self.reward_scale.load_state_dict(state["reward_scale"])


def _single_samples(learned: dict[str, Tensor]) -> Samples:
    """Flatten time and environments, and leave out samples that no one may learn from."""
    flat: dict[str, Any] = {name: values.flatten(0, 1) for name, values in learned.items()}
    valid = flat.get("valid")
    if valid is not None:
        per_agent = valid.dim() > 1
        rows = (valid.any(-1) if per_agent else valid).nonzero().squeeze(-1)
        flat = {name: values.index_select(0, rows) for name, values in flat.items()}
        if not per_agent:
            del flat["valid"]
    flat.setdefault("critic_observations", flat["observations"])
    return Samples(**flat)


def _linear_rate(initial: float, progress: float) -> float:
    """Return the learning rate on the line from ``initial`` at progress 0 to 0 at progress 1."""
    return initial * max(0.0, 1.0 - progress)


def _adaptive_rate(current: float, kl: float, desired_kl: float, bounds: tuple[float, float]) -> float:
    """Lower the learning rate when the policy moved too far, raise it when it hardly moved.

    Args:
        current: The learning rate of the last update.
        kl: KL(π_old ‖ π_new) that the last update made.
        desired_kl: What to aim at.
        bounds: The smallest and the largest learning rate.
    """
    low, high = bounds
    if kl > desired_kl * _ADAPTIVE_BAND:
        return max(low, current / _ADAPTIVE_FACTOR)
    if kl < desired_kl / _ADAPTIVE_BAND:
        return min(high, current * _ADAPTIVE_FACTOR)
    return current

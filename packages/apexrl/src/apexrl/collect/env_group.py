"""A group of environments that is stepped together, and makes one fragment per rollout: act → step → store.

A group has its own random stream, so what it samples depends on its seed and the policy, never on the process that it
lives in.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from apexrl.algorithms.actor_critic import ActorCritic, PolicySnapshot
from apexrl.envs.multi_agent import MultiAgentVecEnv
from apexrl.envs.vec_env import (
    CHECK_HINT,
    StateNotSupportedError,
    StepFormatError,
    StepOutcome,
    VecEnv,
    check_extras,
    check_observations,
    component_values,
    log_value,
    read_step,
)
from apexrl.storage.rollout import EpisodeTracker, Fragment, StepBuffers, check_finite, not_finite
from apexrl.storage.samples import next_values

logger = logging.getLogger(__name__)

AnyVecEnv = VecEnv | MultiAgentVecEnv

_warned: set[str] = set()
"""Environments that were warned about in this process."""


def derived_seed(*numbers: int) -> int:
    """Return a 31-bit seed made from all numbers, so that streams of different groups and uses are independent."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, so that results do not depend on how many a process has."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class EnvGroup:
    """One batch of environments, the episodes under way in it, and its random stream.

    Args:
        env: The environments.
        env_ids: Their global indices.
        seed: Seed of the run; the group derives its own from it and from its first env id.
    """

    def __init__(self, env: VecEnv | MultiAgentVecEnv, env_ids: range, seed: int) -> None:
        if len(env_ids) != env.num_envs:
            raise ValueError(
                f"env_ids {env_ids} has {len(env_ids)} numbers for {env.num_envs} environments; give one each"
            )
        self.env = env
        self.env_ids = env_ids
        self.seed = seed
        self._name = type(env).__name__
        self.generator: torch.Generator | None = None
        self._is_multi_agent = isinstance(env, MultiAgentVecEnv)
        self._shape = (env.num_envs, env.num_agents) if isinstance(env, MultiAgentVecEnv) else (env.num_envs,)
        self._obs_shape = (*self._shape, *(env.observation_space.shape or ()))
        self._episodes = EpisodeTracker(env.num_envs)
        self._buffers = StepBuffers(0)
        self._now: dict[str, Tensor] = {}
        self._memory: dict[str, Tensor] = {}

    def collect(self, snapshot: PolicySnapshot, num_steps: int, sequence_length: int = 1) -> Fragment:
        """Step the group ``num_steps`` times under a snapshot.

        Args:
            snapshot: The policy; its version goes into the fragment.
            num_steps: T.
            sequence_length: Recurrent policies: how many steps are learned from as one sequence.

        Returns:
            The fragment. Its tensors are valid until the next call.
        """
        with one_thread(), torch.inference_mode():
            self._prepare(snapshot.policy, num_steps)
            return self._collect(snapshot, num_steps, sequence_length)

    def _prepare(self, policy: ActorCritic, num_steps: int) -> None:
        if self._buffers.num_steps != num_steps:
            self._buffers = StepBuffers(num_steps)
        self._buffers.begin()
        if self.generator is None:
            self.generator = torch.Generator(policy.device).manual_seed(derived_seed(self.seed, self.env_ids.start, 1))
        if not self._now:
            self._restart(policy, derived_seed(self.seed, self.env_ids.start, 0))

    def _restart(self, policy: ActorCritic, seed: int) -> None:
        obs, extras = self.env.reset(seed=seed)
        check_extras("reset", extras)
        self._episodes.restart()
        self._memory = policy.initial_memory(self.env.num_envs)
        self._see(policy, obs, extras, torch.ones(self.env.num_envs, dtype=torch.bool, device=policy.device))

    def _see(self, policy: ActorCritic, obs: Tensor, extras: Any, starts: Tensor | None) -> None:  # noqa: ANN401
        """Keep what the environments returned as the input of the next step."""
        if getattr(obs, "shape", None) != self._obs_shape:
            check_observations(obs, self._shape, self.env.observation_space)
        weights = next(policy.actor.parameters())  # looked up once, because this happens at every step
        device, dtype = weights.device, weights.dtype
        now = {"observations": obs.to(device, dtype) if obs.is_floating_point() else obs.to(device)}
        if policy.critic_source is not None:
            if policy.critic_source not in extras:
                raise StepFormatError(
                    f"{self._name} gave no extras[{policy.critic_source!r}]",
                    "the critic sees it, so every reset and every step must give it",
                    f"add it, or leave out {policy.critic_source}_space",
                )
            seen = extras[policy.critic_source]
            now["critic_observations"] = seen.to(device, dtype) if seen.is_floating_point() else seen.to(device)
        if (mask := extras.get("action_mask")) is not None:
            now["action_masks"] = mask.to(device)
        if self._is_multi_agent:
            now["agent_masks"] = extras["agent_mask"].to(device)
        if starts is not None and policy.is_recurrent:
            now["episode_starts"] = starts.to(device)
        self._now = now

    def _collect(self, snapshot: PolicySnapshot, num_steps: int, sequence_length: int) -> Fragment:
        policy, put, step_env = snapshot.policy, self._buffers.put, self.env.step
        finals: list[tuple[int, Tensor, Tensor]] = []
        log: dict[str, list[float]] = {}
        memories: dict[str, list[Tensor]] = {name: [] for name in self._memory}
        env_device = torch.device(self.env.device)  # a text, too
        for t in range(num_steps):
            # Recurrent policies: memories [n, *state] at the start of each sequence.
            if memories and t % sequence_length == 0:
                for name, memory in self._memory.items():
                    memories[name].append(memory.clone())
            now = self._now
            mask = now.get("action_masks")
            for name, values in now.items():
                if values is not mask:
                    put(name, t, values)  # a copy, made before the environment acts
            if mask is not None:
                self._buffers.put_optional("action_masks", t, mask, default=True)
            # Act: head inputs [n, k], then actions [n, *action] from the group's own stream.
            outputs = policy.act(now["observations"], self._memory, now.get("episode_starts"))
            actions = policy.distribution(outputs, mask).sample(self.generator)
            put("outputs", t, outputs)
            put("actions", t, actions)
            if policy.critic.is_recurrent:
                self._step_critic(policy, t)
            # Step all environments, store what happened, and keep what the next step needs.
            obs, rewards, dones, extras = step_env(actions if actions.device == env_device else actions.to(env_device))
            outcome = self._read(t, rewards, dones, extras)
            self._store(policy, t, outcome, extras, finals, log)
            ignored = extras.get("ignore")
            self._see(policy, obs, extras, outcome.dones if ignored is None else outcome.dones | ignored)
        return self._fragment(snapshot, finals, memories, log)

    def _read(self, t: int, rewards: Tensor, dones: Tensor, extras: Any) -> StepOutcome:  # noqa: ANN401
        try:
            return read_step(self._shape, rewards, dones, extras)
        except StepFormatError as error:
            raise StepFormatError(
                f"step {t} of the rollout, environments {self.env_ids.start} to {self.env_ids.stop - 1}: {error.got}",
                error.expected,
                error.hint,
            ) from error

    def _step_critic(self, policy: ActorCritic, step: int) -> None:
        seen = self._now.get("critic_observations", self._now["observations"])
        value, self._memory["critic"] = policy.value_step(seen, self._memory["critic"], self._now["episode_starts"])
        self._buffers.put("values", step, value)

    def _store(
        self,
        policy: ActorCritic,
        t: int,
        outcome: StepOutcome,
        extras: Any,  # noqa: ANN401 - of one or of several agents
        finals: list[tuple[int, Tensor, Tensor]],
        log: dict[str, list[float]],
    ) -> None:
        """Store what the fragment needs of a step."""
        put, put_optional = self._buffers.put, self._buffers.put_optional
        put("rewards", t, outcome.rewards)
        put("dones", t, outcome.dones)
        put("terminated", t, outcome.terminated)
        put("time_outs", t, outcome.time_outs)
        for name in ("ignore", "agent_terminated", "agent_truncated"):
            if (flags := extras.get(name)) is not None:
                put_optional(name, t, flags, default=False)
        if (successes := extras.get("success")) is not None:
            put_optional("successes", t, torch.as_tensor(successes).to(outcome.rewards.dtype), default=float("nan"))
        key = "final_observation" if policy.critic_source is None else f"final_{policy.critic_source}"
        if key in extras:
            rows = outcome.time_outs.nonzero().squeeze(-1)
            if len(rows):
                finals.append((t, rows, self._final_values(policy, extras[key], rows)))
        for name, part in (extras.get("reward_components") or {}).items():
            put_optional(f"part/{name}", t, component_values(name, part, self._shape), default=0.0)
        for name, value in (extras.get("log") or {}).items():
            log.setdefault(name, []).append(log_value(name, value))

    def _final_values(self, policy: ActorCritic, final: Tensor, rows: Tensor) -> Tensor:
        """Return V of final observations; for critics without memory the observations, valued together later."""
        if len(final) != self.env.num_envs:
            raise StepFormatError(
                f"{self._name} returned a final observation of shape {list(final.shape)}",
                f"it must have {self.env.num_envs} rows, of which those with dones count",
                CHECK_HINT,
            )
        final = final.to(policy.device)
        if final.is_floating_point():
            final = final.to(policy.dtype)
        if not policy.critic.is_recurrent:
            return final[rows]
        no_starts = torch.zeros(self.env.num_envs, dtype=torch.bool, device=policy.device)
        return policy.value_step(final, self._memory["critic"], no_starts)[0][rows]

    def _fragment(
        self,
        snapshot: PolicySnapshot,
        finals: list[tuple[int, Tensor, Tensor]],
        memories: dict[str, list[Tensor]],
        log: dict[str, list[float]],
    ) -> Fragment:
        policy = snapshot.policy
        fields = self._buffers.take(self._required(policy))
        checked = ("observations", "critic_observations", "rewards", "outputs")
        check_finite({name: fields[name] for name in checked if name in fields}, self.env_ids, self._name)
        # log π(a|s) of all steps at once [T, n] (or [T, n, agents])
        outputs = fields.pop("outputs")
        masks = fields.get("action_masks")
        fields["log_probs"] = policy.distribution(outputs, masks).log_prob(fields["actions"])
        # V(s_t) [T, n, ...], V(s_T) [n, ...], and V of what came after each step [T, n, ...]
        last = self._value_all(policy, fields)
        terminated, time_outs, dones = self._borders_of(fields)
        final_values = self._spread_finals(policy, fields["values"], finals, time_outs)
        fields["following"] = next_values(fields["values"], last, terminated, final_values[1], final_values[0])
        self._check_following(fields["following"], fields["dones"])
        # Episodes that ended here: team rewards and reward components, both [T, n]
        valid, counted = self._validity(fields)
        parts = [name for name in fields if name.startswith("part/")]
        episodes = self._episodes.advance(
            _team(fields["rewards"], valid),
            fields["dones"],
            counted,
            {name[5:]: (_team(fields.pop(name), valid), self._buffers.brought(name)) for name in parts},
            fields.pop("successes", None),
        )
        fields["dones"] = dones
        if valid is not None:
            fields["valid"] = valid
        with torch.inference_mode(False):  # autograd refuses to save tensors that were made in inference mode
            steps = {name: value.clone() if value.is_inference() else value for name, value in fields.items()}
            borders = {name: torch.stack(parts).clone() for name, parts in memories.items()}
        return Fragment(
            policy_version=snapshot.version,
            env_ids=self.env_ids,
            steps=steps,
            borders=borders,
            episodes=episodes,
            log={name: sum(values) / len(values) for name, values in log.items()},
            log_counts={name: len(values) for name, values in log.items()},
        )

    def _required(self, policy: ActorCritic) -> tuple[str, ...]:
        """Return the names of the fields that every step brings."""
        names = ["outputs", "actions", "rewards", "dones", "terminated", "time_outs", *self._now]
        if policy.critic.is_recurrent:
            names.append("values")
        return tuple(name for name in names if name != "action_masks")

    def _check_following(self, following: Tensor, dones: Tensor) -> None:
        """Refuse values of what came after a step that are not finite: the last or a final observation is to blame."""
        if not bool(torch.isfinite(following).all()):
            t, env = (~torch.isfinite(following)).nonzero()[0, :2].tolist()
            is_end = bool(dones[t, env])
            name, step = ("final_observation", t) if is_end else ("observations", t + 1)
            values = following[t, env] if is_end else self._now["observations"][env]
            raise not_finite(name, self.env_ids[env], step, values, self._name)

    def _value_all(self, policy: ActorCritic, fields: dict[str, Tensor]) -> Tensor:
        """Fill in V of every step and return V of the observation after the last one."""
        now = self._now.get("critic_observations", self._now["observations"])
        if policy.critic.is_recurrent:  # the steps were valued on the way, because each needs the memory of its time
            return policy.value_step(now, self._memory["critic"], self._now["episode_starts"])[0]
        seen = fields.get("critic_observations", fields["observations"])
        together = torch.cat((seen.flatten(0, 1), now))  # one pass for all steps: T·n + n rows
        values = policy.value(together)
        steps, envs = seen.shape[:2]
        fields["values"] = values[: steps * envs].view(steps, envs, *values.shape[1:])
        return values[steps * envs :]

    def _borders_of(self, fields: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return terminations, time-outs and dones per sample: per environment, or per environment and agent."""
        terminated, time_outs, dones = fields.pop("terminated"), fields.pop("time_outs"), fields["dones"]
        if not self._is_multi_agent:
            return terminated, time_outs, dones
        own_end = fields.pop("agent_terminated", torch.zeros_like(fields["rewards"], dtype=torch.bool))
        own_cut = fields.pop("agent_truncated", torch.zeros_like(own_end))
        terminated = terminated.unsqueeze(-1) | own_end
        return terminated, time_outs.unsqueeze(-1) & ~own_end, dones.unsqueeze(-1) | own_end | own_cut

    def _spread_finals(
        self, policy: ActorCritic, values: Tensor, finals: list[tuple[int, Tensor, Tensor]], time_outs: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute V of final observations at their steps ``[T, n, ...]``, and the mask of these steps."""
        spread = torch.zeros_like(values)
        cut = time_outs.flatten(2).any(-1) if time_outs.dim() > 2 else time_outs
        if sum(len(rows) for _, rows, _ in finals) < int(cut.sum()):
            self._warn_without_finals()
            spread = values.clone()  # V(s_t) where the final observation is not known, as rsl_rl does
        if finals:
            known = torch.cat([final for _, _, final in finals])
            if not policy.critic.is_recurrent:
                known = policy.value(known)
            times = torch.cat([torch.full_like(rows, t) for t, rows, _ in finals])
            spread[times, torch.cat([rows for _, rows, _ in finals])] = known
        return spread, time_outs.expand_as(values)

    def _warn_without_finals(self) -> None:
        if self._name not in _warned:
            _warned.add(self._name)
            logger.warning(
                "%s reports time-outs without extras['final_observation']: their value is estimated by that of the "
                "observation before; return the true last observation with every done to be exact",
                self._name,
            )

    def _validity(self, fields: dict[str, Tensor]) -> tuple[Tensor | None, Tensor | None]:
        """Return which samples may be learned from, and which steps count towards an episode."""
        ignore = fields.pop("ignore", None)
        counted = None if ignore is None else ~ignore
        present = fields.pop("agent_masks", None)
        if present is None or counted is None:
            return (counted if present is None else present), counted
        return present & counted.unsqueeze(-1), counted

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides the next steps; the environments' part is None if they cannot give it."""
        try:
            env_state = self.env.state_dict()
        except StateNotSupportedError:
            env_state = None
        return {
            "env": env_state,
            "generator": None if self.generator is None else self.generator.get_state(),
            "episodes": self._episodes.state_dict(),
            "now": {name: values.clone() for name, values in self._now.items()},
            "memory": {name: values.clone() for name, values in self._memory.items()},
        }

    def load_state_dict(self, state: dict[str, Any], policy: ActorCritic, version: int) -> bool:
        """Restore a state; environments that cannot restore theirs start fresh episodes.

        Args:
            state: What :meth:`state_dict` gave.
            policy: The current policy, for fresh memories.
            version: Its version, which fresh episodes are seeded with.

        Returns:
            Whether the group continues exactly.
        """
        if state["generator"] is not None:
            self.generator = torch.Generator(policy.device)
            self.generator.set_state(state["generator"].cpu())
        if not state["now"]:
            return True  # nothing had been collected yet
        if state["env"] is None:
            with torch.inference_mode():
                self._restart(policy, derived_seed(self.seed, self.env_ids.start, 2, version))
            return False
        self.env.load_state_dict(state["env"])
        self._episodes.load_state_dict(state["episodes"])
        self._now = {name: values.to(policy.device) for name, values in state["now"].items()}
        self._memory = {name: values.to(policy.device) for name, values in state["memory"].items()}
        return True

    def close(self) -> None:
        """Close the environments."""
        self.env.close()


class InlineGroups:
    """Groups that live in this process.

    Args:
        envs: One batch of environments per group.
        seed: Seed of the run.
    """

    def __init__(self, envs: Sequence[AnyVecEnv], seed: int) -> None:
        ranges = consecutive_ranges([env.num_envs for env in envs])
        self.groups = [EnvGroup(env, ids, seed) for env, ids in zip(envs, ranges, strict=True)]

    @property
    def num_envs(self) -> int:
        """Environments in all groups."""
        return sum(len(group.env_ids) for group in self.groups)

    def collect(self, snapshot: PolicySnapshot, num_steps: int, sequence_length: int) -> list[Fragment]:
        """Collect one fragment per group, one after the other."""
        return [group.collect(snapshot, num_steps, sequence_length) for group in self.groups]

    def state_dicts(self) -> list[dict[str, Any]]:
        """Return the state of each group."""
        return [group.state_dict() for group in self.groups]

    def load_state_dicts(self, states: Sequence[dict[str, Any]], snapshot: PolicySnapshot) -> bool:
        """Restore states; return whether every group continues exactly."""
        loaded = [
            group.load_state_dict(state, snapshot.policy, snapshot.version)
            for group, state in zip(self.groups, states, strict=True)
        ]
        return all(loaded)

    def close(self) -> None:
        """Close the environments."""
        for group in self.groups:
            group.close()


def consecutive_ranges(sizes: Sequence[int]) -> list[range]:
    """Return the global env indices of groups with these sizes, one range after the other."""
    stops = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    return [range(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]


def _team(values: Tensor, valid: Tensor | None) -> Tensor:
    """Return per-agent values as the mean over present agents ``[T, n]``; per-environment values as they are."""
    if values.dim() == 2:
        return values
    if valid is None:
        return values.mean(-1)
    return (values * valid).sum(-1) / valid.sum(-1).clamp(min=1)

"""Recorded rollouts for the environment checker: the same actions, seeds and copies every time."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from apexrl.envs.multi_agent import MultiAgentVecEnv
from apexrl.envs.vec_env import VecEnv

AnyEnv = VecEnv | MultiAgentVecEnv


def lead_shape(env: AnyEnv) -> tuple[int, ...]:
    """Return ``(num_envs,)``, or ``(num_envs, num_agents)`` with agents."""
    return (env.num_envs, env.num_agents) if isinstance(env, MultiAgentVecEnv) else (env.num_envs,)


def _tensors_of(value: object, name: str) -> list[tuple[str, Tensor]]:
    """Return all tensors in nested dicts, with their names."""
    if isinstance(value, Tensor):
        return [(name, value)]
    if isinstance(value, dict):
        return [pair for key, item in value.items() for pair in _tensors_of(item, f"{name}[{key!r}]")]
    return []


class ActionSource:
    """Random legal actions that depend on a seed and on the action mask only.

    Args:
        env: The environment.
        seed: Equal seeds give equal actions for equal masks.
        other_seed_for_row: (row, seed): this row draws from a stream of its own.
    """

    def __init__(self, env: AnyEnv, seed: int, other_seed_for_row: tuple[int, int] | None = None) -> None:
        self._env = env
        self._lead = lead_shape(env)
        self._main = torch.Generator().manual_seed(seed)
        self._row = None if other_seed_for_row is None else other_seed_for_row[0]
        if other_seed_for_row is not None:
            self._other = torch.Generator().manual_seed(other_seed_for_row[1])

    def __call__(self, mask: Tensor | None) -> Tensor:
        """Return actions ``[num_envs, *action]`` on the environment's device."""
        space = self._env.action_space
        width = int(np.prod(space.shape or ()))
        uniform = torch.rand(*self._lead, width, generator=self._main)
        if self._row is not None:
            uniform[self._row] = torch.rand(*self._lead[1:], width, generator=self._other)
        return self._to_actions(uniform, space, mask).to(self._env.device)

    def _to_actions(self, uniform: Tensor, space: spaces.Space[Any], mask: Tensor | None) -> Tensor:
        if isinstance(space, spaces.Box):
            low = torch.as_tensor(np.clip(space.low, -1e3, 1e3).ravel(), dtype=torch.float32)
            high = torch.as_tensor(np.clip(space.high, -1e3, 1e3).ravel(), dtype=torch.float32)
            return (low + uniform * (high - low)).reshape(*self._lead, *space.shape)
        if isinstance(space, spaces.Discrete):
            legal = torch.ones(*self._lead, int(space.n), dtype=torch.bool) if mask is None else mask.cpu()
            return _pick_legal(uniform.squeeze(-1), legal)
        if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
            width = uniform.shape[-1]
            sizes = space.nvec.ravel().tolist() if isinstance(space, spaces.MultiDiscrete) else [2] * width
            if mask is None:
                mask = torch.ones(*self._lead, sum(sizes), dtype=torch.bool)
            parts = torch.split(mask.cpu(), sizes, dim=-1)
            return torch.stack([_pick_legal(uniform[..., i], part) for i, part in enumerate(parts)], dim=-1)
        raise TypeError(f"The checker cannot draw actions from {space}.")


def _pick_legal(uniform: Tensor, legal: Tensor) -> Tensor:
    """Return the ⌊u·count⌋-th legal action of each row."""
    count = legal.sum(-1)
    rank = (uniform * count).long().clamp(max=(count - 1).clamp(min=0)) + 1
    return (legal.cumsum(-1) == rank.unsqueeze(-1)).float().argmax(-1)


@dataclass
class Trace:
    """What a rollout returned: `live` are the tensors themselves, the rest are copies taken at once."""

    obs: list[Tensor] = field(default_factory=list)
    rewards: list[Tensor] = field(default_factory=list)
    dones: list[Tensor] = field(default_factory=list)
    extras: list[dict[str, Any]] = field(default_factory=list)
    live: list[list[tuple[str, Tensor]]] = field(default_factory=list)
    copies: list[list[Tensor]] = field(default_factory=list)

    def _keep(self, step: int, returned: dict[str, Any]) -> None:
        named = [pair for name, value in returned.items() for pair in _tensors_of(value, f"{name} of step {step}")]
        self.live.append(named)
        self.copies.append([tensor.clone() for _, tensor in named])

    def record(self, step: int, obs: Tensor, extras: dict[str, Any], result: tuple[Tensor, Tensor] | None) -> None:
        """Keep one call's results; `result` is (rewards, dones), or None after reset."""
        returned: dict[str, Any] = {"observation": obs, "extras": extras}
        if result is not None:
            returned |= {"rewards": result[0], "dones": result[1]}
            self.rewards.append(_copy_nested(result[0]))
            self.dones.append(_copy_nested(result[1]))
        self._keep(step, returned)
        self.obs.append(_copy_nested(obs))
        self.extras.append(_copy_nested(extras))

    def first_done(self) -> int:
        """Return the number of steps before the first done anywhere."""
        return next((t for t, done in enumerate(self.dones) if bool(done.any())), len(self.dones))


def _copy_nested(value: Any) -> Any:  # noqa: ANN401 - extras nest dicts and tensors
    if isinstance(value, dict):
        return {key: _copy_nested(item) for key, item in value.items()}
    return value.clone() if isinstance(value, Tensor) else value


def run(env: AnyEnv, source: ActionSource, steps: int, seed: int | None, *, scribble: bool = False) -> Trace:
    """Reset with a seed (None: continue the random streams), then step.

    Args:
        env: The environment.
        source: Where actions come from.
        steps: Number of steps.
        seed: Seed of the reset.
        scribble: Overwrite every returned tensor and every passed action after use; a correct env does not
            notice.
    """
    trace = Trace()
    obs, extras = env.reset(seed=seed)
    trace.record(0, obs, dict(extras), None)
    continue_run(env, source, steps, trace, scribble=scribble)
    return trace


def continue_run(env: AnyEnv, source: ActionSource, steps: int, trace: Trace, *, scribble: bool = False) -> None:
    """Continue from the trace's last record."""
    for step in range(1, steps + 1):
        mask = trace.extras[-1].get("action_mask")
        if scribble:
            for _, tensor in trace.live[-1]:
                tensor.copy_(torch.ones_like(tensor))
        actions = source(mask)
        obs, rewards, dones, extras = env.step(actions)
        trace.record(step, obs, dict(extras), (rewards, dones))
        if scribble:
            actions.zero_()


def first_difference(a: Trace, b: Trace, steps: int | None = None, rows: slice = slice(None)) -> str | None:
    """Return where two traces differ in observations, rewards or dones of the first `steps` steps; None if nowhere."""
    limit = len(a.dones) if steps is None else steps
    for t in range(limit + 1):
        if not torch.equal(a.obs[t][rows], b.obs[t][rows]):
            return f"observation of step {t}"
        if t < limit and not torch.equal(a.rewards[t][rows], b.rewards[t][rows]):
            return f"reward of step {t + 1}"
        if t < limit and not torch.equal(a.dones[t][rows], b.dones[t][rows]):
            return f"done of step {t + 1}"
    return None

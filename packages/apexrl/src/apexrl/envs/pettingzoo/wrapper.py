"""PettingZoo parallel environments as `MultiAgentVecEnv`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from apexrl.arrays import Array, Bools, Floats32
from apexrl.envs.multi_agent import MultiAgentExtras, MultiAgentVecEnv
from apexrl.envs.pettingzoo.spaces import AgentActions, AgentObservations, ParallelEnv, refuse_other_apis
from apexrl.envs.snapshot import capture, restore
from apexrl.envs.vec_env import Opaque, StateDict, StepFormatError, outline, refuse_shared
from apexrl.runs.errors import SchemaMismatchError

StateFn = Callable[[Any], Array]

_RESET = ("observations", "infos")
_STEP = ("observations", "rewards", "terminations", "truncations", "infos")


class PettingZooVecEnv(MultiAgentVecEnv):
    """A batch of PettingZoo parallel environments with one padded agent axis.

    Agents that have left, or have not come yet, are False in ``agent_mask``, with zeros in their rows.
    Observations of different lengths are padded with zeros; Discrete action spaces of different sizes are
    padded and masked. An action mask comes from ``info["action_mask"]`` or from observations of the form
    ``{"observation": …, "action_mask": …}``.

    Args:
        env_fns: One function per environment that makes it.
        device: Device of the returned tensors.
        agent_ids: Append a one-hot agent number to each observation, so that a shared actor can tell roles
            apart.
        state_fn: Global state of an environment as an array. None takes the environment's own ``state()`` if
            it has one, otherwise all agents' observations one after the other.
        flat: Make a vector of every observation and of the state, whatever their shapes.
        max_steps: Cut an episode off after this many steps, whatever limit the environment itself has: all agents
            still present are truncated, with their true last observations. None leaves it to the environment.

    Raises:
        NotAnEnvError: If a function returns something else, such as an AEC environment.
        SharedEnvError: If two functions return one and the same environment.
        StepFormatError: If ``reset`` or ``step`` of an environment returns something else than PettingZoo's dicts by
            agent, or no number as the reward of an agent that acted; also by :meth:`reset` and :meth:`step`.
        UnsupportedSpacesError: If the action spaces are not all Discrete or all one-dimensional Boxes, or an
            observation has no fixed number of entries.
        ObservationMismatchError: If an observation is not of the space that the environment declares; also by
            :meth:`reset` and :meth:`step`.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], ParallelEnv]],
        device: torch.device | str = "cpu",
        *,
        agent_ids: bool = False,
        state_fn: StateFn | None = None,
        flat: bool = False,
        max_steps: int | None = None,
    ) -> None:
        if len(env_fns) == 0:
            raise ValueError("env_fns is empty: give at least one function that makes an environment.")
        if max_steps is not None and max_steps < 1:
            raise ValueError(f"max_steps={max_steps} must be at least 1, or None for no limit.")
        self.envs = [env_fn() for env_fn in env_fns]
        for index, env in enumerate(self.envs):
            refuse_other_apis(index, env)
        refuse_shared(self.envs, "make a new environment in every call of the function")
        first = self.envs[0]
        self.device = torch.device(device)
        self.num_envs = len(self.envs)
        self.agent_names = list(first.possible_agents)
        self.num_agents = len(self.agent_names)
        self._index = {name: i for i, name in enumerate(self.agent_names)}
        self._observations = AgentObservations(first, self.agent_names, agent_ids=agent_ids, flat=flat)
        self._actions = AgentActions(first, self.agent_names)
        self.observation_space = self._observations.space
        self.action_space = self._actions.space
        self._state_fn = state_fn or (_own_state if _has_own_state(first) else None)
        self._has_mask = self._actions.needs_mask
        self._flat = flat
        self._max_steps = max_steps
        self._steps = np.zeros(self.num_envs, np.int64)
        self._state_shape: tuple[int, ...] | None = None
        self.state_space = self._find_state_space()

    def _find_state_space(self) -> spaces.Box:
        """Reset the first env once to learn the state's shape and whether agents give action masks."""
        observations, infos = self._reset_one(0)
        batch = _Batch(self)
        self._write_current(batch, 0, observations, infos)
        self._has_mask = self._has_mask or batch.saw_mask
        state = self._state_of(self.envs[0], batch.obs[0])
        self._state_shape = state.shape
        return spaces.Box(-np.inf, np.inf, state.shape, np.float32)

    def _state_of(self, env: ParallelEnv, rows: Floats32) -> Floats32:
        if self._state_fn is None:
            return rows.reshape(-1).copy()
        state = np.array(self._state_fn(env), np.float32)
        return state.reshape(-1) if self._flat else state

    def reset(self, seed: int | None = None) -> tuple[Tensor, MultiAgentExtras]:
        """Start a new episode everywhere; environment i is seeded with ``seed + i``."""
        batch = _Batch(self)
        self._steps[:] = 0
        for i, env in enumerate(self.envs):
            observations, infos = self._reset_one(i, seed=None if seed is None else seed + i)
            self._write_current(batch, i, observations, infos)
            batch.state[i] = self._state_of(env, batch.obs[i])
        return self._tensor(batch.obs), self._current_extras(batch)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, MultiAgentExtras]:
        """Step every environment; see `MultiAgentVecEnv.step`."""
        batch = _Batch(self)
        rows = self._actions.check(actions, self.num_envs)
        for i, env in enumerate(self.envs):
            self._step_one(batch, i, env, rows[i])
        dones = batch.terminated | batch.truncated
        time_outs = self._tensor(batch.truncated)
        extras = self._current_extras(batch)
        extras["terminated"] = self._tensor(batch.terminated)
        extras["truncated"] = extras["time_outs"] = time_outs
        extras["agent_terminated"] = self._tensor(batch.agent_terminated)
        extras["agent_truncated"] = self._tensor(batch.agent_truncated)
        if batch.agent_terminated.any() or batch.agent_truncated.any() or dones.any():
            extras["final_observation"] = self._tensor(batch.final_obs)
            extras["final_state"] = self._tensor(batch.final_state)
            extras["final_agent_mask"] = self._tensor(batch.final_mask)
        return self._tensor(batch.obs), self._tensor(batch.rewards), self._tensor(dones), extras

    def _step_one(self, batch: "_Batch", i: int, env: ParallelEnv, row: Array) -> None:
        acting = list(env.agents)
        if not acting:
            raise RuntimeError(f"Environment {i} has no agents to act. Call reset() before step().")
        chosen = {name: self._actions.single(name, row[self._index[name]]) for name in acting}
        returned = env.step(chosen)
        observations, rewards, terminations, truncations, infos = self._dicts(i, "step", returned, _STEP)
        for name in acting:
            k = self._index[name]
            try:
                batch.rewards[i, k] = rewards[name]
            except (KeyError, TypeError, ValueError) as error:
                raise self._bad_reward(i, name, rewards) from error
            batch.agent_terminated[i, k] = terminations.get(name, False)
            batch.agent_truncated[i, k] = truncations.get(name, False) and not terminations.get(name, False)
        self._steps[i] += 1
        is_late = self._max_steps is not None and bool(self._steps[i] >= self._max_steps)
        is_cut_off = is_late and bool(env.agents)
        if is_cut_off:
            present = [self._index[name] for name in acting if name in env.agents]
            batch.agent_truncated[i, present] = ~batch.agent_terminated[i, present]
        ended = batch.agent_terminated[i] | batch.agent_truncated[i]
        if ended.any() or is_cut_off:
            self._write_final(batch, i, observations, ended)
        if is_cut_off or not env.agents:
            batch.truncated[i] = is_cut_off or batch.agent_truncated[i].any()
            batch.terminated[i] = not batch.truncated[i]
            batch.final_state[i] = self._state_of(env, batch.final_obs[i])
            self._steps[i] = 0
            observations, infos = self._reset_one(i)
        self._write_current(batch, i, observations, infos)
        batch.state[i] = self._state_of(env, batch.obs[i])

    def _reset_one(self, i: int, **options: Any) -> Sequence[dict[str, Any]]:  # noqa: ANN401 - those of ParallelEnv.reset
        """Start an episode in environment i; return observations and infos."""
        return self._dicts(i, "reset", self.envs[i].reset(**options), _RESET)

    def _dicts(self, i: int, method: str, returned: Opaque, names: tuple[str, ...]) -> Sequence[dict[str, Any]]:
        """Return what a method of environment i returned, if it is PettingZoo's dicts by agent."""
        is_sequence = isinstance(returned, tuple | list) and len(returned) == len(names)
        if is_sequence and all(isinstance(part, dict) for part in returned):
            return returned  # type: ignore[no-any-return]  # the line above knows
        raise StepFormatError(
            f"environment {i} ({type(self.envs[i]).__name__}): {method}() returned {outline(returned)}",
            f"it must return {len(names)} dicts by agent: {', '.join(names)}",
            f"correct what its {method}() returns",
        )

    def _bad_reward(self, i: int, name: str, rewards: dict[str, Opaque]) -> StepFormatError:
        """Say which reward of environment i is missing, or is no number."""
        got = f"the reward {rewards[name]!r}" if name in rewards else "no reward"
        return StepFormatError(
            f"environment {i} ({type(self.envs[i]).__name__}): step() returned {got} for agent {name!r}",
            "every agent that acted has a reward, and it is one number",
            "correct the rewards that its step() returns; 0.0 stands for no reward",
        )

    def _write_final(self, batch: "_Batch", i: int, observations: dict[str, Opaque], ended: Bools) -> None:
        for name, observation in observations.items():
            k = self._index[name]
            batch.final_obs[i, k] = self._observations.single(name, observation)
            batch.final_mask[i, k] = True
        missing = ended & ~batch.final_mask[i]
        if missing.any():
            names = [self.agent_names[k] for k in np.nonzero(missing)[0]]
            raise ValueError(
                f"Agents {names} of environment {i} ended without a last observation. A parallel "
                "environment must return an observation for every agent that acted."
            )

    def _write_current(
        self, batch: "_Batch", i: int, observations: dict[str, Opaque], infos: dict[str, dict[str, Any]]
    ) -> None:
        for name in self.envs[i].agents:
            k, observation = self._index[name], observations[name]
            batch.obs[i, k] = self._observations.single(name, observation)
            batch.mask[i, k] = True
            legal = self._actions.legal(name, observation, infos.get(name, {}))
            if legal is not None:
                batch.saw_mask = True
                batch.action_mask[i, k] = legal

    def _current_extras(self, batch: "_Batch") -> MultiAgentExtras:
        extras: MultiAgentExtras = {
            "state": self._tensor(batch.state),
            "agent_mask": self._tensor(batch.mask),
        }
        if self._has_mask:
            extras["action_mask"] = self._tensor(batch.action_mask)
        return extras

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    def state_dict(self) -> StateDict:
        """Return snapshots of all environments (see `apexrl.envs.snapshot`) and the steps of the episodes under way."""
        return {"snapshots": [capture(env) for env in self.envs], "steps": torch.from_numpy(self._steps.copy())}

    def load_state_dict(self, state: StateDict) -> None:
        """Continue from snapshots of environments that were built in the same way.

        Raises:
            SchemaMismatchError: A time limit is to be kept, but the state does not say how far its episodes are.
        """
        snapshots = state["snapshots"]
        if len(snapshots) != self.num_envs:
            raise ValueError(f"The state holds {len(snapshots)} environments, this batch has {self.num_envs}.")
        if "steps" in state:
            self._steps = state["steps"].numpy(force=True).copy()
        elif self._max_steps is not None:
            raise SchemaMismatchError(
                "the captured environments do not say how many steps their episodes have made",
                f"the time limit of {self._max_steps} steps needs them to resume exactly",
                "train from the start, or resume with the version that wrote the checkpoint",
            )
        for env, snapshot in zip(self.envs, snapshots, strict=True):
            env.reset()
            restore(env, snapshot)

    def close(self) -> None:
        """Close all environments."""
        for env in self.envs:
            env.close()


class _Batch:
    """Fresh arrays of one step, so that nothing that was returned changes later."""

    def __init__(self, env: PettingZooVecEnv) -> None:
        n, a = env.num_envs, env.num_agents
        obs_shape = env.observation_space.shape or ()
        state_shape = env._state_shape or ()
        self.obs = np.zeros((n, a, *obs_shape), np.float32)
        self.final_obs = np.zeros_like(self.obs)
        self.state = np.zeros((n, *state_shape), np.float32)
        self.final_state = np.zeros_like(self.state)
        self.rewards = np.zeros((n, a), np.float32)
        self.mask = np.zeros((n, a), np.bool_)
        self.final_mask = np.zeros_like(self.mask)
        self.agent_terminated = np.zeros_like(self.mask)
        self.agent_truncated = np.zeros_like(self.mask)
        self.terminated = np.zeros(n, np.bool_)
        self.truncated = np.zeros(n, np.bool_)
        self.action_mask = env._actions.full_mask(n)
        self.saw_mask = False


def _has_own_state(env: ParallelEnv) -> bool:
    space = getattr(env, "state_space", None)
    return isinstance(space, spaces.Box)


def _own_state(env: ParallelEnv) -> Array:
    return env.state()

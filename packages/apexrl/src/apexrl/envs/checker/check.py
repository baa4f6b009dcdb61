"""`check_env` finds mistakes that training shows only as a policy that does not learn.

Run it once on a new environment::

    from apexrl import check_env
    check_env(MyVecEnv(num_envs=4))  # raises EnvCheckError with the list of problems
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Literal

import torch
from gymnasium import spaces
from torch import Tensor

from apexrl.envs.checker.traces import (
    ActionSource,
    AnyEnv,
    Trace,
    continue_run,
    first_difference,
    lead_shape,
    run,
)
from apexrl.envs.coercion import as_vec_env
from apexrl.envs.multi_agent import MultiAgentVecEnv
from apexrl.envs.vec_env import EnvBatch, Opaque, StepFormatError, log_value, outline, read_step

Severity = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One finding.

    Attributes:
        check: Name of the check, such as ``"aliasing"``.
        severity: An error breaks learning; a warning may be meant.
        message: What was seen and how to fix it.
    """

    check: str
    severity: Severity
    message: str


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """What `check_env` found."""

    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that break learning."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def is_ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    def __str__(self) -> str:
        if not self.problems:
            return "No problems found."
        return "\n".join(f"{problem.severity}: {problem.check}: {problem.message}" for problem in self.problems)


class EnvCheckError(RuntimeError):
    """An environment breaks the contract.

    Attributes:
        report: All findings.
    """

    def __init__(self, report: CheckReport) -> None:
        super().__init__(f"The environment breaks the contract in {len(report.errors)} way(s):\n{report}")
        self.report = report


def check_env(env: Opaque, *, num_steps: int = 200, seed: int = 0, raise_on_error: bool = True) -> CheckReport:
    """Drive an environment with random legal actions and verify its contract.

    The environment is reset several times and is left in the middle of an episode: check an instance of its
    own.

    Args:
        env: The environment, or what stands for one, such as ``gym.make(…)``; see `apexrl.as_vec_env`.
        num_steps: Length of each rollout; long enough to see episodes end.
        seed: Seed of actions and resets.
        raise_on_error: Raise if something is wrong; otherwise only report.

    Returns:
        The findings.

    Raises:
        EnvCheckError: If there are errors and `raise_on_error` is set.
    """
    env = env if isinstance(env, EnvBatch) else as_vec_env(env)
    problems = list(_declared(env)) or list(_returned(env, seed))
    if not problems:
        trace = run(env, ActionSource(env, seed), num_steps, seed)
        problems = list(_forms(env, trace))
        is_readable = not any(problem.severity == "error" for problem in problems)
        if is_readable:
            problems += _finite(trace)
        if is_readable and not any(problem.severity == "error" for problem in problems):
            behaviour: tuple[Callable[[AnyEnv, Trace, int], Iterator[Problem]], ...]
            behaviour = (_aliasing, _bounds, _endings, _observations_move, _seeding, _actions_matter, _state)
            problems += [problem for check in behaviour for problem in check(env, trace, seed)]
    report = CheckReport(problems=tuple(problems))
    if raise_on_error and not report.is_ok:
        raise EnvCheckError(report)
    return report


def _error(check: str, message: str) -> Problem:
    return Problem(check=check, severity="error", message=message)


def _warning(check: str, message: str) -> Problem:
    return Problem(check=check, severity="warning", message=message)


def _declared(env: AnyEnv) -> Iterator[Problem]:
    """Check the attributes that everything else relies on."""
    names = ["num_envs", "device", "observation_space", "action_space"]
    if isinstance(env, MultiAgentVecEnv):
        names += ["num_agents", "agent_names", "state_space"]
    for name in names:
        if not hasattr(env, name):
            yield _error("attributes", f"{name} is missing; set it in the constructor.")
    if not isinstance(getattr(env, "num_envs", 1), int) or getattr(env, "num_envs", 1) < 1:
        yield _error("attributes", f"num_envs must be a positive int, got {env.num_envs!r}.")
    if not isinstance(getattr(env, "device", "cpu"), torch.device | str):
        yield _error("attributes", f"device must be a torch.device, got {env.device!r}.")
    for name in ("observation_space", "action_space"):
        space = getattr(env, name, None)
        if space is not None and (not isinstance(space, spaces.Space) or space.shape is None):
            yield _error("attributes", f"{name} must be a Gymnasium space with one shape, got {space!r}.")


def _returned(env: AnyEnv, seed: int) -> Iterator[Problem]:
    """Check that `reset` takes a seed, and that what it and `step` return can be taken apart."""
    arguments = signature(env.reset).parameters.values()
    if not any(one.name == "seed" or one.kind is Parameter.VAR_KEYWORD for one in arguments):
        yield _error("types", "reset() takes no seed; write reset(self, seed=None) and use it.")
        return
    first: Any = env.reset(seed=seed)
    if not _is_result(first, 2):
        yield _error(
            "types", f"reset() must return (observations, extras) with a dict of extras, got {outline(first)}."
        )
        return
    second: Any = env.step(ActionSource(env, seed)(first[1].get("action_mask")))
    if not _is_result(second, 4):
        yield _error(
            "types",
            "step() must return (observations, rewards, dones, extras) with a dict of extras, and time limits in "
            f"extras['time_outs'], got {outline(second)}.",
        )


def _is_result(returned: object, length: int) -> bool:
    return isinstance(returned, tuple) and len(returned) == length and isinstance(returned[-1], dict)


def _expect(name: str, value: object, shape: tuple[int, ...], dtype: torch.dtype | None) -> Iterator[Problem]:
    if not isinstance(value, Tensor):
        yield _error("types", f"{name} must be a tensor, got {type(value).__name__}.")
        return
    if tuple(value.shape) != shape:
        yield _error("shapes", f"{name} must have shape {list(shape)}, got {list(value.shape)}.")
    if dtype is not None and value.dtype != dtype:
        yield _error("dtypes", f"{name} must be {dtype}, got {value.dtype}.")


def _expect_readable(name: str, value: object, shape: tuple[int, ...], dtype: torch.dtype) -> Iterator[Problem]:
    """Check a value that `read_step` converts: a column or another number type is only a warning."""
    if isinstance(value, Tensor) and tuple(value.shape) == (*shape, 1):
        yield _warning("shapes", f"{name} {list(value.shape)} are read as {list(shape)}.")
        value = value.squeeze(-1)
    if isinstance(value, Tensor) and value.dtype != dtype and (dtype is torch.bool or value.is_floating_point()):
        yield _warning("dtypes", f"{name} of {value.dtype} are read as {dtype}.")
        value = value.to(dtype)
    yield from _expect(name, value, shape, dtype)


def _obs_dtype(space: spaces.Space[Any]) -> torch.dtype:
    return torch.uint8 if str(space.dtype) == "uint8" else torch.float32


def _forms(env: AnyEnv, trace: Trace) -> Iterator[Problem]:
    """Check shapes, dtypes and devices of everything that was returned; report each kind of mistake once."""
    seen: set[str] = set()
    for step, (obs, extras) in enumerate(zip(trace.obs, trace.extras, strict=True)):
        for problem in (*_forms_current(env, obs, extras), *(_forms_step(env, trace, step) if step else ())):
            if problem.message not in seen:
                seen.add(problem.message)
                yield problem


def _forms_current(env: AnyEnv, obs: Tensor, extras: dict[str, Any]) -> Iterator[Problem]:
    lead = lead_shape(env)
    shape = env.observation_space.shape or ()
    yield from _expect("observation", obs, (*lead, *shape), _obs_dtype(env.observation_space))
    if isinstance(obs, Tensor) and obs.device.type != torch.device(env.device).type:
        yield _error("device", f"observations are on {obs.device}, but the environment declares {env.device}.")
    if isinstance(env, MultiAgentVecEnv):
        yield from _expect("state", extras.get("state"), (env.num_envs, *(env.state_space.shape or ())), torch.float32)
        yield from _expect("agent_mask", extras.get("agent_mask"), lead, torch.bool)
    elif env.privileged_observation_space is not None:
        space = env.privileged_observation_space
        value = extras.get("privileged_observation")
        yield from _expect("privileged_observation", value, (*lead, *(space.shape or ())), _obs_dtype(space))
    if "action_mask" in extras:
        mask, space = extras["action_mask"], env.action_space
        width = int(space.n) if isinstance(space, spaces.Discrete) else mask.shape[-1]
        yield from _expect("action_mask", mask, (*lead, width), torch.bool)
        if not bool(mask.any(-1).all()):
            yield _error("action_mask", "some row forbids every action; at least one must be legal.")


def _forms_step(env: AnyEnv, trace: Trace, step: int) -> Iterator[Problem]:
    lead, flat, extras = lead_shape(env), (env.num_envs,), trace.extras[step]
    yield from _expect_readable("rewards", trace.rewards[step - 1], lead, torch.float32)
    yield from _expect_readable("dones", trace.dones[step - 1], flat, torch.bool)
    for name in ("terminated", "truncated", "time_outs"):
        if name in extras:
            yield from _expect_readable(name, extras[name], flat, torch.bool)
    if isinstance(env, MultiAgentVecEnv):
        for name in ("agent_terminated", "agent_truncated"):
            yield from _expect(name, extras.get(name), lead, torch.bool)
    for name, values in (extras.get("reward_components") or {}).items():
        yield from _expect(f"reward_components[{name!r}]", values, lead, None)
    for name, value in (extras.get("log") or {}).items():
        try:
            log_value(name, value)
        except StepFormatError as error:
            yield _error("types", str(error))


def _aliasing(env: AnyEnv, trace: Trace, seed: int) -> Iterator[Problem]:
    """Check that what was returned never changes, and that changing it does not reach the environment."""
    for named, copies in zip(trace.live, trace.copies, strict=True):
        for (name, tensor), copy in zip(named, copies, strict=True):
            if not torch.equal(tensor, copy):
                yield _error("aliasing", f"the {name} changed after it was returned; return a clone of the buffer.")
                return
    steps = len(trace.dones)
    scribbled = run(env, ActionSource(env, seed), steps, seed, scribble=True)
    again = run(env, ActionSource(env, seed), steps, seed)
    where = first_difference(again, scribbled)
    if where is not None and first_difference(again, trace) is None:
        yield _error(
            "aliasing",
            f"overwriting returned tensors and passed actions changed the {where}: the environment reads "
            "them later. Return clones, and copy actions that are kept.",
        )


def _finite(trace: Trace) -> Iterator[Problem]:
    for name, values in (("an observation", trace.obs), ("a reward", trace.rewards)):
        if not bool(torch.isfinite(torch.stack(values)).all()):
            yield _error("values", f"{name} is NaN or infinite.")


def _bounds(env: AnyEnv, trace: Trace, seed: int) -> Iterator[Problem]:
    space = env.observation_space
    if isinstance(space, spaces.Box):
        low, high = torch.as_tensor(space.low), torch.as_tensor(space.high)
        seen = torch.stack(trace.obs).cpu()
        if bool(((seen < low) | (seen > high)).any()):
            yield _warning("values", "observations leave the bounds of observation_space; widen it.")


def _endings(env: AnyEnv, trace: Trace, seed: int) -> Iterator[Problem]:
    """Check that flags agree and that final observations are the true last ones."""
    if not any(bool(done.any()) for done in trace.dones):
        yield _warning("endings", f"no episode ended in {len(trace.dones)} steps; raise num_steps to check endings.")
        return
    is_copy_of_next, saw_final = True, False
    for reward, done, extras, obs in zip(trace.rewards, trace.dones, trace.extras[1:], trace.obs[1:], strict=True):
        outcome = read_step(lead_shape(env), reward, done, extras)
        if not torch.equal(outcome.dones, outcome.terminated | outcome.time_outs):
            yield _error("endings", "dones must equal terminated | time_outs.")
            return
        if "truncated" in extras and not torch.equal(outcome.time_outs, extras["truncated"].bool()):
            yield _error("endings", "time_outs must equal truncated.")
            return
        if not bool(outcome.dones.any()):
            continue
        if "final_observation" not in extras:
            if bool(outcome.time_outs.any()):
                yield _warning(
                    "final_observation",
                    "an episode was cut off without extras['final_observation']: the value after it is estimated from "
                    "the observation before. Return the true last observation whenever a row is done.",
                )
                return
            continue
        if _sees_more(env) and "final_privileged_observation" not in extras:
            yield _error("final_observation", "an episode ended without extras['final_privileged_observation'].")
            return
        final, saw_final = extras["final_observation"], True
        if final.shape != obs.shape or final.dtype != obs.dtype:
            yield _error("final_observation", f"must be like the observation, got {final.dtype} {list(final.shape)}.")
            return
        is_copy_of_next &= torch.equal(final[outcome.dones], obs[outcome.dones])
    if saw_final and is_copy_of_next and "ignore" not in trace.extras[-1]:
        yield _error(
            "final_observation",
            "always equals the observation returned beside it. That one must be the first of the next "
            "episode, and final_observation the last of the ended one: copy it before resetting.",
        )


def _sees_more(env: AnyEnv) -> bool:
    return not isinstance(env, MultiAgentVecEnv) and env.privileged_observation_space is not None


def _observations_move(env: AnyEnv, trace: Trace, seed: int) -> Iterator[Problem]:
    yield from _moves(env, "observation", trace.obs)
    if isinstance(env, MultiAgentVecEnv):
        yield from _moves(env, "state", [extras["state"] for extras in trace.extras])


def _moves(env: AnyEnv, name: str, seen: list[Tensor]) -> Iterator[Problem]:
    stacked = torch.stack(seen).reshape(len(seen), env.num_envs, -1)
    still = (stacked == stacked[0]).all(-1).all(0)
    if bool(still.any()):
        rows = "any environment" if bool(still.all()) else f"environments {torch.nonzero(still).flatten().tolist()}"
        yield _error(f"constant_{name}s", f"the {name} of {rows} never changed in {len(seen) - 1} steps.")


def _seeding(env: AnyEnv, trace: Trace, seed: int) -> Iterator[Problem]:
    steps = len(trace.dones)
    where = first_difference(trace, run(env, ActionSource(env, seed), steps, seed))
    if where is not None:
        yield _error("seeding", f"the same seed and actions gave a different {where}; seed every random stream.")
        return
    if first_difference(trace, run(env, ActionSource(env, seed), steps, seed + 1_000_003)) is None:
        yield _error(
            "seeding",
            "two seeds gave the same rollout: reset ignores its seed, or nothing in the environment is "
            "random. In the second case the policy is only ever shown one start.",
        )
    if env.num_envs > 1 and bool((trace.obs[0] == trace.obs[0][:1]).all()):
        yield _warning("seeding", "all environments start alike; give each its own random stream.")


def _actions_matter(env: AnyEnv, trace: Trace, seed: int) -> Iterator[Problem]:
    steps = len(trace.dones)
    if first_difference(trace, run(env, ActionSource(env, seed + 1), steps, seed)) is None:
        yield _error("ignored_actions", "different actions gave the same rollout: they never reach the dynamics.")
        return
    for row in range(min(env.num_envs, 4)):
        other = run(env, ActionSource(env, seed, other_seed_for_row=(row, seed + 1)), steps, seed)
        # Until the first reset; afterwards a shared random stream may legally differ.
        common = min(trace.first_done(), other.first_done())
        for rest in (slice(0, row), slice(row + 1, None)):
            if first_difference(trace, other, common, rest) is not None:
                yield _error("crosstalk", f"the action of environment {row} changed another environment.")
                return
        if first_difference(trace, other, steps, slice(row, row + 1)) is None:
            yield _error("ignored_actions", f"the actions of environment {row} change nothing in it.")


def _state(env: AnyEnv, trace: Trace, seed: int) -> Iterator[Problem]:
    """Check that a saved state brings the same future back, through a file without code."""
    if not env.supports_state:
        return
    steps = len(trace.dones)
    before = run(env, ActionSource(env, seed), steps // 2, seed)
    buffer = io.BytesIO()
    torch.save(env.state_dict(), buffer)
    buffer.seek(0)
    futures = []
    for attempt in range(2):
        if attempt == 1:
            env.load_state_dict(torch.load(buffer, weights_only=True))
        future = Trace(obs=[before.obs[-1]], extras=[before.extras[-1]], live=[[]], copies=[[]])
        continue_run(env, ActionSource(env, seed + 2), steps, future)
        futures.append(future)
    where = first_difference(futures[0], futures[1])
    if where is not None:
        yield _error("state", f"after load_state_dict the {where} differs; the state is not complete.")

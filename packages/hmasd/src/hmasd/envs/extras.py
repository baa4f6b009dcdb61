"""What the tasks of this package return beside observations and rewards."""

import torch
from torch import Tensor

from apexrl.arrays import Bools, Floats32
from apexrl.envs import MultiAgentExtras


def step_extras(
    observation: Floats32, state: Floats32, terminated: Bools, truncated: Bools, present: Tensor
) -> MultiAgentExtras:
    """Return the extras of a step in environments whose agents are all there until the episode ends.

    Args:
        observation: Observations after the step ``(N, A, do)``; the final ones where an episode ends.
        state: States after the step ``(N, ds)``; where an episode ends, replace ``extras["state"]`` after the reset.
        terminated: The episode ended by itself ``(N,)``.
        truncated: The episode was cut off ``(N,)``.
        present: All True ``[N, A]``; copied.
    """
    ended, cut = torch.from_numpy(terminated), torch.from_numpy(truncated)
    extras: MultiAgentExtras = {
        "state": torch.from_numpy(state),
        "agent_mask": present.clone(),
        "terminated": ended,
        "truncated": cut,
        "time_outs": cut,
        "agent_terminated": ended.unsqueeze(1) & present,
        "agent_truncated": cut.unsqueeze(1) & present,
    }
    if bool((ended | cut).any()):
        extras["final_observation"] = torch.from_numpy(observation)
        extras["final_state"] = torch.from_numpy(state)
        extras["final_agent_mask"] = present.clone()
    return extras

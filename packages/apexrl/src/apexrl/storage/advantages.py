"""Generalised advantage estimation and discounted returns: pure functions over time-major tensors.

Shapes: T steps, then any number of batch dimensions (N envs, or N envs × agents).
"""

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


def gae(rewards: Tensor, values: Tensor, following: Tensor, dones: Tensor, gamma: float, gae_lambda: float) -> Tensor:
    """Compute generalised advantage estimates (Schulman et al., 2016).

    Args:
        rewards: r_t [T, ...].
        values: V(s_t) [T, ...].
        following: V of what came after, from :func:`next_values` [T, ...].
        dones: 1 where an episode ended at step t for whatever reason: no advantage flows over that border [T, ...].
        gamma: γ, the discount; raising it makes distant rewards count more.
        gae_lambda: λ; raising it trusts the critic less: less bias, more variance.

    Returns:
        A_t [T, ...]; ``A_t + V(s_t)`` is the critic's target.
    """
    delta = torch.add(rewards - values, following, alpha=gamma)  # δ_t = r_t + γ·V' − V(s_t)
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

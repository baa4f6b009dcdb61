"""One minibatch's losses and gradients without autograd, for plain MLP actors and critics on the CPU.

It computes what autograd computes from the loss in :mod:`apexrl.algorithms.ppo`, with derivatives written out in numpy
on the memory of the torch parameters. For a network of 64 × 64 and a minibatch of 64, autograd spends nearly all of its
time on bookkeeping; this takes about a tenth of it. PPO chooses it where it applies; tests compare it with autograd in
float64.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from apexrl.algorithms.actor_critic import ActorCritic, FlatParameters
from apexrl.algorithms.losses import MinibatchResult
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.arrays import Array
from apexrl.models.heads import CategoricalHead, GaussianHead
from apexrl.models.mlp import MLPActor, MLPCritic, MLPDiscreteActor
from apexrl.storage.samples import Samples

LARGEST_MINIBATCH = 4096
"""Above it, arithmetic outweighs bookkeeping, and autograd is faster if it has several threads."""

_SMALL_PRODUCT = 64**3
"""Multiplications up to which numpy's OpenBLAS uses one thread."""


def applies_to(policy: ActorCritic, samples: Samples, minibatch_size: int) -> bool:
    """Return whether networks and samples are of the kind that is differentiated here."""
    actor: Any = policy.actor
    critic: Any = policy.critic
    if type(actor) not in (MLPActor, MLPDiscreteActor) or type(critic) is not MLPCritic:
        return False  # subclasses may compute anything
    plain_head = type(actor.head) is CategoricalHead or (
        type(actor.head) is GaussianHead and not actor.head.squash and not actor.head.state_dependent_std
    )
    return (
        plain_head
        and (minibatch_size <= LARGEST_MINIBATCH or torch.get_num_threads() == 1)
        and samples.valid is None
        and samples.action_masks is None
        and not samples.is_sequences
        and samples.observations.is_floating_point()
        and _is_plain_mlp(actor.net)
        and _is_plain_mlp(critic.net)
    )


class AnalyticGradients:
    """Fills ``parameter.grad`` with the gradient of PPO's loss.

    Args:
        policy: Accepted by :func:`applies_to`.
        cfg: Clip ranges and weights of the losses.
        parameters: The policy's, attached.
    """

    def __init__(self, policy: ActorCritic, cfg: PPOConfig, parameters: FlatParameters) -> None:
        actor: Any = policy.actor
        critic: Any = policy.critic
        self._cfg = cfg
        views = {id(p): _gradient_of(p) for p in parameters.parameters}
        self._actor = _AnalyticMLP(actor.net, [views[id(p)] for p in actor.net.parameters()])
        self._critic = _AnalyticMLP(critic.net, [views[id(p)] for p in critic.net.parameters()])
        self._log_std: nn.Parameter | None = None
        if isinstance(actor.head, GaussianHead):
            assert isinstance(actor.head.log_std, nn.Parameter)  # state-dependent deviations were refused
            self._log_std = actor.head.log_std
            self._log_std_range = actor.head.log_std_range
            self._log_std_gradient = views[id(self._log_std)]

    def __call__(self, samples: Samples) -> MinibatchResult:
        """Compute losses and gradients of one minibatch; old gradients are overwritten."""
        rows = samples.batch_size
        outputs = self._actor.forward(samples.observations.reshape(rows, -1).numpy())
        score = self._categorical if self._log_std is None else self._gaussian
        log_probs, policy_loss, entropy, gradient = score(outputs, samples)
        self._actor.backward(gradient)
        values = self._critic.forward(samples.critic_observations.reshape(rows, -1).numpy())
        critic_loss, value_gradient = self._value(values[:, 0], samples)
        self._critic.backward(value_gradient[:, None])
        losses = np.array((policy_loss, critic_loss, entropy), dtype=np.float32)
        return MinibatchResult(torch.from_numpy(losses), torch.from_numpy(log_probs))

    def _surrogate(self, log_probs: Array, samples: Samples) -> tuple[float, Array]:
        """Compute −E[min(r·A, clip(r)·A)] and its derivative by log π."""
        ratio = np.exp(log_probs - samples.log_probs.numpy())  # [B] r = π_new / π_old
        advantage = samples.advantages.numpy()
        plain = ratio * advantage
        clipped = _clip(ratio, 1.0 - self._cfg.clip_range, 1.0 + self._cfg.clip_range) * advantage
        loss = -_mean(np.minimum(plain, clipped))
        slope = np.where(plain <= clipped, plain, 0.0)  # ∂(r·A)/∂log π = r·A; the clipped branch is flat
        slope *= -1.0 / len(ratio)
        return loss, slope

    def _categorical(self, logits: Array, samples: Samples) -> tuple[Array, float, float, Array]:
        rows = np.arange(len(logits))
        actions = samples.actions.numpy()
        # log softmax and softmax [B, n], shifted against overflow
        shifted = logits - logits.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        total = exponentials.sum(axis=1, keepdims=True)
        log_p = shifted - np.log(total)
        p = exponentials / total
        log_probs = log_p[rows, actions]  # [B]
        loss, slope = self._surrogate(log_probs, samples)
        gradient = p * -slope[:, None]  # ∂log π(a)/∂z = 1[a] − p
        gradient[rows, actions] += slope
        entropies = -(p * log_p).sum(axis=1)  # [B]
        if self._cfg.ent_coef:
            weight = self._cfg.ent_coef / len(logits)
            gradient += weight * p * (log_p + entropies[:, None])  # ∂H/∂z = −p·(log p + H)
        return log_probs, loss, _mean(entropies), gradient

    def _gaussian(self, mean: Array, samples: Samples) -> tuple[Array, float, float, Array]:
        assert self._log_std is not None  # the caller chose by it
        low, high = self._log_std_range
        raw = self._log_std.detach().numpy()
        log_std = _clip(raw, low, high)
        inverse = np.exp(-log_std)
        z = (samples.actions.numpy() - mean) * inverse  # [B, n] standardised actions
        square = z * z
        count = mean.shape[1]
        constant = 0.5 * count * math.log(2.0 * math.pi)
        log_probs = -0.5 * square.sum(axis=1) - (log_std.sum() + constant)  # −½Σz² − Σ log σ − n/2·log 2π
        loss, slope = self._surrogate(log_probs, samples)
        gradient = z * inverse * slope[:, None]  # ∂log π/∂μ = z/σ
        by_log_std = slope @ (square - 1.0)  # ∂log π/∂log σ = z² − 1
        by_log_std -= self._cfg.ent_coef  # ∂H/∂log σ = 1
        self._log_std_gradient[:] = by_log_std * ((raw >= low) & (raw <= high))
        entropy = float(log_std.sum()) + constant + 0.5 * count
        return log_probs, loss, entropy, gradient

    def _value(self, values: Array, samples: Samples) -> tuple[float, Array]:
        """Compute E[max(·)] of squared (or Huber) errors and its derivative by V, weighted with c_v."""
        cfg, target = self._cfg, samples.returns.numpy()
        loss, slope = _squared_error(values - target, cfg.huber_delta)
        if cfg.clip_range_vf is not None:
            old = samples.values.numpy()
            moved = values - old
            near = old + _clip(moved, -cfg.clip_range_vf, cfg.clip_range_vf)
            clipped, _ = _squared_error(near - target, cfg.huber_delta)
            # Where the clipped error is larger, V does not move it; within the range both are one, up to rounding.
            slope = np.where((loss >= clipped) | (np.abs(moved) <= cfg.clip_range_vf), slope, 0.0)
            loss = np.maximum(loss, clipped)
        slope *= cfg.vf_coef / len(values)
        return _mean(loss), slope


def _squared_error(error: Array, huber_delta: float | None) -> tuple[Array, Array]:
    """Return e² and 2e, or their Huber forms."""
    if huber_delta is None:
        return error * error, 2.0 * error
    inside = _clip(error, -huber_delta, huber_delta)
    return inside * inside + 2.0 * huber_delta * np.abs(error - inside), 2.0 * inside


def _clip(values: Array, low: float, high: float) -> Array:
    """Return what ``np.clip`` returns, without its dispatch, which costs more than the arithmetic on 64 numbers."""
    return np.minimum(np.maximum(values, low), high)


def _mean(values: Array) -> float:
    """Return what ``values.mean()`` returns for ``[B]``, without its dispatch."""
    return float(np.add.reduce(values) / len(values))


def _gradient_of(parameter: nn.Parameter) -> Array:
    assert parameter.grad is not None  # attached parameters have one
    return parameter.grad.numpy()


def _tanh(z: Array) -> None:
    np.tanh(z, out=z)


def _tanh_slope(y: Array, gradient: Array, scratch: Array) -> None:
    np.multiply(y, y, out=scratch)
    np.subtract(1.0, scratch, out=scratch)  # tanh' = 1 − y²
    gradient *= scratch


def _relu(z: Array) -> None:
    np.maximum(z, 0.0, out=z)


def _relu_slope(y: Array, gradient: Array, scratch: Array) -> None:
    np.multiply(gradient, y > 0.0, out=gradient)  # relu' = 1[y > 0]


def _elu(z: Array) -> None:
    torch.nn.functional.elu_(torch.from_numpy(z))  # numpy computes expm1 one number at a time where AVX-512 is missing


def _elu_slope(y: Array, gradient: Array, scratch: Array) -> None:
    below, slopes = torch.from_numpy(gradient), torch.from_numpy(scratch)
    torch.clamp(torch.from_numpy(y), max=0.0, out=slopes)
    below.addcmul_(below, slopes)  # elu' = 1 for y > 0, else 1 + y


_ACTIVATIONS: dict[type[nn.Module], tuple[Callable[[Array], None], Callable[[Array, Array, Array], None]]] = {
    nn.Tanh: (_tanh, _tanh_slope),
    nn.ReLU: (_relu, _relu_slope),
    nn.ELU: (_elu, _elu_slope),
}


def _is_plain_mlp(network: nn.Module) -> bool:
    """Return whether a network is Linear, activation, Linear, …, Linear with activations that are known here."""
    if type(network) is not nn.Sequential or len(network) % 2 == 0:
        return False
    linears, between = list(network)[0::2], list(network)[1::2]
    return (
        all(type(layer) is nn.Linear and layer.bias is not None for layer in linears)
        and all(type(layer) in _ACTIVATIONS for layer in between)
        and all(layer.alpha == 1.0 for layer in between if isinstance(layer, nn.ELU))
        and all(parameter.requires_grad and parameter.device.type == "cpu" for parameter in network.parameters())
    )


def _multiply(a: Array, b: Array, out: Array) -> None:
    """Compute a·b for ``[m, k]`` and ``[k, n]``; large products by torch, which obeys ``torch.set_num_threads``.

    numpy's BLAS has threads of its own; on a busy machine they wait for each other and cost ten times the work.
    """
    (m, k), n = a.shape, out.shape[1]
    if m * k * n <= _SMALL_PRODUCT:
        np.matmul(a, b, out=out)
    elif k > m >= 2 * n:  # a sum over many rows into a narrow result: MKL needs a fifth of the time for (bᵀ·aᵀ)ᵀ
        out[:] = torch.mm(torch.from_numpy(b.T), torch.from_numpy(a.T)).numpy().T
    else:
        torch.mm(torch.from_numpy(a), torch.from_numpy(b), out=torch.from_numpy(out))


class _AnalyticMLP:
    """One network's passes; gradients are written where they are wanted.

    Args:
        network: Accepted by :func:`_is_plain_mlp`.
        gradients: One array per parameter, in the order of ``network.parameters()``; overwritten by each backward pass.
    """

    def __init__(self, network: nn.Sequential, gradients: list[Array]) -> None:
        linears = [layer for layer in network if isinstance(layer, nn.Linear)]
        self._weights = [layer.weight.detach().numpy() for layer in linears]  # [out, in], shared memory
        self._transposed = [weight.T for weight in self._weights]
        self._biases = [layer.bias.detach().numpy() for layer in linears]
        self._activations = [_ACTIVATIONS[type(layer)] for layer in network if type(layer) in _ACTIVATIONS]
        self._weight_gradients, self._bias_gradients = gradients[0::2], gradients[1::2]
        self._buffers: dict[int, list[tuple[Array, Array, Array]]] = {}
        self._inputs: list[Array] = []

    def _buffers_for(self, rows: int) -> list[tuple[Array, Array, Array]]:
        """Return per layer: its output, the gradient of its output, scratch."""
        if rows not in self._buffers:
            dtype = self._weights[0].dtype
            self._buffers[rows] = [
                (np.empty((rows, len(w)), dtype), np.empty((rows, len(w)), dtype), np.empty((rows, len(w)), dtype))
                for w in self._weights
            ]
        return self._buffers[rows]

    def forward(self, x: Array) -> Array:
        """Map inputs ``[B, in]`` to outputs ``[B, out]``; valid until the next call."""
        buffers = self._buffers_for(len(x))
        self._inputs = []
        last = len(self._weights) - 1
        for layer, (out, _, _) in enumerate(buffers):
            self._inputs.append(x)
            _multiply(x, self._transposed[layer], out)  # z = x·Wᵀ + b
            out += self._biases[layer]
            if layer < last:
                self._activations[layer][0](out)
            x = out
        return x

    def backward(self, gradient: Array) -> None:
        """Compute ∂L/∂parameters from ∂L/∂outputs ``[B, out]``."""
        buffers = self._buffers_for(len(gradient))
        for layer in range(len(self._weights) - 1, -1, -1):
            _multiply(gradient.T, self._inputs[layer], self._weight_gradients[layer])  # ∂L/∂W = δᵀ·x
            np.add.reduce(gradient, axis=0, out=self._bias_gradients[layer])  # ∂L/∂b = Σ δ
            if layer:
                _, below, scratch = buffers[layer - 1]
                _multiply(gradient, self._weights[layer], below)  # ∂L/∂x = δ·W
                self._activations[layer - 1][1](self._inputs[layer], below, scratch)
                gradient = below

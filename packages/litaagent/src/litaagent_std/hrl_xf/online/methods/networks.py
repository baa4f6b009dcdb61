"""The networks of the layers as weights and as actors of PPO.

The networks of `hrl_xf` are the actors. A flat observation (`hierarchy.rows`) is split into the network's inputs; the
action is the residual of L2, the decision of L3 or the logarithm of α of L4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import torch
from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.models.base import Actor
from apexrl.models.distributions import Distribution
from apexrl.models.heads import ActionHead
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO, unflatten
from litaagent_std.hrl_xf.l3_executor import DecisionDistribution, TemporalDecisionTransformer, ThreadBatch
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.online.config import Layer
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.hierarchy.rows import HISTORY, THREADS, thread_sizes
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import THREAD_FEATURES, features_digest
from litaagent_std.policy.layers import DEFAULT_L3
from litaagent_std.policy.networks.inputs import L4_SIZE
from litaagent_std.policy.networks.weights import FORMAT, FORMAT_VERSION, Weights
from litaagent_std.policy.parameters import Parameters
from litaagent_std.world.setup import HORIZON

__all__ = [
    "NETWORKS",
    "OUTPUTS",
    "DecisionHead",
    "Network",
    "NetworkActor",
    "learn_only",
    "network_of",
    "state_size",
    "untrained",
    "weights_of",
]

Network = HorizonManagerPPO | TemporalDecisionTransformer | ThreadCoordinator
NETWORKS: Final[Mapping[Layer, type[Any]]] = {
    "l2": HorizonManagerPPO,
    "l3": TemporalDecisionTransformer,
    "l4": ThreadCoordinator,
}
"""The network of each layer, in every stage of training."""


def untrained(layers: Sequence[Layer], seed: int, widths: Mapping[Layer, int | None] | None = None) -> Hierarchy:
    """Return new networks of some layers and of L2, which the others need: the heuristic agent.

    Args:
        layers: The layers.
        seed: Seed of the hidden layers; the last ones are zero.
        widths: Width of each layer's network; default: as in offline training.
    """
    made_with = {"horizon": HORIZON, "features_digest": features_digest(), "l1_digest": l1_digest()}
    base = {"l3": DEFAULT_L3, "parameters": asdict(Parameters())}  # what the residuals are added to
    nets: dict[Layer, Weights] = {}
    with torch.random.fork_rng(devices=()):
        for index, layer in enumerate(NETWORKS):
            if layer != "l2" and layer not in layers:
                continue
            torch.manual_seed(seed + index)  # a layer's network does not depend on the others
            width = (widths or {}).get(layer)
            sizes: dict[str, int] = {} if width is None else {"dim": width}
            network: Network = ThreadCoordinator(**sizes) if layer == "l4" else NETWORKS[layer](HORIZON, **sizes)
            nets[layer] = weights_of(network, {**made_with, "base": base})
    return Hierarchy(nets)


def network_of(weights: Weights) -> Network:
    """Return the network of weights."""
    sizes = dict(weights.meta["sizes"])
    kind = NETWORKS[weights.kind]  # type: ignore[index]  # one of the layers
    made: Network = kind(**sizes) if weights.kind == "l4" else kind(league_horizon=weights.meta["horizon"], **sizes)
    made.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.arrays.items()})
    return made


def weights_of(network: Network, meta: Mapping[str, Any]) -> Weights:
    """Return the weights of a network, as `export_layer` would write them."""
    arrays = {name: tensor.detach().numpy().copy() for name, tensor in network.state_dict().items()}
    full = {**meta, "format": FORMAT, "format_version": FORMAT_VERSION, "kind": network.kind, "sizes": network.sizes}
    return Weights(arrays, full, f"the {network.kind} that is trained")


def goal_outputs(network: Any, flat: Tensor, horizon: int) -> Tensor:  # noqa: ANN401 - torch's modules have any attribute
    """Return L2's mean residuals ``[N, 7·B + 1]`` of flat days."""
    latents: Tensor = network.latents(unflatten(flat, horizon))
    return latents


def decision_outputs(network: Any, flat: Tensor, horizon: int) -> Tensor:  # noqa: ANN401 - likewise
    """Return L3's logits and means ``[M, 3 + (H + 1) + 2]`` of flat threads."""
    parts = torch.split(flat, thread_sizes(horizon), dim=1)
    day, history, mask, ranges, x_thread, x_partner, goal, base, log_alpha = parts
    width = len(THREAD_FEATURES["history"])
    longest = max(1, int((mask > 0.5).sum(1).max()))  # padding is at the end
    batch = ThreadBatch(
        unflatten(day, horizon),
        history.view(-1, HISTORY, width)[:, :longest],
        mask[:, :longest] > 0.5,
        ranges,
        x_thread,
        x_partner,
        goal,
        base,
        log_alpha.squeeze(1),
    )
    out = network(batch)
    return torch.cat([out.op, out.lead, out.quantity.mean(1, True), out.position.mean(1, True)], dim=1)


def weight_outputs(network: Any, flat: Tensor, horizon: int) -> Tensor:  # noqa: ANN401 - likewise
    """Return L4's mean log α ``[M, 1]``, each of one thread of a round."""
    tokens, mask, own = torch.split(flat, [THREADS * L4_SIZE, THREADS, 1], dim=1)
    longest = int((mask > 0.5).sum(1).max())
    threads = tokens.view(-1, THREADS, L4_SIZE)[:, :longest]
    means: Tensor = network(threads, mask[:, :longest] > 0.5)
    return means.gather(1, own.long())


OUTPUTS: Final[Mapping[Layer, Callable[[Any, Tensor, int], Tensor]]] = {
    "l2": goal_outputs,
    "l3": decision_outputs,
    "l4": weight_outputs,
}
"""What each layer's network says to flat observations: residuals, decisions, log α."""


class NetworkActor(Actor):
    """A layer's network as an actor; the learner sets layer, network and columns.

    Attributes:
        layer: The layer.
        network: Its network.
        columns: Columns of the network's outputs that are the head's inputs; all if None.
    """

    wants_discrete = False
    layer: Layer

    def __init__(self, observation_space: Space[Any], action_space: Space[Any], *, horizon: int, **head: Any) -> None:  # noqa: ANN401 - a Gaussian's options
        super().__init__(observation_space, action_space, **head)
        self.horizon = horizon
        self.network: nn.Module = nn.Identity()
        self.columns: list[int] | None = None

    def forward(self, obs: Tensor) -> Tensor:
        """Return the head's inputs ``[*batch, …]``."""
        outputs = OUTPUTS[self.layer](self.network, obs.reshape(-1, obs.shape[-1]), self.horizon)
        own = outputs if self.columns is None else outputs[:, self.columns]
        return own.reshape(*obs.shape[:-1], -1)


class DecisionHead(ActionHead):
    """Operation, delivery day, quantity and price; see `DecisionDistribution`.

    Args:
        leads: Number of delivery days.
        log_std_range: Bounds of log σ.
    """

    is_discrete = False

    def __init__(self, leads: int, log_std_range: tuple[float, float]) -> None:
        super().__init__()
        self.leads, self.log_std_range = leads, log_std_range
        self.num_inputs = 3 + leads + 2
        self.log_std = nn.Parameter(torch.zeros(2))

    def distribution(self, outputs: Tensor, action_mask: Tensor | None = None) -> Distribution:
        """Return the distribution of decisions."""
        op, lead, mean = torch.split(outputs, [3, self.leads, 2], dim=-1)
        return DecisionDistribution(op, lead, mean, self.log_std.clamp(*self.log_std_range))

    def deterministic(self, outputs: Tensor) -> Tensor:
        """Return the most probable decision."""
        return self.distribution(outputs).mode()


def state_size() -> int:
    """Return the length of what a central critic sees beside a thread; see `rows.state_of`."""
    return 2 * len(THREAD_FEATURES["x_thread"]) + 1


def learn_only(network: HorizonManagerPPO, columns: list[int]) -> None:
    """Let only the rows of some outputs be learned, in the last layers; all else stays as it is."""
    keep = torch.zeros(network.n_latents, 1)
    keep[columns] = 1.0
    for name, parameter in network.named_parameters():
        hooked: Any = parameter  # torch's own annotation of hooks is missing
        if name in ("head.weight", "skip.weight", "days_skip.weight"):
            hooked.register_hook(lambda gradient: gradient * keep)
        elif name == "head.bias":
            hooked.register_hook(lambda gradient: gradient * keep[:, 0])
        else:
            parameter.requires_grad_(False)

"""PPO on the network of one layer: the parameters that offline training made are trained further.

The networks of `hrl_xf` are the actors. A flat observation (`rows`) is split into the network's inputs; the action is
the residual of L2, the decision of L3 or the logarithm of α of L4.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from gymnasium.spaces import Box, Space
from torch import Tensor, nn

from apexrl.algorithms.actor_critic import ActorCritic
from apexrl.algorithms.blueprint import Spaces
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.models.base import Actor
from apexrl.models.distributions import Distribution
from apexrl.models.heads import ActionHead
from litaagent_std.agents.online.steering import Layer
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO, initial_log_std, unflatten
from litaagent_std.hrl_xf.l3_executor import DecisionDistribution, TemporalDecisionTransformer, ThreadBatch
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.online.config import LayerConfig
from litaagent_std.hrl_xf.online.hierarchy.rows import HISTORY, THREADS, day_size, thread_sizes, weight_size
from litaagent_std.hrl_xf.online.methods.base import check_names
from litaagent_std.hrl_xf.online.methods.ppo import LayerLearner
from litaagent_std.policy.buckets import n_buckets
from litaagent_std.policy.features import THREAD_FEATURES
from litaagent_std.policy.l2.residual import goal_names
from litaagent_std.policy.networks.inputs import ALPHA_STEP, L4_SIZE, OFFER_STEPS
from litaagent_std.policy.networks.weights import FORMAT, FORMAT_VERSION, Weights

__all__ = ["NETWORKS", "HierarchyLearner", "network_of", "new_network", "state_size", "weights_of"]

Network = HorizonManagerPPO | TemporalDecisionTransformer | ThreadCoordinator
NETWORKS: Final[Mapping[Layer, type[Any]]] = {
    "l2": HorizonManagerPPO,
    "l3": TemporalDecisionTransformer,
    "l4": ThreadCoordinator,
}
"""The network of each layer, in every stage of training."""
_REPLAY: Final = 0.02
"""Largest difference of log-probabilities between numpy, which acts, and torch, which learns."""


def new_network(layer: Layer, horizon: int) -> Network:
    """Return a new network: the heuristic agent."""
    made: Network = ThreadCoordinator() if layer == "l4" else NETWORKS[layer](horizon)
    return made


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


def _box(size: int) -> Box:
    return Box(-np.inf, np.inf, (size,), np.float32)


class _NetworkActor(Actor):
    """A layer's network as an actor; the network is set by the learner."""

    wants_discrete = False

    def __init__(self, observation_space: Space[Any], action_space: Space[Any], *, horizon: int, **head: Any) -> None:  # noqa: ANN401 - a Gaussian's options
        super().__init__(observation_space, action_space, **head)
        self.horizon = horizon
        self.network: nn.Module = nn.Identity()

    def forward(self, obs: Tensor) -> Tensor:
        """Return the head's inputs ``[*batch, …]``."""
        flat = obs.reshape(-1, obs.shape[-1])
        return self.outputs(flat).reshape(*obs.shape[:-1], -1)

    def outputs(self, flat: Tensor) -> Tensor:
        """Return the head's inputs of flat observations ``[N, size]``."""
        raise NotImplementedError


class GoalsActor(_NetworkActor):
    """L2: residuals of the learned components."""

    columns: Tensor

    def outputs(self, flat: Tensor) -> Tensor:
        """Return the mean residuals ``[N, learned]``."""
        latents: Tensor = self.network.latents(unflatten(flat, self.horizon))  # type: ignore[operator]  # of L2
        return latents[:, self.columns]


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


class DecisionsActor(_NetworkActor):
    """L3: the decision of a thread."""

    def outputs(self, flat: Tensor) -> Tensor:
        """Return logits and means ``[M, 3 + (H + 1) + 2]``."""
        parts = torch.split(flat, thread_sizes(self.horizon), dim=1)
        day, history, mask, ranges, x_thread, x_partner, goal, base, log_alpha = parts
        width = len(THREAD_FEATURES["history"])
        longest = max(1, int((mask > 0.5).sum(1).max()))  # padding is at the end
        batch = ThreadBatch(
            unflatten(day, self.horizon),
            history.view(-1, HISTORY, width)[:, :longest],
            mask[:, :longest] > 0.5,
            ranges,
            x_thread,
            x_partner,
            goal,
            base,
            log_alpha.squeeze(1),
        )
        out = self.network(batch)
        return torch.cat([out.op, out.lead, out.quantity.mean(1, True), out.position.mean(1, True)], dim=1)


class WeightsActor(_NetworkActor):
    """L4: the logarithm of α of one thread of a round."""

    def outputs(self, flat: Tensor) -> Tensor:
        """Return the means ``[M, 1]``."""
        tokens, mask, own = torch.split(flat, [THREADS * L4_SIZE, THREADS, 1], dim=1)
        longest = int((mask > 0.5).sum(1).max())
        threads = tokens.view(-1, THREADS, L4_SIZE)[:, :longest]
        means: Tensor = self.network(threads, mask[:, :longest] > 0.5)
        return means.gather(1, own.long())


_ACTORS: Final[Mapping[Layer, type[_NetworkActor]]] = {"l2": GoalsActor, "l3": DecisionsActor, "l4": WeightsActor}


def state_size() -> int:
    """Return the length of what a central critic sees beside a thread; see `rows.state_of`."""
    return 2 * len(THREAD_FEATURES["x_thread"]) + 1


class HierarchyLearner(LayerLearner):
    """PPO for the network of one layer.

    Args:
        layer: The layer.
        cfg: Its learning options; ``hidden`` has no meaning here, the network has its own sizes.
        weights: The network to start from.
        gamma: Discount of its rewards.
        central: Whether L3's critic sees the factory's other threads beside its own.
        seed: Seed of the critic and of minibatches.
    """

    def __init__(
        self, layer: Layer, cfg: LayerConfig, weights: Weights, *, gamma: float, central: bool, seed: int
    ) -> None:
        self.layer, self._layer_cfg, self._meta = layer, cfg, dict(weights.meta)
        self.horizon = int(weights.meta.get("horizon", 10))
        names = goal_names(n_buckets(self.horizon)) if layer == "l2" else ()
        check_names(layer.upper(), "output", cfg.outputs, names)
        self.learned = [names.index(name) for name in cfg.outputs] or list(range(len(names)))
        sizes = {"l2": day_size(self.horizon), "l3": sum(thread_sizes(self.horizon)), "l4": weight_size()}
        actions = {"l2": len(self.learned), "l3": 4, "l4": 1}[layer]
        self._columns = list(range(actions))  # of the batch's actions, which are those of the actor
        privileged = _box(sizes["l3"] + state_size()) if central and layer == "l3" else None
        spaces = Spaces(
            observation_space=_box(sizes[layer]),
            action_space=_box(actions),
            privileged_observation_space=privileged,
        )
        ppo = PPOConfig(
            num_epochs=cfg.epochs,
            minibatch_size=cfg.minibatch,
            learning_rate=cfg.learning_rate,
            gamma=gamma,
            gae_lambda=cfg.gae_lambda,
            clip_range=cfg.clip,
            target_kl=cfg.target_kl,
            ent_coef=cfg.entropy,
            normalize_values=True,
            replay_tolerance=_REPLAY,
            seed=seed,
        )
        self._network = network_of(weights)
        # weights of an online run hold the exploration that they were trained with
        self._explored = "version" in weights.meta
        PPO.__init__(
            self,
            spaces,
            ppo,
            actor_class=_ACTORS[layer],
            actor_cfg={"horizon": self.horizon},
            critic_cfg={"hidden_dims": cfg.critic_hidden},
            device="cpu",
        )
        self.warm_weight = 0.01
        self._warm = copy.deepcopy(self._actor).requires_grad_(False)

    def _build(self, *args: Any) -> ActorCritic:  # noqa: ANN401 - as PPO's
        policy = super()._build(*args)
        actor, cfg, network = policy.actor, self._layer_cfg, self._network
        assert isinstance(actor, _NetworkActor)
        actor.network = network
        if isinstance(actor, GoalsActor):
            actor.columns = torch.tensor(self.learned)
        if self.layer == "l3":
            assert isinstance(network, TemporalDecisionTransformer)
            actor.head = DecisionHead(network.horizon + 1, cfg.log_std_range)
        log_std = network.log_std.detach()[self.learned] if self.layer == "l2" else network.log_std.detach()
        if not self._explored:
            steps = initial_log_std(n_buckets(self.horizon), 0.0)[self.learned] if self.layer == "l2" else None
            steps = torch.tensor({"l3": OFFER_STEPS, "l4": (ALPHA_STEP,)}[self.layer]).log() if steps is None else steps
            log_std = steps + cfg.log_std
        head: Any = actor.head  # a Gaussian's, or that of decisions
        low, high = cfg.log_std_range
        head.log_std_range = (low + float(log_std.min()), max(high, float(log_std.max())))
        head.log_std.data = log_std.clone()
        network.log_std.requires_grad_(False)
        if isinstance(network, HorizonManagerPPO) and len(self.learned) < network.n_latents:
            _learn_only(network, self.learned)
        return policy

    def acting(self) -> Weights:  # type: ignore[override]  # the weights' one format
        """Return the present network as weights; log σ of components that are not learned is −∞."""
        network = self._network
        head: Any = self._actor.head  # see `_build`
        own = head.log_std.detach().clamp(*head.log_std_range)
        log_std = torch.full_like(network.log_std, -torch.inf)
        log_std[self.learned if self.layer == "l2" else slice(None)] = own
        arrays = dict(weights_of(network, self._meta).arrays) | {"log_std": log_std.numpy().copy()}
        return Weights(arrays, weights_of(network, self._meta).meta, f"the {self.layer} that is trained")


def _learn_only(network: HorizonManagerPPO, columns: list[int]) -> None:
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

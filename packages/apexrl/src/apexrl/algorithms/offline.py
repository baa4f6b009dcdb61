"""The base of algorithms that learn from recordings: networks, optimiser, epochs."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from gymnasium.spaces import Space
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from apexrl.algorithms.actor_critic import ActingPolicy, FlatParameters
from apexrl.algorithms.devices import resolve_device
from apexrl.algorithms.losses import check_weights
from apexrl.algorithms.ppo_config import Count, Positive
from apexrl.configuration import configuration, of_class
from apexrl.models.base import Policy, ValueFunction
from apexrl.runs.errors import DivergedError
from apexrl.storage.offline import OfflineDataset
from apexrl.storage.samples import even_sizes


@configuration
class OfflineConfig:
    """Fields that all offline algorithms share."""

    learning_rate: Positive = 1e-3
    """Adam's step size. Raising it learns faster until it becomes unstable."""
    minibatch_size: Count = 256
    """The most decisions per gradient step. Raising it gives fewer, smoother steps per epoch."""
    max_grad_norm: Positive | None = 1.0
    """The gradient is scaled down to this norm; None never scales."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    """Pull of all parameters towards 0, times the learning rate. Raising it fits the recording less closely."""
    normalize_observations: bool = False
    """Scale observations by the training set's mean and deviation."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of networks and minibatches."""


class OfflineAlgorithm(ABC):
    """Learns a policy from an :class:`~apexrl.storage.offline.OfflineDataset`, one epoch per update.

    Args:
        observation_space: Space of one observation.
        action_space: Space of one action.
        cfg: Hyperparameters; if None, the algorithm's defaults.
        actor_class: The policy network, feed-forward; if None, the MLP for the action space.
        critic_class: The value network, where the algorithm has one; if None, an MLP.
        actor_cfg: Keyword arguments of the actor.
        critic_cfg: Keyword arguments of the critic.
        device: Where to learn; None and ``"auto"`` take CUDA if there is one, else the CPU.

    Attributes:
        policy: The networks.
        optimizer: AdamW over all parameters.
        version: Epochs so far.
    """

    name: ClassVar[str]
    config_class: ClassVar[type[OfflineConfig]]
    policy: ActingPolicy

    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        cfg: OfflineConfig | None = None,
        actor_class: type[Policy] | None = None,
        critic_class: type[ValueFunction] | None = None,
        actor_cfg: Mapping[str, Any] | None = None,
        critic_cfg: Mapping[str, Any] | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        for network in (actor_class, critic_class):
            if network is not None and network.is_recurrent:
                raise TypeError(f"{self.name} takes feed-forward networks, got {network.__name__}")
        self.cfg = of_class(self.config_class, cfg, type(self).__name__)
        self.device = resolve_device(device)
        spaces = (observation_space, action_space)
        with torch.random.fork_rng(devices=[]):  # the seed decides the networks, and the caller's stream is left alone
            torch.manual_seed(self.cfg.seed)
            policy = self._build(*spaces, actor_class, critic_class, actor_cfg or {}, critic_cfg or {})
        self.policy = policy.to(self.device)
        self.version = 0
        self.generator = torch.Generator().manual_seed(self.cfg.seed)
        self._parameters = FlatParameters(self.policy)
        self.optimizer = torch.optim.AdamW(
            [self._parameters.flat], lr=self.cfg.learning_rate, weight_decay=self.cfg.weight_decay
        )
        self._has_statistics = False
        self._checked: OfflineDataset | None = None

    @abstractmethod
    def _build(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        actor_class: type[Policy] | None,
        critic_class: type[ValueFunction] | None,
        actor_cfg: Mapping[str, Any],
        critic_cfg: Mapping[str, Any],
    ) -> ActingPolicy:
        """Return the networks."""

    @abstractmethod
    def losses(self, batch: OfflineDataset) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss to minimise and what to report, by name without a group."""

    def learn_statistics(self, dataset: OfflineDataset) -> None:
        """Take scales from the training set, once, before the first epoch."""
        if self.policy.observation_normalizer is not None:
            self.policy.observation_normalizer.update(self.inputs(dataset))

    def prepare(self, dataset: OfflineDataset) -> OfflineDataset:
        """Return the dataset to draw an epoch's minibatches from, weighted as the algorithm weights it."""
        return dataset

    def update(self, dataset: OfflineDataset) -> dict[str, float]:
        """Learn from one epoch over the dataset in random order.

        Returns:
            Means over minibatches under ``train/``, measured before each step.
        """
        if self._checked is not dataset:  # once for each
            self._check(dataset)
            self._checked = dataset
        self._parameters.attach()
        limit = float("inf") if self.cfg.max_grad_norm is None else self.cfg.max_grad_norm
        if not self._has_statistics:
            self.learn_statistics(dataset)
            self._has_statistics = True
        dataset = self.prepare(dataset)
        seen: list[dict[str, Tensor]] = []
        order = torch.randperm(len(dataset), generator=self.generator)
        for indices in torch.split(order, even_sizes(len(dataset), self.cfg.minibatch_size)):
            loss, parts = self.losses(self._on_device(dataset.take(indices)))
            self._parameters.gradient.zero_()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own annotation is missing
            norm = self._parameters.clip(limit)
            self.optimizer.step()
            seen.append({"loss": loss.detach(), "grad_norm": norm} | {k: v.detach() for k, v in parts.items()})
        self.version += 1
        check_weights(self.policy, self.version)
        stats = {f"train/{name}": float(torch.stack([part[name] for part in seen]).mean()) for name in seen[0]}
        return stats | {"train/learning_rate": self.optimizer.param_groups[0]["lr"]}

    def inputs(self, dataset: OfflineDataset) -> Tensor:
        """Return a dataset's observations where and as the networks take them ``[M, *obs]``."""
        obs = dataset.observations
        return obs.to(self.device, self.policy.dtype) if obs.is_floating_point() else obs.to(self.device)

    def _check(self, dataset: OfflineDataset) -> None:
        """Refuse a dataset that does not fit the spaces, or holds NaN or infinities."""
        dataset.check(self.policy.actor.observation_space, self.policy.actor.action_space)
        for name in ("observations", "actions", "returns", "weights"):
            values = getattr(dataset, name)
            if values is None or not values.is_floating_point() or bool(torch.isfinite(values).all()):
                continue
            row = int((~torch.isfinite(values)).nonzero()[0, 0])
            raise DivergedError(
                f"{name} of decision {row} of the dataset is NaN or infinite",
                "recorded decisions are finite numbers",
                "correct or leave out this decision; checkpoints before it are sound",
            )

    def predict(
        self,
        observation: NDArray[Any] | Tensor,
        deterministic: bool = True,
        action_mask: NDArray[Any] | Tensor | None = None,
    ) -> Any:  # noqa: ANN401 - numpy in, numpy out
        """Choose actions; see :meth:`apexrl.algorithms.actor_critic.ActingPolicy.predict`."""
        return self.policy.predict(observation, None, None, deterministic, action_mask)

    @torch.no_grad()
    def validate(self, dataset: OfflineDataset) -> dict[str, float]:
        """Return the same measures on held-out decisions, without learning, under ``validation/``."""
        self._check(dataset)
        dataset = self.prepare(dataset)
        loss, parts = self.losses(self._on_device(dataset))
        return {f"validation/{name}": float(value) for name, value in ({"loss": loss} | parts).items()}

    def _on_device(self, batch: OfflineDataset) -> OfflineDataset:
        def moved(values: Tensor | None) -> Tensor | None:
            return None if values is None else values.to(self.device)

        return OfflineDataset(
            observations=self.inputs(batch),
            actions=batch.actions.to(self.device),
            returns=moved(batch.returns),
            action_masks=moved(batch.action_masks),
            weights=moved(batch.weights),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything that decides the next epoch."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "version": self.version,
            "has_statistics": self._has_statistics,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from :meth:`state_dict`."""
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))  # torch would share its tensors
        self.version = state["version"]
        self._has_statistics = state["has_statistics"]
        self.generator.set_state(state["generator"])

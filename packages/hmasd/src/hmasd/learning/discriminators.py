"""Training of the discriminators and the rewards from them, once per rollout."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from apexrl.algorithms.losses import masked_mean, needed_mask
from hmasd.config.schema import HMASDConfig
from hmasd.learning.optimization import gradient_step
from hmasd.learning.rollout import Rollout
from hmasd.networks.discriminators import Discriminators


class SkillRewards(NamedTuple):
    """Discriminator rewards of the low level, already weighted."""

    team: Tensor
    """λ_D·log q_D(Z | s'), ``[T, E]``."""
    agents: Tensor
    """λ_d·log q_d(z_i | o'_i, Z), ``[T, E, n]``; 0 for absent agents."""


class DiscriminatorLearner:
    """Both discriminators with their optimisers, update and rewards.

    Args:
        config: Hyperparameters.
        networks: The discriminators.
    """

    def __init__(self, config: HMASDConfig, networks: Discriminators) -> None:
        self._config = config
        self.networks = networks.eval()
        self.optimizers = {
            name: torch.optim.AdamW(
                network.parameters(),
                lr=config.lr_discriminator,
                eps=1e-5,
                weight_decay=config.discriminator_decay,
                fused=True,
            )
            for name, network in (("team", networks.team), ("agent", networks.agent))
        }
        self.accuracy = {"team": 0.0, "agent": 0.0}

    @torch.no_grad()
    def rewards(self, rollout: Rollout) -> SkillRewards:
        """Compute the rewards of the rollout by the discriminators before their update."""
        config = self._config
        log_probs = self.networks.log_probs(rollout.next_states, rollout.next_observations, rollout.skills)
        if config.center_rewards:
            team = log_probs.team + math.log(config.team_skills)
            agents = log_probs.agents + math.log(config.agent_skills)
        else:
            team, agents = log_probs.team, log_probs.agents
        weights = self._weights()
        # no samples of an agent that has left
        agents = agents.masked_fill(~rollout.present, 0.0)
        return SkillRewards(weights["team"] * team, weights["agent"] * agents)

    def _weights(self) -> dict[str, float]:
        config = self._config
        if config.ablation == "no_in_rew":
            return {"team": 0.0, "agent": 0.0}
        base = {"team": config.lambda_team, "agent": config.lambda_agent}
        if not config.adaptive_lambda:
            return base
        # 1 at chance, 0 at perfect accuracy
        chance = {"team": 1.0 / config.team_skills, "agent": 1.0 / config.agent_skills}
        return {
            name: weight * (1.0 - max(0.0, self.accuracy[name] - chance[name]) / max(1.0 - chance[name], 1e-6))
            for name, weight in base.items()
        }

    def update(self, rollout: Rollout, *, learn: bool = True) -> dict[str, float]:
        """Minimise the cross-entropy over the rollout, or only measure it; returns losses and accuracies by name."""
        # [T·E, …] samples of next states and observations with the skills that led to them
        states = rollout.next_states.flatten(0, 1)
        observations = rollout.next_observations.flatten(0, 1)
        skills = rollout.skills.flatten(0, 1)
        mask = rollout.present.flatten(0, 1).to(states.dtype)
        losses = {"team": 0.0, "agent": 0.0}
        self.networks.train(learn)  # only learning may change the estimated norms of limited layers
        epochs = self._config.discriminator_epochs if learn else 1
        for epoch in range(epochs):
            team_logits, agent_logits = self.networks.logits(states, observations, skills[:, 0])
            if epoch == 0:
                self._measure(team_logits, agent_logits, skills, needed_mask(mask))
            team = F.cross_entropy(team_logits, skills[:, 0])
            agent_losses = F.cross_entropy(agent_logits.flatten(0, 1), skills[:, 1:].flatten(), reduction="none")
            agent = masked_mean(agent_losses, mask.flatten())
            for name, loss in (("team", team), ("agent", agent)):
                losses[name] += loss.item() / epochs
            if learn:
                gradient_step(team + agent, *self.optimizers.values(), max_norm=self._config.max_grad_norm)
        self.networks.eval()
        return {
            "team": losses["team"],
            "agent": losses["agent"],
            "team_accuracy": self.accuracy["team"],
            "agent_accuracy": self.accuracy["agent"],
        }

    def _measure(self, team_logits: Tensor, agent_logits: Tensor, skills: Tensor, mask: Tensor | None) -> None:
        """Measure the accuracy on the new rollout before learning from it, which is held-out accuracy."""
        with torch.no_grad():
            self.accuracy["team"] = (team_logits.argmax(-1) == skills[:, 0]).double().mean().item()
            correct = (agent_logits.argmax(-1) == skills[:, 1:]).double()
            self.accuracy["agent"] = masked_mean(correct, mask).item()

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs."""
        return {
            "discriminators": self.networks.state_dict(),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "accuracy": dict(self.accuracy),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.networks.load_state_dict(state["discriminators"])
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.accuracy = dict(state["accuracy"])

"""Training the discriminators, and the rewards that they pay; both once per rollout, over all of it at once."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from apexrl.algorithms.losses import masked_mean, needed_mask
from hmasd.config.schema import HMASDConfig
from hmasd.learning.rollout import Rollout
from hmasd.networks.discriminators import Discriminators


class SkillRewards(NamedTuple):
    """The parts of the low level's reward, already weighted."""

    team: Tensor
    """λ_D·log q_D(Z | s'), ``[T, E]``."""
    agents: Tensor
    """λ_d·log q_d(z_i | o'_i, Z), ``[T, E, n]``."""


class SkillLearner:
    """Discriminators with an optimiser each.

    Args:
        config: Hyperparameters.
        discriminators: The networks.
    """

    def __init__(self, config: HMASDConfig, discriminators: Discriminators) -> None:
        self._config = config
        self.discriminators = discriminators
        self.optimizers = {
            name: torch.optim.AdamW(
                network.parameters(),
                lr=config.lr_discriminator,
                eps=1e-5,
                weight_decay=config.discriminator_decay,
                fused=True,
            )
            for name, network in (("team", discriminators.team), ("agent", discriminators.agent))
        }
        self.accuracy = {"team": 0.0, "agent": 0.0}

    @torch.no_grad()
    def rewards(self, rollout: Rollout) -> SkillRewards:
        """Return what the discriminators, as they are before their update, pay for the rollout."""
        config = self._config
        evidence = self.discriminators.evidence(rollout.next_states, rollout.next_observations, rollout.skills)
        if config.center_rewards:
            team = evidence.team + math.log(config.team_skills)
            agents = evidence.agents + math.log(config.agent_skills)
        else:
            team, agents = evidence.team, evidence.agents
        weights = self._weights()
        return SkillRewards(weights["team"] * team, weights["agent"] * agents)

    def _weights(self) -> dict[str, float]:
        config = self._config
        if config.ablation == "no_in_rew":
            return {"team": 0.0, "agent": 0.0}
        base = {"team": config.lambda_team, "agent": config.lambda_agent}
        if not config.adaptive_lambda:
            return base
        chance = {"team": 1.0 / config.team_skills, "agent": 1.0 / config.agent_skills}
        return {
            name: weight * (1.0 - max(0.0, self.accuracy[name] - chance[name]) / max(1.0 - chance[name], 1e-6))
            for name, weight in base.items()
        }

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Cross-entropy over the rollout; returns losses and accuracies by name."""
        states = rollout.next_states.flatten(0, 1)
        observations = rollout.next_observations.flatten(0, 1)
        skills = rollout.skills.flatten(0, 1)
        mask = rollout.present.flatten(0, 1).to(states.dtype)
        losses = {"team": 0.0, "agent": 0.0}
        for epoch in range(self._config.discriminator_epochs):
            team_logits, agent_logits = self.discriminators.logits(states, observations, skills[:, 0])
            if epoch == 0:
                self._measure(team_logits, agent_logits, skills, needed_mask(mask))
            team = F.cross_entropy(team_logits, skills[:, 0])
            each = F.cross_entropy(agent_logits.flatten(0, 1), skills[:, 1:].flatten(), reduction="none")
            agent = masked_mean(each, mask.flatten())
            for name, loss in (("team", team), ("agent", agent)):
                losses[name] += loss.item() / self._config.discriminator_epochs
            self._step(team + agent)
        return {
            "team": losses["team"],
            "agent": losses["agent"],
            "team_accuracy": self.accuracy["team"],
            "agent_accuracy": self.accuracy["agent"],
        }

    def _measure(self, team_logits: Tensor, agent_logits: Tensor, skills: Tensor, mask: Tensor | None) -> None:
        """Accuracy on the new rollout before learning from it, which is held-out accuracy."""
        with torch.no_grad():
            self.accuracy["team"] = (team_logits.argmax(-1) == skills[:, 0]).double().mean().item()
            right = (agent_logits.argmax(-1) == skills[:, 1:]).double()
            self.accuracy["agent"] = masked_mean(right, mask).item()

    def _step(self, loss: Tensor) -> None:
        for optimizer in self.optimizers.values():
            optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
        for network in (self.discriminators.team, self.discriminators.agent):
            nn.utils.clip_grad_norm_(network.parameters(), self._config.max_grad_norm)
        for optimizer in self.optimizers.values():
            optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how learning goes on."""
        return {
            "discriminators": self.discriminators.state_dict(),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "accuracy": dict(self.accuracy),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state_dict` gave."""
        self.discriminators.load_state_dict(state["discriminators"])
        for name, optimizer in self.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        self.accuracy = dict(state["accuracy"])

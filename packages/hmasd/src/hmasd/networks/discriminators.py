"""The discriminators: q_D(Z | s) recognises the team skill from the state, q_d(z_i | o_i, Z) an agent's skill."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from apexrl.models.mlp import make_mlp
from hmasd.networks.blocks import one_hot


class SkillLogProbs(NamedTuple):
    """Log-probabilities of the true skills under the discriminators."""

    team: Tensor
    """log q_D(Z | s), ``[*batch]``."""
    agents: Tensor
    """log q_d(z_i | o_i, Z), ``[*batch, n]``."""


class Discriminators(nn.Module):
    """Two classifiers with separate parameters.

    Args:
        n_state: Length of the state.
        n_observation: Length of one observation.
        n_team_skills: n_Z.
        n_agent_skills: n_z.
        width: Width of the hidden layers.
        lipschitz: Largest change of the logits per unit of distance between inputs; 0 does not limit it.
    """

    def __init__(
        self,
        *,
        n_state: int,
        n_observation: int,
        n_team_skills: int,
        n_agent_skills: int,
        width: int,
        lipschitz: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_team_skills = n_team_skills
        self.lipschitz = lipschitz
        self.team = make_mlp(n_state, (width, width), n_team_skills, activation="relu", output_gain=0.1)
        self.agent = make_mlp(
            n_observation + n_team_skills, (width, width), n_agent_skills, activation="relu", output_gain=0.1
        )
        if lipschitz:
            # layers of spectral norm 1 with ReLU between them change by at most 1 per unit of distance
            for layer in (*self.team, *self.agent):
                if isinstance(layer, nn.Linear):
                    spectral_norm(layer)

    def logits(self, state: Tensor, observations: Tensor, team_skill: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of q_D ``[*batch, n_Z]`` and of q_d ``[*batch, n, n_z]``.

        Args:
            state: ``[*batch, ds]``.
            observations: ``[*batch, n, do]``.
            team_skill: int64 ``[*batch]``.
        """
        n_agents = observations.shape[-2]
        # [*batch, n, n_Z] code of the team skill for every agent
        team_code = one_hot(team_skill, self.n_team_skills).unsqueeze(-2)
        team_code = team_code.expand(*team_code.shape[:-2], n_agents, self.n_team_skills)
        team, agents = self.team(state), self.agent(torch.cat([observations, team_code], dim=-1))
        return (team * self.lipschitz, agents * self.lipschitz) if self.lipschitz else (team, agents)

    def log_probs(self, state: Tensor, observations: Tensor, skills: Tensor) -> SkillLogProbs:
        """Return log-probabilities of the skills ``[*batch, n + 1]`` (Z, z_1 … z_n) that were in force."""
        team_logits, agent_logits = self.logits(state, observations, skills[..., 0])
        team = torch.log_softmax(team_logits, dim=-1).gather(-1, skills[..., :1]).squeeze(-1)
        agents = torch.log_softmax(agent_logits, dim=-1).gather(-1, skills[..., 1:].unsqueeze(-1)).squeeze(-1)
        return SkillLogProbs(team, agents)

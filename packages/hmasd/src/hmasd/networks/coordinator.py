"""The skill coordinator π_h: from the state and all observations to a team skill and one skill per agent.

The choices are autoregressive, Z → z_1 → … → z_n. Sampling therefore takes n + 1 passes of the decoder; scoring stored
choices takes one, with the stored choices as inputs (teacher forcing).

V_h is the value of a state in which skills are about to be chosen. Where a batch ends while skills are in force, the
value is U_h = V_h + the difference that the :class:`ContinuationCritic` gives.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from apexrl.models.distributions import Categorical
from apexrl.models.mlp import make_mlp
from hmasd.networks.blocks import (
    HEAD_GAIN,
    DecoderBlock,
    EncoderBlock,
    one_hot,
    policy_head,
    token_embedding,
    value_head,
)


class SkillChoice(NamedTuple):
    """Skills sampled for B environments with n agents."""

    skills: Tensor
    """int64 ``[B, n + 1]``: the team skill Z, then z_1 … z_n."""
    log_probs: Tensor
    """``[B, n + 1]``: log-probability of each choice given those before it."""
    values: Tensor
    """``[B, n + 1]``: V_h of each token, in the units of the value normaliser."""


class SkillScores(NamedTuple):
    """Stored skills under the current parameters."""

    log_probs: Tensor
    """``[B, n + 1]``."""
    entropies: Tensor
    """``[B, n + 1]``."""
    values: Tensor
    """``[B, n + 1]``."""


class SkillCoordinator(nn.Module):
    """A transformer of one encoder and one decoder stack.

    Args:
        n_state: Length of the state.
        n_observation: Length of one observation.
        n_agents: Number of agents.
        n_team_skills: n_Z.
        n_agent_skills: n_z.
        width: Width of tokens.
        n_blocks: Blocks in each stack.
    """

    def __init__(
        self,
        *,
        n_state: int,
        n_observation: int,
        n_agents: int,
        n_team_skills: int,
        n_agent_skills: int,
        width: int,
        n_blocks: int,
    ) -> None:
        super().__init__()
        self.n_agents = n_agents
        self.embed_state = token_embedding(n_state, width)
        self.embed_observation = token_embedding(n_observation, width)
        # Position embeddings: agents share all other parameters, so only these distinguish their tokens. The name is
        # that of the key in checkpoints.
        self.places = nn.Parameter(torch.randn(n_agents + 1, width) * 0.02)
        self.encoder = nn.ModuleList(EncoderBlock(width) for _ in range(n_blocks))
        self.value = value_head(width)
        self.start = nn.Parameter(torch.randn(width) * 0.02)
        self.embed_team_skill = nn.Embedding(n_team_skills, width)
        self.embed_agent_skill = nn.Embedding(n_agent_skills, width)
        self.decoder = nn.ModuleList(DecoderBlock(width) for _ in range(n_blocks))
        self.team_head = policy_head(width, n_team_skills)
        self.agent_head = policy_head(width, n_agent_skills)

    def encode(self, state: Tensor, observations: Tensor) -> Tensor:
        """Encode states ``[B, ds]`` and observations ``[B, n, do]`` as tokens ``[B, n + 1, H]``."""
        tokens = torch.cat([self.embed_state(state).unsqueeze(1), self.embed_observation(observations)], dim=1)
        tokens = tokens + self.places
        for block in self.encoder:
            tokens = block(tokens)
        return tokens

    def values(self, state: Tensor, observations: Tensor) -> Tensor:
        """Return V_h of every token ``[B, n + 1]``."""
        out: Tensor = self.value(self.encode(state, observations)).squeeze(-1)
        return out

    @torch.no_grad()
    def act(
        self,
        state: Tensor,
        observations: Tensor,
        generator: torch.Generator | None = None,
        *,
        deterministic: bool = False,
        floor: float = 0.0,
    ) -> SkillChoice:
        """Sample the team skill and then the skill of each agent.

        Args:
            state: ``[B, ds]``.
            observations: ``[B, n, do]``.
            generator: Random generator.
            deterministic: Take the most probable skill instead of sampling.
            floor: Probability mass that is spread uniformly over all skills.
        """
        encoded = self.encode(state, observations)
        skills: list[Tensor] = []
        log_probs: list[Tensor] = []
        choices = self.start.expand(state.shape[0], 1, -1)  # [B, 1, H], one more token per choice
        for position in range(self.n_agents + 1):
            decoded = self._decode(choices, encoded[:, : position + 1])[:, -1]
            head = self.team_head if position == 0 else self.agent_head
            distribution = _with_floor(head(decoded), floor)
            skill = distribution.mode() if deterministic else distribution.sample(generator)
            skills.append(skill)
            log_probs.append(distribution.log_prob(skill))
            embed = self.embed_team_skill if position == 0 else self.embed_agent_skill
            choices = torch.cat([choices, embed(skill).unsqueeze(1)], dim=1)
        return SkillChoice(torch.stack(skills, dim=1), torch.stack(log_probs, dim=1), self.value(encoded).squeeze(-1))

    def evaluate(self, state: Tensor, observations: Tensor, skills: Tensor, *, floor: float = 0.0) -> SkillScores:
        """Score stored skills ``[B, n + 1]`` in one teacher-forced pass."""
        encoded = self.encode(state, observations)
        start = self.start.expand(state.shape[0], 1, -1)
        # [B, n + 1, H] input tokens: start, Z, z_1 … z_{n-1}
        known = [start, self.embed_team_skill(skills[:, :1]), self.embed_agent_skill(skills[:, 1:-1])]
        decoded = self._decode(torch.cat(known, dim=1), encoded)
        team = _with_floor(self.team_head(decoded[:, :1]), floor)
        agents = _with_floor(self.agent_head(decoded[:, 1:]), floor)
        return SkillScores(
            torch.cat([team.log_prob(skills[:, :1]), agents.log_prob(skills[:, 1:])], dim=1),
            torch.cat([team.entropy(), agents.entropy()], dim=1),
            self.value(encoded).squeeze(-1),
        )

    def _decode(self, choices: Tensor, encoded: Tensor) -> Tensor:
        for block in self.decoder:
            choices = block(choices, encoded)
        return choices


class ContinuationCritic(nn.Module):
    """U_h − V_h: what it is worth that the given skills last for m more steps, instead of choosing skills now.

    The difference is (m / k)·c(s, Z, z_1…z_n, m), so it is 0 where skills are due.

    Args:
        n_state: Length of the state.
        n_agents: n.
        n_team_skills: n_Z.
        n_agent_skills: n_z.
        skill_steps: k.
        width: Width of the hidden layers.
    """

    def __init__(
        self, *, n_state: int, n_agents: int, n_team_skills: int, n_agent_skills: int, skill_steps: int, width: int
    ) -> None:
        super().__init__()
        self.n_team_skills, self.n_agent_skills, self.skill_steps = n_team_skills, n_agent_skills, skill_steps
        n_inputs = n_state + n_team_skills + n_agents * n_agent_skills + 1
        self.layers = nn.Sequential(
            nn.LayerNorm(n_inputs),
            make_mlp(n_inputs, (width, width), 1, activation="relu", layer_norm=True, output_gain=HEAD_GAIN),
        )

    def forward(self, state: Tensor, skills: Tensor, left: Tensor) -> Tensor:
        """Return differences ``[B]`` in the units of the value normaliser.

        Args:
            state: ``[B, ds]``.
            skills: Z, z_1 … z_n in force ``[B, n + 1]``.
            left: Steps that they still last ``[B]``.
        """
        team = one_hot(skills[:, 0], self.n_team_skills)
        agents = one_hot(skills[:, 1:], self.n_agent_skills).flatten(1)
        share = (left.to(state.dtype) / self.skill_steps).unsqueeze(1)
        out: Tensor = share.squeeze(1) * self.layers(torch.cat([state, team, agents, share], dim=1)).squeeze(-1)
        return out


def _with_floor(logits: Tensor, floor: float) -> Categorical:
    """Return the categorical (1 − floor)·softmax(logits) + floor·uniform."""
    if floor == 0.0:
        return Categorical(logits)
    probabilities = torch.softmax(logits, dim=-1)
    return Categorical(torch.log((1.0 - floor) * probabilities + floor / logits.shape[-1]))

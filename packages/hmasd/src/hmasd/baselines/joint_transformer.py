"""The networks of MAT (Wen et al., 2022): a joint policy π(a_1 | ·)·π(a_2 | a_1, ·)… from one transformer."""

from typing import Any, NamedTuple

import torch
from gymnasium.spaces import Space
from torch import Tensor, nn

from apexrl.models.distributions import Distribution
from apexrl.models.heads import make_action_head
from hmasd.networks.blocks import DecoderBlock, EncoderBlock, one_hot, policy_head, token_embedding, value_head


class JointScores(NamedTuple):
    """Stored joint actions under the present parameters, each ``[B, n]``."""

    log_probs: Tensor
    entropies: Tensor
    values: Tensor


class JointTransformer(nn.Module):
    """One token per agent, of its observation and the state; actions are chosen in the agents' order.

    Args:
        n_inputs: Length of an observation together with the state.
        n_agents: n.
        action_space: Space of one agent's action.
        width: Width of tokens.
        n_blocks: Blocks of the encoder and of the decoder.
    """

    def __init__(self, *, n_inputs: int, n_agents: int, action_space: Space[Any], width: int, n_blocks: int) -> None:
        super().__init__()
        self.n_agents = n_agents
        self.head = make_action_head(action_space)
        n_action = self.head.num_inputs
        self.embed = token_embedding(n_inputs, width)
        self.places = nn.Parameter(torch.randn(n_agents, width) * 0.02)
        self.encoder = nn.ModuleList(EncoderBlock(width) for _ in range(n_blocks))
        self.value = value_head(width)
        self.start = nn.Parameter(torch.randn(width) * 0.02)
        self.embed_action = nn.Linear(n_action, width)
        self.decoder = nn.ModuleList(DecoderBlock(width) for _ in range(n_blocks))
        self.to_action = policy_head(width, n_action)

    def encode(self, inputs: Tensor) -> Tensor:
        """Tokens ``[B, n, H]`` of inputs ``[B, n, n_inputs]``."""
        tokens: Tensor = self.embed(inputs) + self.places
        for block in self.encoder:
            tokens = block(tokens)
        return tokens

    def values(self, inputs: Tensor) -> Tensor:
        """Values ``[B, n]``."""
        out: Tensor = self.value(self.encode(inputs)).squeeze(-1)
        return out

    @torch.no_grad()
    def act(
        self, inputs: Tensor, generator: torch.Generator | None, *, deterministic: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions ``[B, n, ...]``, their log-probabilities ``[B, n]`` and values ``[B, n]``."""
        encoded = self.encode(inputs)
        choices = self.start.expand(inputs.shape[0], 1, -1)
        actions: list[Tensor] = []
        log_probs: list[Tensor] = []
        for place in range(self.n_agents):
            distribution = self._distribution(choices, encoded[:, : place + 1], last_only=True)
            action = distribution.mode() if deterministic else distribution.sample(generator)
            actions.append(action)
            log_probs.append(distribution.log_prob(action))
            choices = torch.cat([choices, self._embed(action).unsqueeze(1)], dim=1)
        return torch.stack(actions, dim=1), torch.stack(log_probs, dim=1), self.value(encoded).squeeze(-1)

    def evaluate(self, inputs: Tensor, actions: Tensor) -> JointScores:
        """Score stored actions in one teacher-forced pass."""
        encoded = self.encode(inputs)
        start = self.start.expand(inputs.shape[0], 1, -1)
        choices = torch.cat([start, self._embed(actions[:, :-1])], dim=1)
        distribution = self._distribution(choices, encoded, last_only=False)
        return JointScores(distribution.log_prob(actions), distribution.entropy(), self.value(encoded).squeeze(-1))

    def _distribution(self, choices: Tensor, encoded: Tensor, *, last_only: bool) -> Distribution:
        for block in self.decoder:
            choices = block(choices, encoded)
        return self.head.distribution(self.to_action(choices[:, -1] if last_only else choices))

    def _embed(self, actions: Tensor) -> Tensor:
        discrete = self.head.is_discrete
        out: Tensor = self.embed_action(one_hot(actions, self.head.num_inputs) if discrete else actions)
        return out

"""The type of a partner from its signature, in torch; `policy.networks.inference.TypeNetwork` is the same in numpy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.partners.signature import FEATURES

__all__ = ["PartnerTypeModel"]


class PartnerTypeModel(nn.Module):
    """Logits of the types of partners: a perceptron with one hidden layer on standardised features.

    Args:
        hidden: Width of the hidden layer.
        mean: Mean of the features ``[F]``; default: zeros.
        std: Their standard deviation ``[F]``; default: ones.
    """

    kind = "partner"

    def __init__(self, hidden: int = 64, mean: Tensor | None = None, std: Tensor | None = None) -> None:
        super().__init__()
        n = len(FEATURES)
        self.register_buffer("mean", torch.zeros(n) if mean is None else mean)
        self.register_buffer("std", torch.ones(n) if std is None else std)
        self.hidden = nn.Linear(n, hidden)
        self.out = nn.Linear(hidden, len(ARCHETYPES))
        self.sizes = {"hidden": hidden}

    def forward(self, features: Tensor) -> Tensor:
        """Return logits ``[N, 4]`` of features ``[N, F]``."""
        standard = (features - self.get_buffer("mean")) / self.get_buffer("std")
        out: Tensor = self.out(torch.tanh(self.hidden(standard)))
        return out
